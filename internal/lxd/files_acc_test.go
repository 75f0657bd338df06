// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"os"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

func TestAccPushFile(t *testing.T) {
	t.Parallel()
	d, h := shareDaemon(t)
	machine := create(t, d, h)
	push := func(file File) {
		t.Helper()
		if err := d.PushFile(patient(t), machine, file); err != nil {
			t.Errorf("push %s: %v", file.Path, err)
		}
	}
	see := func(path, want string) {
		t.Helper()
		if got := shell(t, d, machine, "stat -c '%F %a %u %g' "+path+"; test -d "+path+" || cat "+path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	push(File{Path: "/srv", Mode: 0o750, UID: 1, GID: 2, Directory: true})
	push(File{Path: "/srv/stopped", Content: []byte("one"), Mode: 0o640, UID: 1000, GID: 100})
	push(File{Path: "/srv/empty", Mode: 0o600})
	must(t, d.SetInstanceState(patient(t), machine, api.InstanceStatePut{Action: "start"}))
	see("/srv", "directory 750 1 2")
	see("/srv/stopped", "regular file 640 1000 100\none")
	see("/srv/empty", "regular empty file 600 0 0")

	push(File{Path: "/srv/running", Content: []byte("two"), Mode: 0o755, UID: 3, GID: 4})
	see("/srv/running", "regular file 755 3 4\ntwo")
	push(File{Path: "/srv/running", Content: []byte("2"), Mode: 0o600, UID: 5, GID: 6})
	see("/srv/running", "regular file 600 5 6\n2")
	push(File{Path: "/srv", Mode: 0o755, Directory: true})
	see("/srv", "directory 750 1 2")

	if err := d.PushFile(patient(t), machine, File{Path: "/none/file", Mode: 0o644}); !isOnly(err, ErrNotFound) {
		t.Errorf("into a directory that is not there: got %v, want not found", err)
	}
	if err := d.PushFile(patient(t), "none", File{Path: "/file", Mode: 0o644}); !isOnly(err, ErrNotFound) {
		t.Errorf("into a machine that is not there: got %v, want not found", err)
	}
}

func TestAccFile(t *testing.T) {
	t.Parallel()
	d, h := shareDaemon(t)
	machine := create(t, d, h)
	must(t, d.PushFile(patient(t), machine, File{Path: "/etc/some", Content: []byte("one\n"), Mode: 0o600}))
	if got, err := d.File(patient(t), machine, "/etc/some"); err != nil || string(got) != "one\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, other := range []string{"/etc", "/etc/none", "/bin/sh"} { // the last is a link
		if got, err := d.File(patient(t), machine, other); !isOnly(err, ErrNotFound) {
			t.Errorf("%s gave %q, %v, want not found", other, got, err)
		}
	}
}

func TestAccUploadImage(t *testing.T) {
	t.Parallel()
	d, _ := shareDaemon(t)
	open := func(path string) *os.File {
		file, err := os.Open(path)
		must(t, err)
		t.Cleanup(func() { _ = file.Close() })
		return file
	}
	unified, split := acctest.TinyFiles(t), acctest.TinyFiles(t)
	properties := map[string]string{"user.lab.test": "a & b"}
	for name, image := range map[string]func() ImageUpload{
		"unified": func() ImageUpload { return ImageUpload{Metadata: open(unified.Unified), Properties: properties} },
		"split": func() ImageUpload {
			return ImageUpload{Metadata: open(split.Metadata), Rootfs: open(split.Rootfs), Properties: properties}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fingerprint, err := d.UploadImage(patient(t), image())
			must(t, err)
			if name == "unified" && fingerprint != unified.Fingerprint {
				t.Errorf("fingerprint is %s, want %s", fingerprint, unified.Fingerprint)
			}
			live, _, err := d.Image(patient(t), fingerprint)
			must(t, err)
			if live.Properties["user.lab.test"] != "a & b" || live.Properties["os"] != "tiny" {
				t.Errorf("properties are %v", live.Properties)
			}
			if _, err := d.UploadImage(patient(t), image()); !isOnly(err, ErrExists) {
				t.Errorf("the second time: got %v, want that it exists", err)
			}
			alias := api.ImageAliasesPost{}
			alias.Name, alias.Target = "tiny/"+name, fingerprint
			must(t, d.CreateImageAlias(patient(t), alias))
			if got, err := d.ImageAlias(patient(t), alias.Name); err != nil || got.Target != fingerprint {
				t.Errorf("the alias is %v, %v", got, err)
			}
			if err := d.CreateImageAlias(patient(t), alias); !isOnly(err, ErrExists) {
				t.Errorf("the alias again: got %v, want that it exists", err)
			}
			must(t, d.DeleteImageAlias(patient(t), alias.Name))
			must(t, d.DeleteImage(patient(t), fingerprint))
			if err := d.DeleteImage(patient(t), fingerprint); !isOnly(err, ErrNotFound) {
				t.Errorf("deleted again: got %v, want not found", err)
			}
		})
	}
}

func TestAccUploadWhatIsNoImage(t *testing.T) {
	t.Parallel()
	d, _ := shareDaemon(t)
	if _, err := d.UploadImage(patient(t), ImageUpload{Metadata: strings.NewReader("no image at all")}); !isOnly(err, ErrUnsupported) {
		t.Errorf("got %v, want it unsupported", err)
	}
}
