// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// debian is what the images of the tests are called on their servers.
const debian = "debian/12"

// offer puts an image on a server, in the place of the one before, and gives its fingerprint.
func offer(t *testing.T, server *lxdtest.ImageServer, content string) string {
	t.Helper()
	files := newImageFiles(t, content)
	return server.Offer(t, debian, files["metadata"].(string), files["rootfs"].(string)) //nolint:forcetypeassert // the test's own
}

// remote is an image on a server, with more arguments.
func remote(server *lxdtest.ImageServer, more args) args {
	arguments := args{"server": server.URL(), "certificate": server.Certificate()}
	maps.Copy(arguments, more)
	return arguments
}

func TestImageFromServer(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	server := lxdtest.NewImageServer(t)
	sum := offer(t, server, "a")
	image := tf.resource("lab_image")
	config := args{"remote": remote(server, args{"alias": debian}), "aliases": list{"ours"}, "properties": args{"role": "base"}}
	image.mustApply(actionCreate, config)
	if image.text("fingerprint") != sum || image.get("owned") != true {
		t.Errorf("got image %s, owned %v", image.text("fingerprint"), image.get("owned"))
	}

	// A second one uses it, and leaves it.
	other := tf.resource("lab_image")
	other.mustApply(actionCreate, args{"remote": remote(server, args{"fingerprint": sum})})
	if other.get("owned") != false || server.Downloads(debian) != 1 {
		t.Errorf("owned %v after %d downloads", other.get("owned"), server.Downloads(debian))
	}
	other.mustDestroy()

	// That the alias moves changes nothing, and neither does naming the image in another way.
	next := offer(t, server, "b")
	image.mustPlan(actionNone, config)
	image.mustApply(actionUpdate, args{"remote": remote(server, args{"fingerprint": sum})})
	image.mustPlan(actionUpdate, args{"remote": remote(server, args{"fingerprint": sum, "protocol": "simplestreams"})})
	image.mustPlan(actionReplace, args{"remote": remote(server, args{"alias": debian})})
	image.mustPlan(actionReplace, args{"remote": remote(server, args{"fingerprint": next})})
	image.mustPlan(actionReplace, args{"remote": remote(server, args{"alias": unknown})})
	image.mustDestroy()
	if left, err := daemon.Client(t).GetImageFingerprints(); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestImageThatFollowsAnAlias(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	server := lxdtest.NewImageServer(t)
	first := offer(t, server, "a")
	image := tf.resource("lab_image")
	config := args{"remote": remote(server, args{"alias": debian, "follow": true})}
	image.mustApply(actionCreate, config)

	// The daemon has read the server's list less than an hour ago, and does not look again by itself.
	second := offer(t, server, "b")
	p := image.mustPlan(actionReplace, config)
	if at(t, p.value, "fingerprint") != unknown {
		t.Errorf("fingerprint is planned to be %v", at(t, p.value, "fingerprint"))
	}
	image.mustApply(actionReplace, config)
	if got := image.text("fingerprint"); got != second || got == first {
		t.Errorf("got %s, want %s", got, second)
	}

	// Not to be asked again is a change in place, and so is to be asked when nothing has moved.
	quiet := args{"remote": remote(server, args{"alias": debian})}
	image.mustApply(actionUpdate, quiet)
	image.mustApply(actionUpdate, config)

	// A lab whose image is there does not depend on its server.
	gone := args{"server": "https://127.0.0.1:1", "certificate": server.Certificate(), "alias": debian, "follow": true}
	_, d := image.plan(args{"remote": gone})
	wantErrorAt(t, d, `AttributeName("remote").AttributeName("server")`, "Unable to update image", "connection refused")
	image.mustApply(actionUpdate, quiet)
}

func TestImageOfServerThatIsDownStays(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	server := lxdtest.NewImageServer(t)
	offer(t, server, "a")
	image := tf.resource("lab_image")
	config := args{"remote": remote(server, args{"alias": debian, "follow": true})}
	image.mustApply(actionCreate, config)
	server.Stop()
	p, d := image.plan(config)
	noErrors(t, d)
	if p.action != actionNone || !strings.Contains(d.String(), `Unable to follow alias "debian/12"`) {
		t.Errorf("the plan is to %s, and says: %s", p.action, d)
	}
}

func TestImageOfServerThatIsRefused(t *testing.T) {
	t.Parallel()
	daemon, _ := memory(t)
	server := lxdtest.NewImageServer(t)
	sum := offer(t, server, "a")
	const at = `AttributeName("remote").AttributeName(`
	for name, test := range map[string]struct {
		remote  args
		atPlan  bool
		at      string
		message string
	}{
		"alias":           {remote(server, args{"alias": "debian/13"}), true, `"alias")`, "Alias 'debian/13' doesn't exist"},
		"type":            {remote(server, args{"alias": debian, "type": "virtual-machine"}), true, `"alias")`, "doesn't exist"},
		"fingerprint":     {remote(server, args{"fingerprint": strings.Repeat("0", 64)}), false, "", "couldn't be found"},
		"not the whole":   {remote(server, args{"fingerprint": sum[:12]}), true, `"fingerprint")`, "64 lower-case"},
		"both":            {remote(server, args{"fingerprint": sum, "alias": debian}), true, "", "Exactly one of alias, fingerprint"},
		"neither":         {remote(server, nil), true, "", "Exactly one of alias, fingerprint"},
		"not https":       {args{"server": "http://localhost", "alias": "a"}, true, `"server")`, "https://"},
		"follows nothing": {remote(server, args{"fingerprint": sum, "follow": true}), true, `"follow")`, "alias"},
		"stranger":        {args{"server": server.URL(), "alias": debian}, false, `"server")`, "if this is the right server, give its certificate"},
		"down":            {args{"server": "https://127.0.0.1:1", "alias": debian}, false, `"server")`, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image := newTerraform(t, args{"address": daemon.Address()}).resource("lab_image")
			config := args{"remote": test.remote}
			_, d := image.plan(config)
			if !test.atPlan {
				noErrors(t, d)
				_, d = image.apply(config)
			}
			wantError(t, d, test.message)
			if test.at != "" {
				wantErrorAt(t, d, at+test.at)
			}
			if !image.gone() {
				t.Error("something is in the state")
			}
		})
	}
}

