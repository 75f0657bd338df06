// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"
	"testing"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// A reset is refused at plan where the driver cannot go back, and what is in the way is named. This host has none of
// these drivers, so the daemon is in memory.
func TestResetIsRefusedWhereTheDriverCannotGoBack(t *testing.T) {
	t.Parallel()
	thick := map[string]string{"lvm.use_thinpool": "false"}
	for name, test := range map[string]struct {
		driver   string
		config   map[string]string
		snapshot string // of s1 and s2, which are taken in this order
		branch   bool
		says     []string // none where it is not refused
	}{
		"zfs, past a newer snapshot": {"zfs", nil, "s1", false, []string{"Host refused", `pool "pool" has the driver "zfs"`, `newer snapshots of machine "m": s2`, "newest snapshot", "Remove the newer snapshots first"}},
		"zfs, to the newest":         {"zfs", nil, "s2", false, nil},
		"zfs, past a branch":         {"zfs", nil, "s2", true, []string{"Host refused", `branches of machine "m": experiment`, "Remove the branch first"}},
		"lvm that is thick":          {"lvm", thick, "s2", false, []string{"Host refused", "lvm.use_thinpool"}},
		"lvm that is thin":           {"lvm", nil, "s1", true, nil},
		"btrfs":                      {"btrfs", nil, "s1", true, nil},
		"dir":                        {"dir", nil, "s2", false, []string{"Host refused", "copies every file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon := lxdtest.New(t, lxdtest.WithDrivers("dir", "btrfs", "zfs", "lvm"))
			client := daemon.Client(t)
			must(t, client.CreateStoragePool(api.StoragePoolsPost{
				Name: "pool", Driver: test.driver, StoragePoolPut: api.StoragePoolPut{Config: test.config},
			}))
			machine := makeByHand(t, client, "m", nil)
			ids := map[string]lab.SnapshotID{}
			for _, snapshot := range []string{"s1", "s2"} {
				operation, err := client.CreateInstanceSnapshot("m", api.InstanceSnapshotsPost{Name: snapshot})
				must(t, err)
				must(t, operation.Wait())
				made, _, err := client.GetInstanceSnapshot("m", snapshot)
				must(t, err)
				ids[snapshot] = lab.SnapshotID{Machine: machine, Name: snapshot, CreatedAt: made.CreatedAt}
			}
			if test.branch {
				makeByHand(t, client, "experiment", map[string]string{"user.lab.source": machine.String()})
			}

			reset := newTerraform(t, args{"address": daemon.Address()}).resource("lab_reset")
			_, d := reset.plan(args{"snapshots": args{"x": ids[test.snapshot].String()}, "restore_on_create": true})
			if test.says == nil {
				noErrors(t, d)
				return
			}
			wantErrorAt(t, d, `AttributeName("snapshots").ElementKeyString("x")`, test.says...)
		})
	}
}

// makeByHand makes a machine without the provider.
func makeByHand(t *testing.T, client lxdclient.InstanceServer, name string, config map[string]string) lab.MachineID {
	t.Helper()
	post := api.InstancesPost{Name: name, Type: api.InstanceTypeContainer, Source: api.InstanceSource{Type: api.SourceTypeNone}}
	post.Config, post.Profiles = config, []string{}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
	operation, err := client.CreateInstance(post)
	must(t, err)
	must(t, operation.Wait())
	live, _, err := client.GetInstance(name)
	must(t, err)
	return lab.MachineID{Project: live.Project, Name: name, UUID: live.Config["volatile.uuid"]}
}

// All that is in the way is told at once, each at its place.
func TestResetTellsOfEveryMachineThatCannotGoBack(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	client := daemon.Client(t)
	snapshots := args{}
	for _, name := range []string{"a", "b"} {
		gone := lab.SnapshotID{Machine: makeByHand(t, client, name, nil), Name: "clean"}
		snapshots[name] = gone.String()
	}
	_, d := tf.resource("lab_reset").plan(args{"snapshots": snapshots, "restore_on_create": true})
	for _, name := range []string{"a", "b"} {
		wantErrorAt(t, d, `AttributeName("snapshots").ElementKeyString("`+name+`")`, `Machine "`+name+`" cannot be put back to snapshot "clean"`)
	}
	if got := strings.Count(d.String(), "Unable to reset scenario"); got != 2 {
		t.Errorf("there are %d errors, want one for each machine:%s", got, d)
	}
}
