// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func symlink(old, name string) error { return os.Symlink(old, name) }

func createProject(client lxd.InstanceServer, name string) error {
	return client.CreateProject(api.ProjectsPost{Name: name, ProjectPut: api.ProjectPut{Config: map[string]string{"features.images": "true"}}})
}

// newImageFiles writes an image in two files, which differs from others by its content.
func newImageFiles(t *testing.T, content string) args {
	t.Helper()
	dir := t.TempDir()
	files := args{"metadata": filepath.Join(dir, "metadata.tar"), "rootfs": filepath.Join(dir, "rootfs.tar")}
	writeImageFiles(t, files, content)
	return files
}

func writeImageFiles(t *testing.T, files args, content string) {
	t.Helper()
	for name, file := range map[string][2]string{"metadata": {"metadata.yaml", "architecture: x86_64\ncreation_date: 1\n"}, "rootfs": {"etc/content", content}} {
		path, ok := files[name].(string)
		if !ok {
			t.Fatalf("no path for %s", name)
		}
		out, err := os.Create(path)
		must(t, err)
		archive := tar.NewWriter(out)
		must(t, archive.WriteHeader(&tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1])), Typeflag: tar.TypeReg}))
		_, err = archive.Write([]byte(file[1]))
		must(t, err)
		must(t, archive.Close())
		must(t, out.Close())
	}
}

// sumOf is the fingerprint of an image's files.
func sumOf(t *testing.T, files args) string {
	t.Helper()
	hash := sha256.New()
	for _, name := range []string{"metadata", "rootfs"} {
		path, ok := files[name].(string)
		if !ok {
			continue
		}
		content, err := os.ReadFile(path)
		must(t, err)
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// withSum is the same files with what they must hash to.
func withSum(files args, sum string) args {
	return args{"metadata": files["metadata"], "rootfs": files["rootfs"], "sha256": sum}
}

func removeFiles(t *testing.T, files args) {
	t.Helper()
	for _, path := range files {
		must(t, os.Remove(path.(string))) //nolint:forcetypeassert // the test's own
	}
}

// memory is a daemon in memory with a pool, and the provider on it.
func memory(t *testing.T) (*lxdtest.Server, *terraform) {
	t.Helper()
	daemon := lxdtest.New(t)
	must(t, daemon.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "pool", Driver: "btrfs"}))
	return daemon, newTerraform(t, args{"address": daemon.Address()})
}

