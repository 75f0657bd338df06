// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// copying is a daemon, behind a proxy, whose pool "lab" turns out to copy: somebody makes it do so before it is probed.
func copying(t *testing.T) (*lxdtest.Server, *lxdtest.Proxy) {
	t.Helper()
	daemon := lxdtest.New(t, lxdtest.WithDrivers("btrfs", "zfs"), lxdtest.WithLatency(func(work lxdtest.Work) time.Duration {
		return time.Duration(work.Bytes) * time.Second / (512 << 20)
	}))
	proxy := lxdtest.NewProxy(t, daemon.Socket())
	proxy.Add(lxdtest.Rule{Method: http.MethodPost, Path: `/images$`, Do: func() {
		client := daemon.Client(t)
		pool, etag, err := client.GetStoragePool("lab")
		if err == nil {
			pool.Config["zfs.clone_copy"] = "false"
			err = client.UpdateStoragePool("lab", pool.Writable(), etag)
		}
		if err != nil {
			t.Error(err)
		}
	}})
	return daemon, proxy
}

func TestPoolThatFailsItsProof(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config args
		kept   bool
	}{
		"on a loop file":          {args{"name": "lab", "driver": "zfs"}, false},
		"on a source of a user's": {args{"name": "lab", "driver": "zfs", "source": "tank"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon, proxy := copying(t)
			pool := newTerraform(t, args{"address": proxy.Address()}).resource("lab_storage_pool")
			_, d := pool.apply(test.config)
			wantError(t, d, "Host refused: copy-on-write storage", `"lab"`)
			names, err := daemon.Client(t).GetStoragePoolNames()
			must(t, err)
			if slices.Contains(names, "lab") != test.kept || pool.gone() == test.kept {
				t.Errorf("the daemon has %v, the state has it: %t", names, !pool.gone())
			}
			instances, err := daemon.Client(t).GetInstanceNames("")
			must(t, err)
			if len(instances) > 0 {
				t.Errorf("the probe left %v", instances)
			}
		})
	}
}

func TestPoolThatCouldNotBeProved(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	proxy := lxdtest.NewProxy(t, daemon.Socket())
	pool := newTerraform(t, args{"address": proxy.Address()}).resource("lab_storage_pool")
	config := args{"name": "lab", "size": "10GiB"}
	proxy.Add(lxdtest.Rule{Method: http.MethodPost, Path: `/instances$`, Status: 503, Error: "not now"})
	_, d := pool.apply(config)
	wantError(t, d, `Unable to create storage pool "lab"`, "not now")
	if pool.gone() {
		t.Fatal("the pool that was made is not in the state")
	}
	proxy.Clear()
	pool.mustApply(actionReplace, config)
	if verdict := pool.get("verification", "snapshot", "verdict"); verdict != "proven" {
		t.Errorf("snapshot is %v", verdict)
	}
	pool.mustApply(actionNone, args{"name": "lab", "size": "10240MiB"})
	pool.mustDestroy()
	if names, err := daemon.Client(t).GetStoragePoolNames(); err != nil || len(names) > 0 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

func TestPoolIsProvedAnewWhenItsConfigurationChanges(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	pool := newTerraform(t, args{"address": daemon.Address()}).resource("lab_storage_pool")
	pool.mustApply(actionCreate, args{"name": "lab"})
	probes := func() int {
		count := 0
		for _, request := range daemon.Requests() {
			if request.Method == http.MethodPost && request.Path == "/1.0/images" {
				count++
			}
		}
		return count
	}
	before := probes()
	pool.mustApply(actionUpdate, args{"name": "lab", "description": "x", "config": args{"user.role": "a"}})
	if probes() != before {
		t.Error("a pool was probed again for a key that means nothing to the daemon")
	}
	pool.mustApply(actionUpdate, args{"name": "lab", "config": args{"btrfs.mount_options": "noatime"}})
	if probes() == before || pool.get("verification", "restore", "verdict") != "proven" {
		t.Errorf("the pool was probed %d times, verification is %v", probes()-before, pool.get("verification"))
	}
}

func TestPoolIsReplacedWhenItsMembersDiffer(t *testing.T) {
	t.Parallel()
	part := map[string]attr.Type{"source": types.StringType, "size": sizeType{}}
	members := func(name, source string, size sizeValue) types.Map {
		object := types.ObjectValueMust(part, map[string]attr.Value{"source": textOrNull(source), "size": size})
		return types.MapValueMust(types.ObjectType{AttrTypes: part}, map[string]attr.Value{name: object})
	}
	before, none := members("a", "", newSize("2GiB")), types.MapNull(types.ObjectType{AttrTypes: part})
	for name, test := range map[string]struct {
		before, now types.Map
		want        bool
	}{
		"the same":         {before, before, false},
		"another spelling": {before, members("a", "", newSize("2048MiB")), false},
		"another size":     {before, members("a", "", newSize("3GiB")), true},
		"no size":          {before, members("a", "", newSize("")), true},
		"another source":   {before, members("a", "/dev/vdb", newSize("2GiB")), true},
		"another member":   {before, members("b", "", newSize("2GiB")), true},
		"not known yet":    {before, members("a", "", sizeValue{StringValue: types.StringUnknown()}), true},
		"none known yet":   {before, types.MapUnknown(types.ObjectType{AttrTypes: part}), true},
		"none":             {before, none, true},
		"imported":         {none, before, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var resp mapplanmodifier.RequiresReplaceIfFuncResponse
			otherMembers(t.Context(), planmodifier.MapRequest{StateValue: test.before, PlanValue: test.now}, &resp)
			if resp.Diagnostics.HasError() || resp.RequiresReplace != test.want {
				t.Errorf("replaced: %v (%v), want %v", resp.RequiresReplace, resp.Diagnostics, test.want)
			}
		})
	}
}

// A module may make the pool's parts out of what the same apply finds out.
func TestPoolWhoseMembersAreNotKnownIsJudgedAtApply(t *testing.T) {
	t.Parallel()
	_, tf := memory(t)
	pool := tf.resource("lab_storage_pool")
	for _, members := range []any{unknown, args{"m1": unknown}, args{"m1": args{"size": unknown}}} {
		pool.mustPlan(actionCreate, args{"name": "lab", "members": members})
	}
	_, d := pool.plan(args{"name": "lab", "members": args{"m1": args{}}})
	wantErrorAt(t, d, `AttributeName("members")`, "stands alone")
}
