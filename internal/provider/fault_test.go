// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// faulty is a daemon in memory with a pool, and the provider on it through a proxy that makes requests fail.
func faulty(t *testing.T) (*lxdtest.Server, *lxdtest.Proxy, *terraform) {
	t.Helper()
	daemon, _ := memory(t)
	proxy := lxdtest.NewProxy(t, daemon.Socket())
	return daemon, proxy, newTerraform(t, args{"address": proxy.Address()})
}

func TestNetworkWhoseCreationFails(t *testing.T) {
	t.Parallel()
	const networks = `^/1\.0/networks$`
	for name, test := range map[string]struct {
		rule lxdtest.Rule
		kept bool // in the state, since it was made
		says string
	}{
		"refused":               {lxdtest.Rule{Method: http.MethodPost, Path: networks, Status: 500, Error: "no dnsmasq"}, false, "no dnsmasq"},
		"never asked":           {lxdtest.Rule{Method: http.MethodPost, Path: networks, DropBefore: true}, false, "not known"},
		"answer lost":           {lxdtest.Rule{Method: http.MethodPost, Path: networks, DropAfter: true}, true, "not known"},
		"made and not read":     {lxdtest.Rule{Method: http.MethodGet, Path: networks + `|/labnet$`, Status: 500, Error: "broken", Times: 1}, true, "broken"},
		"longer than it may be": {lxdtest.Rule{Method: http.MethodPost, Path: networks, Delay: time.Minute}, false, "timeouts.create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon, proxy, tf := faulty(t)
			proxy.Add(test.rule)
			net := tf.resource("lab_network")
			_, d := net.apply(args{"name": "labnet", "timeouts": args{"create": "1s"}})
			wantError(t, d, `Unable to create network "labnet"`, test.says)
			if net.gone() == test.kept {
				t.Fatalf("in the state: %t, want %t", !net.gone(), test.kept)
			}
			proxy.Clear()
			want := actionCreate
			if test.kept {
				want = actionReplace
			}
			net.mustApply(want, args{"name": "labnet"})
			net.mustDestroy()
			if names, err := daemon.Client(t).GetNetworkNames(); err != nil || len(names) > 0 {
				t.Errorf("left over: %v, %v", names, err)
			}
		})
	}
}

func TestNetworkThatCannotBeReadIsNotGone(t *testing.T) {
	t.Parallel()
	_, proxy, tf := faulty(t)
	config := args{"name": "labnet"}
	net := tf.resource("lab_network")
	net.mustApply(actionCreate, config)
	for _, rule := range []lxdtest.Rule{
		{Path: `/labnet$`, Status: 500, Error: "broken"},
		{Path: `/labnet$`, Status: 403, Error: "broken"},
		{Path: `/labnet$`, Status: 503, Error: "broken"},
	} {
		proxy.Add(rule)
		wantError(t, net.refresh(), `Unable to read network "labnet"`, "broken")
		if net.gone() {
			t.Fatalf("with status %d the network was taken for gone", rule.Status)
		}
		proxy.Clear()
	}
	noErrors(t, net.refresh())
	net.mustPlan(actionNone, config)
}

func TestNetworkWhoseUpdateOrDeletionFails(t *testing.T) {
	t.Parallel()
	_, proxy, tf := faulty(t)
	net := tf.resource("lab_network")
	net.mustApply(actionCreate, args{"name": "labnet"})

	proxy.Add(lxdtest.Rule{Method: http.MethodPut, Path: `/labnet$`, Status: 412, Error: "ETag doesn't match"})
	_, d := net.apply(args{"name": "labnet", "nat": false})
	wantError(t, d, `Unable to update network "labnet"`, "ETag doesn't match", "Try again")
	if net.get("nat") != true {
		t.Error("the state has what was not done")
	}
	proxy.Clear()
	net.mustApply(actionUpdate, args{"name": "labnet", "nat": false})

	proxy.Add(lxdtest.Rule{Method: http.MethodDelete, Path: `/labnet$`, Status: 500, Error: "broken"})
	_, d = net.apply(nil)
	wantError(t, d, `Unable to delete network "labnet"`, "broken")
	if net.gone() {
		t.Error("the state lost what is still there")
	}
	proxy.Clear()
	net.mustDestroy()
}

func TestImageWhoseCreationFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule lxdtest.Rule
		kept bool
		says []string
	}{
		"upload refused":  {lxdtest.Rule{Method: http.MethodPost, Path: `^/1\.0/images$`, Status: 500, Error: "disk full"}, false, []string{"disk full"}},
		"alias refused":   {lxdtest.Rule{Method: http.MethodPost, Path: `/aliases$`, Status: 500, Error: "broken"}, true, []string{"broken"}},
		"not unpacked":    {lxdtest.Rule{Method: http.MethodPost, Path: `/instances$`, Status: 500, Error: "broken"}, true, []string{`the image on pool "pool"`, "broken"}},
		"not read at all": {lxdtest.Rule{Method: http.MethodGet, Path: `/images/[0-9a-f]{64}$`, Skip: 1, Status: 500, Error: "broken"}, true, []string{"broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon, proxy, tf := faulty(t)
			proxy.Add(test.rule)
			image := tf.resource("lab_image")
			config := args{"file": newImageFiles(t, "a"), "aliases": list{"one"}, "pools": list{"pool"}}
			_, d := image.apply(config)
			wantError(t, d, append(test.says, "Unable to create image")...)
			if image.gone() == test.kept {
				t.Fatalf("in the state: %t, want %t", !image.gone(), test.kept)
			}
			proxy.Clear()
			want := actionCreate
			if test.kept {
				want = actionReplace
			}
			image.mustApply(want, config)
			if image.get("owned") != true {
				t.Error("an image that we uploaded is not ours")
			}
			image.mustDestroy()
			images, err := daemon.Client(t).GetImageFingerprints()
			must(t, err)
			instances, err := daemon.Client(t).GetInstanceNames(api.InstanceTypeAny)
			must(t, err)
			if len(images) > 0 || len(instances) > 0 {
				t.Errorf("left over: %v, %v", images, instances)
			}
		})
	}
}

// A pool and an image that go at the same time both take the copy of the image on the pool along, and the daemon fails as
// it misses that.
func TestImageAndPoolThatGoAtOnce(t *testing.T) {
	t.Parallel()
	daemon, proxy, tf := faulty(t)
	image, pool := tf.resource("lab_image"), tf.resource("lab_storage_pool")
	image.mustApply(actionCreate, args{"file": newImageFiles(t, "a")})
	pool.mustApply(actionCreate, args{"name": "more"})
	for path, status := range map[string]int{"/images/": http.StatusBadRequest, "/storage-pools/more$": http.StatusNotFound} {
		proxy.Add(lxdtest.Rule{
			Method: http.MethodDelete, Path: path, Times: 2, Status: status,
			Error: `Error deleting image "a" from storage pool "more": Storage volume "a" does not exist on pool "more": Storage volume not found`,
		})
	}
	image.mustDestroy()
	pool.mustDestroy()
	client := daemon.Client(t)
	if left, err := client.GetImageFingerprints(); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if left, err := client.GetStoragePoolNames(); err != nil || slices.Contains(left, "more") {
		t.Errorf("left over: %v, %v", left, err)
	}
}