func TestImageComesFromOnePlace(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	image := tf.resource("lab_image")
	_, d := image.plan(args{"aliases": list{"a"}})
	wantError(t, d, "file,remote,publish")
	_, d = image.plan(args{"file": newImageFiles(t, "a"), "publish": args{"source": "default/m/0"}})
	wantError(t, d, "file,remote,publish")

	// The same image from elsewhere is the same.
	files := newImageFiles(t, "a")
	image.mustApply(actionCreate, args{"file": files})
	image.mustApply(actionUpdate, args{"remote": args{"server": "https://example.com", "fingerprint": sumOf(t, files)}})
	image.mustApply(actionUpdate, args{"file": files})
}

func TestImageIsPublicAndExpires(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	files := newImageFiles(t, "a")
	image := tf.resource("lab_image")
	config := args{"file": files, "public": true, "expires_at": "2040-01-02T03:04:05+01:00"}
	image.mustApply(actionCreate, config)
	sum := image.text("fingerprint")
	live, etag, err := daemon.Client(t).GetImage(sum)
	must(t, err)
	if !live.Public || live.ExpiresAt.Unix() != 2209082645 {
		t.Errorf("public %t, expires at %s", live.Public, live.ExpiresAt)
	}
	put := live.Writable()
	put.Public = false
	must(t, daemon.Client(t).UpdateImage(sum, put, etag))
	noErrors(t, image.refresh())
	image.mustApply(actionUpdate, config)

	image.mustApply(actionUpdate, args{"file": files})
	live, _, err = daemon.Client(t).GetImage(sum)
	must(t, err)
	if live.Public || live.ExpiresAt.Unix() > 0 {
		t.Errorf("public %t, expires at %s", live.Public, live.ExpiresAt)
	}
	_, d := image.plan(args{"file": files, "expires_at": "tomorrow"})
	wantErrorAt(t, d, `AttributeName("expires_at")`, "RFC 3339")
}

// TestImageOfServerWhoseFetchFails has a download fail, or its outcome get lost, and leaves nothing that is not in the state.
func TestImageOfServerWhoseFetchFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule lxdtest.Rule
		kept bool
	}{
		"refused":     {lxdtest.Rule{Method: http.MethodPost, Path: `^/1\.0/images$`, Status: 500, Error: "disk full"}, false},
		"answer lost": {lxdtest.Rule{Path: `/wait$`, DropAfter: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon, proxy, tf := faulty(t)
			server := lxdtest.NewImageServer(t)
			offer(t, server, "a")
			proxy.Add(test.rule)
			image := tf.resource("lab_image")
			_, d := image.apply(args{"remote": remote(server, args{"alias": debian})})
			wantErrorAt(t, d, `AttributeName("remote")`, `Unable to create image "debian/12"`)
			if image.gone() == test.kept {
				t.Errorf("in the state: %t, want %t", !image.gone(), test.kept)
			}
			proxy.Clear()
			if test.kept {
				image.mustDestroy()
			}
			if left, err := daemon.Client(t).GetImageFingerprints(); err != nil || len(left) > 0 {
				t.Errorf("left over: %v, %v", left, err)
			}
		})
	}
}