func TestImageLife(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	files := newImageFiles(t, "a")
	image := tf.resource("lab_image")
	config := args{"file": files, "aliases": list{"one", "two"}, "properties": args{"description": "of the lab"}, "pools": list{"pool"}}
	image.mustApply(actionCreate, config)

	sum := sumOf(t, files)
	for name, want := range map[string]any{"id": sum, "fingerprint": sum, "owned": true, "project": "default"} {
		if got := image.get(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	live, _, err := daemon.Client(t).GetImage(sum)
	must(t, err)
	if len(live.Aliases) != 2 || live.Properties["description"] != "of the lab" || image.get("size_bytes") != int(live.Size) {
		t.Errorf("the daemon has %+v", live)
	}
	if _, _, err := daemon.Client(t).GetStoragePoolVolume("pool", "image", sum); err != nil {
		t.Errorf("the image is not unpacked: %v", err)
	}
	if names, err := daemon.Client(t).GetInstanceNames(api.InstanceTypeAny); err != nil || len(names) > 0 {
		t.Errorf("unpacking left %v, %v", names, err)
	}

	config = args{"file": files, "aliases": list{"two", "three"}, "properties": args{"release": "12"}}
	image.mustApply(actionUpdate, config)
	live, _, err = daemon.Client(t).GetImage(sum)
	must(t, err)
	names := []string{}
	for _, alias := range live.Aliases {
		names = append(names, alias.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"three", "two"}) || live.Properties["description"] != "" || live.Properties["release"] != "12" {
		t.Errorf("the daemon has %v and %v", names, live.Properties)
	}

	image.mustDestroy()
	if left, err := daemon.Client(t).GetImageFingerprints(); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestImageIsReplacedByWhatItsFilesHold(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	files := newImageFiles(t, "a")
	image := tf.resource("lab_image")
	image.mustApply(actionCreate, args{"file": files})
	before := image.text("fingerprint")

	elsewhere := newImageFiles(t, "a")
	image.mustApply(actionUpdate, args{"file": elsewhere})
	image.mustApply(actionUpdate, args{"file": withSum(elsewhere, before)})
	image.mustApply(actionUpdate, args{"file": files})

	writeImageFiles(t, files, "another")
	p := image.mustPlan(actionReplace, args{"file": files})
	for _, name := range []string{"id", "fingerprint"} {
		if at(t, p.value, name) != unknown {
			t.Errorf("%s is planned to be %v", name, at(t, p.value, name))
		}
	}
	image.mustApply(actionReplace, args{"file": files})
	if after := image.text("fingerprint"); after == before || after != sumOf(t, files) {
		t.Errorf("the fingerprint is %s, was %s", after, before)
	}
	image.mustPlan(actionReplace, args{"file": args{"metadata": unknown, "rootfs": files["rootfs"]}})
}

func TestImageWhoseFilesAreGone(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	files, other := newImageFiles(t, "a"), newImageFiles(t, "b")
	otherSum := sumOf(t, other)
	image := tf.resource("lab_image")
	image.mustApply(actionCreate, args{"file": files})
	sum := image.text("fingerprint")
	removeFiles(t, files)
	removeFiles(t, other)

	image.mustPlan(actionNone, args{"file": files})
	image.mustPlan(actionUpdate, args{"file": files, "aliases": list{"x"}})
	_, d := image.plan(args{"file": other})
	wantErrorAt(t, d, `AttributeName("file").AttributeName("metadata")`, "cannot be told", "file.sha256")
	image.mustPlan(actionUpdate, args{"file": withSum(other, sum)})
	image.mustPlan(actionReplace, args{"file": withSum(other, otherSum)})
}

func TestImageMadeInTheSameApply(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	files := newImageFiles(t, "a")
	removeFiles(t, files)
	image := tf.resource("lab_image")
	p := image.mustPlan(actionCreate, args{"file": files})
	writeImageFiles(t, files, "made meanwhile")
	noErrors(t, image.carryOut(p, args{"file": files}))
	if image.text("fingerprint") != sumOf(t, files) {
		t.Errorf("the fingerprint is %s", image.text("fingerprint"))
	}

	// One that is there and is made anew is no contradiction either.
	image = tf.resource("lab_image")
	p = image.mustPlan(actionCreate, args{"file": files})
	writeImageFiles(t, files, "made anew meanwhile")
	noErrors(t, image.carryOut(p, args{"file": files}))

	image = tf.resource("lab_image")
	removeFiles(t, files)
	_, d := image.apply(args{"file": files})
	wantErrorAt(t, d, `AttributeName("file").AttributeName("metadata")`, "no such file")
}

func TestImageFilesMustBeWhatIsWanted(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	files := newImageFiles(t, "a")
	sum, wrong := sumOf(t, files), strings.Repeat("0", 64)
	image := tf.resource("lab_image")
	_, d := image.plan(args{"file": withSum(files, wrong)})
	wantErrorAt(t, d, `AttributeName("file").AttributeName("sha256")`, sum, wrong)
	_, d = image.plan(args{"file": withSum(files, "xyz")})
	wantErrorAt(t, d, `AttributeName("file").AttributeName("sha256")`)

	image.mustApply(actionCreate, args{"file": withSum(files, sum)})
	_, d = image.plan(args{"file": withSum(files, wrong)})
	wantErrorAt(t, d, `AttributeName("file").AttributeName("sha256")`, sum, wrong)
	writeImageFiles(t, files, "damaged")
	image.mustPlan(actionNone, args{"file": withSum(files, sum)}) // the image that is wanted is there
}

func TestImageOfSomebodyElse(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	files := newImageFiles(t, "a")
	first := tf.resource("lab_image")
	first.mustApply(actionCreate, args{"file": files, "properties": args{"of": "first"}})

	second := tf.resource("lab_image")
	second.mustApply(actionCreate, args{"file": files, "aliases": list{"mine"}, "properties": args{"mine": "yes"}, "pools": list{"pool"}})
	if second.get("owned") != false {
		t.Error("an image that was there is taken for ours")
	}
	noErrors(t, first.refresh())
	first.mustPlan(actionNone, args{"file": files, "properties": args{"of": "first"}})
	second.mustDestroy()
	live, _, err := daemon.Client(t).GetImage(first.text("fingerprint"))
	must(t, err)
	if len(live.Aliases) > 0 || live.Properties["of"] != "first" {
		t.Errorf("the first has aliases %v and properties %v", live.Aliases, live.Properties)
	}
}

func TestImageAliasOfAnotherImageIsNotTaken(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	first, second := tf.resource("lab_image"), tf.resource("lab_image")
	config := args{"file": newImageFiles(t, "a"), "aliases": list{"name"}}
	first.mustApply(actionCreate, config)
	files := newImageFiles(t, "b")
	_, d := second.apply(args{"file": files, "aliases": list{"name"}})
	wantErrorAt(t, d, `AttributeName("aliases")`, "belongs to image "+first.text("fingerprint"))
	if second.gone() {
		t.Fatal("the image that was uploaded is not in the state")
	}
	alias, _, err := daemon.Client(t).GetImageAlias("name")
	must(t, err)
	if alias.Target != first.text("fingerprint") {
		t.Errorf("the alias went to %s", alias.Target)
	}
	second.mustApply(actionReplace, args{"file": files, "aliases": list{"other"}})
	second.mustDestroy()
	noErrors(t, first.refresh())
	first.mustPlan(actionNone, config)
}

func TestImageChangedBehindOurBack(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	client := daemon.Client(t)
	must(t, client.CreateStoragePool(api.StoragePoolsPost{Name: "second", Driver: "btrfs"}))
	image := tf.resource("lab_image")
	config := args{"file": newImageFiles(t, "a"), "aliases": list{"one"}, "properties": args{"release": "12"}, "pools": list{"pool", "second"}}
	image.mustApply(actionCreate, config)
	sum := image.text("fingerprint")

	must(t, client.DeleteImageAlias("one"))
	noErrors(t, image.refresh())
	image.mustApply(actionUpdate, config)

	live, etag, err := client.GetImage(sum)
	must(t, err)
	put := live.Writable()
	put.Properties["release"] = "13"
	must(t, client.UpdateImage(sum, put, etag))
	noErrors(t, image.refresh())
	image.mustApply(actionUpdate, config)

	// A pool that was made anew has it no more, and one that is gone cannot have it.
	must(t, client.DeleteStoragePool("second"))
	noErrors(t, image.refresh())
	if got := image.get("pools"); len(got.(list)) != 1 { //nolint:forcetypeassert // a set
		t.Errorf("pools is %v", got)
	}
	must(t, client.CreateStoragePool(api.StoragePoolsPost{Name: "second", Driver: "btrfs"}))
	image.mustPlan(actionUpdate, config)
	image.mustApply(actionUpdate, config)
	if _, _, err := client.GetStoragePoolVolume("second", "image", sum); err != nil {
		t.Errorf("the image is not unpacked again: %v", err)
	}

	// What is not declared is somebody else's.
	must(t, client.CreateImageAlias(api.ImageAliasesPost{ImageAliasesEntry: api.ImageAliasesEntry{Name: "theirs", Target: sum}}))
	noErrors(t, image.refresh())
	image.mustPlan(actionNone, config)
}

func TestImageGone(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	config := args{"file": newImageFiles(t, "a")}
	image := tf.resource("lab_image")
	image.mustApply(actionCreate, config)
	operation, err := daemon.Client(t).DeleteImage(image.text("fingerprint"))
	must(t, err)
	must(t, operation.Wait())
	twin := *image
	twin.mustDestroy()
	noErrors(t, image.refresh())
	if !image.gone() {
		t.Fatal("the image is still in the state")
	}
	image.mustApply(actionCreate, config)
}

func TestImageImport(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	files := newImageFiles(t, "a")
	config := args{"file": files, "aliases": list{"one"}, "properties": args{"release": "12"}, "pools": list{"pool"}}
	original := tf.resource("lab_image")
	original.mustApply(actionCreate, config)
	sum := original.text("fingerprint")

	for name, start := range map[string]func(*managed) diagnostics{
		"by fingerprint":             func(m *managed) diagnostics { return m.importID(sum) },
		"by project and fingerprint": func(m *managed) diagnostics { return m.importID("default/" + sum) },
		"by identity":                func(m *managed) diagnostics { return m.importIdentity(args{"fingerprint": sum}) },
	} {
		t.Log(name)
		image := tf.resource("lab_image")
		noErrors(t, start(image))
		if image.get("owned") != true {
			t.Error("an imported image is not taken over")
		}
		daemon.ForgetRequests()
		image.mustApply(actionUpdate, config)
		for _, request := range daemon.Requests() {
			if request.Method != http.MethodGet {
				t.Errorf("taking over what is there wrote: %v", request)
			}
		}
	}
	other := tf.resource("lab_image")
	noErrors(t, other.importID(sum))
	other.mustPlan(actionReplace, args{"file": newImageFiles(t, "b")})
	other.mustPlan(actionUpdate, args{"file": args{"metadata": "/nowhere/image.tar"}})
	wantError(t, tf.resource("lab_image").importID("debian"), "Unable to import image", "64 hexadecimal digits")
	wantError(t, tf.resource("lab_image").importIdentity(args{"fingerprint": sum[:12]}), "Unable to import image", "64 hexadecimal digits")
}

func TestImageReplacementNeedsTheSameDaemon(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	other, otherTF := memory(t)
	files := newImageFiles(t, "a")
	image := tf.resource("lab_image")
	image.mustApply(actionCreate, args{"file": files})
	writeImageFiles(t, files, "b")
	_, d := image.in(otherTF).plan(args{"file": files})
	wantError(t, d, "Another daemon")
	for _, request := range other.Requests() {
		if strings.HasPrefix(request.Path, "/1.0/images") {
			t.Errorf("the other daemon was asked for images: %v", request)
		}
	}
}
