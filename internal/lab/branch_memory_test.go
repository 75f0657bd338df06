// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// memoryWith gives a daemon in memory with a pool of a driver, and the verbs on it.
func memoryWith(t *testing.T, driver string, options ...lxdtest.Option) (*lxdtest.Server, *lab.Lab) {
	t.Helper()
	server := lxdtest.New(t, append(options, lxdtest.WithDrivers("btrfs", driver))...)
	if err := server.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "pool", Driver: driver}); err != nil {
		t.Fatal(err)
	}
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	return server, lab.New(daemon, capability.New(daemon))
}

// source makes an empty machine on the pool, and gives its id.
func source(t *testing.T, server *lxdtest.Server, post api.InstancesPost) lab.SourceID {
	t.Helper()
	client := server.Client(t)
	post.Name, post.Source = "source", api.InstanceSource{Type: "none"}
	if post.Devices == nil {
		post.Devices = map[string]map[string]string{}
	}
	root := map[string]string{"type": "disk", "path": "/", "pool": "pool"}
	if post.Config["migration.stateful"] == "true" {
		root["size.state"] = "2GiB" // without room for the memory, it does not start
	}
	post.Devices["root"] = root
	wait(t)(client.CreateInstance(post))
	live, _, err := client.GetInstance("source")
	if err != nil {
		t.Fatal(err)
	}
	return lab.SourceID{Machine: lab.MachineID{Project: "default", Name: "source", UUID: live.Config["volatile.uuid"]}}
}

// snapshotUntil takes a snapshot that the daemon deletes at some time, or never.
func snapshotUntil(t *testing.T, l *lab.Lab, machine lab.SourceID, name string, expires time.Time) lab.SourceID {
	t.Helper()
	snapshot, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.Machine, Name: name, ExpiresAt: expires})
	if err != nil {
		t.Fatal(err)
	}
	return lab.SourceID{Machine: machine.Machine, Snapshot: &snapshot.ID}
}

// A snapshot that the daemon is going to delete is no ground for a branch where the branch stands on it.
func TestBranchOfASnapshotThatExpires(t *testing.T) {
	t.Parallel()
	for driver, refused := range map[string]bool{"zfs": true, "btrfs": false, "lvm": false} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			server, l := memoryWith(t, driver)
			machine := source(t, server, api.InstancesPost{Type: "container"})
			spec := lab.BranchSpec{MachineSpec: lab.MachineSpec{Name: "branch"}}
			spec.Source = snapshotUntil(t, l, machine, "scheduled", time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC))
			if refused {
				wantBranchRefused(t, l, spec, "source", "the snapshot expires", "the branch stands on it", "2099-01-02T03:04:05Z", "without expires_at")
				spec.Source = snapshotUntil(t, l, machine, "kept", time.Time{})
			}
			if _, _, err := l.CreateBranch(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
}

// The machine id of a virtual machine is renewed by its own agent, while it is on no network.
func TestBranchOfAVirtualMachine(t *testing.T) {
	t.Parallel()
	var client lxdclient.InstanceServer
	var mu sync.Mutex
	scripts := []string{}
	nics := map[string]string{}
	exec := func(_ context.Context, e lxdtest.Exec) lxdtest.ExecResult {
		script := strings.Join(e.Command, " ")
		if !strings.Contains(script, "machine-id") {
			return lxdtest.ExecResult{}
		}
		live, _, err := client.GetInstance(e.Instance)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return lxdtest.ExecResult{Code: 1}
		}
		scripts = append(scripts, script)
		for name, device := range live.ExpandedDevices {
			nics[name] = device["type"]
		}
		return lxdtest.ExecResult{}
	}
	server, l := memoryWith(t, "btrfs", lxdtest.WithVirtualMachines(), lxdtest.WithExec(exec))
	client = server.Client(t)
	if err := client.CreateNetwork(api.NetworksPost{Name: "net", Type: "bridge"}); err != nil {
		t.Fatal(err)
	}
	nic := map[string]string{"type": "nic", "name": "eth0", "network": "net", "hwaddr": "00:16:3e:00:00:01"}
	machine := source(t, server, api.InstancesPost{Type: "virtual-machine", InstancePut: api.InstancePut{
		Config: map[string]string{"migration.stateful": "true"}, Devices: map[string]map[string]string{"eth0": nic},
	}})
	made, _, err := l.CreateBranch(t.Context(), lab.BranchSpec{Source: machine, MachineSpec: lab.MachineSpec{Name: "branch", Running: true}})
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) != 1 {
		t.Errorf("the machine id was renewed by %q", scripts)
	}
	if diff := cmp.Diff(map[string]string{"root": "disk", "eth0": "none"}, nics); diff != "" {
		t.Errorf("while it was renewed, the devices were (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]lab.NIC{"eth0": {Network: "net"}}, made.Networks); diff != "" {
		t.Errorf("the networks of the branch (-want +got):\n%s", diff)
	}
	if made.Type != lab.TypeVirtualMachine || !made.Checkpointable || !made.Running {
		t.Errorf("the branch is %+v", made.MachineSpec)
	}

	// One that may have no agent is left as it is.
	scripts = nil
	asked := lab.BranchSpec{Source: machine, MachineSpec: lab.MachineSpec{Name: "silent", Ready: lab.Ready{Address: "ipv4"}}}
	if _, _, err := l.CreateBranch(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	if len(scripts) != 0 {
		t.Errorf("without an agent it was asked for %q", scripts)
	}
}

// What a profile says of the source counts for the branch, too, unless it must not.
func TestBranchWithProfiles(t *testing.T) {
	t.Parallel()
	server, l := memoryWith(t, "btrfs")
	profile := api.ProfilesPost{Name: "guarded", ProfilePut: api.ProfilePut{Config: map[string]string{
		"boot.autostart": "true", "security.protection.delete": "true", "snapshots.schedule": "@daily", "limits.cpu": "2",
	}}}
	if err := server.Client(t).CreateProfile(profile); err != nil {
		t.Fatal(err)
	}
	machine := source(t, server, api.InstancesPost{Type: "container", InstancePut: api.InstancePut{Profiles: []string{"guarded"}}})
	made, _, err := l.CreateBranch(t.Context(), lab.BranchSpec{Source: machine, MachineSpec: lab.MachineSpec{Name: "branch"}})
	if err != nil {
		t.Fatal(err)
	}
	live, _, err := server.Client(t).GetInstance("branch")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"boot.autostart": "false", "security.protection.delete": "false", "snapshots.schedule": "@never", "limits.cpu": "2"}
	for key, value := range want {
		if got := live.ExpandedConfig[key]; got != value {
			t.Errorf("%s is %q, want %q", key, got, value)
		}
	}
	if err := l.DeleteMachine(t.Context(), made.ID); err != nil {
		t.Errorf("the branch cannot be deleted: %v", err)
	}
	declared := lab.BranchSpec{Source: machine, MachineSpec: lab.MachineSpec{Name: "plain", Profiles: []string{}}}
	if made, _, err = l.CreateBranch(t.Context(), declared); err != nil || len(made.Profiles) > 0 {
		t.Errorf("with no profiles declared it has %v, %v", made, err)
	}
}

// On a driver that cannot go back past a branch, a reset is refused before anything is touched, wherever the branch is.
func TestBranchesStandInTheWayOfAReset(t *testing.T) {
	t.Parallel()
	server, l := memoryWith(t, "zfs")
	machine := source(t, server, api.InstancesPost{Type: "container"})
	clean := snapshotUntil(t, l, machine, "clean", time.Time{})
	if err := server.Client(t).CreateProject(api.ProjectsPost{Name: "other", ProjectPut: api.ProjectPut{Config: map[string]string{"features.images": "false"}}}); err != nil {
		t.Fatal(err)
	}
	made, _, err := l.InProject("other").CreateBranch(t.Context(), lab.BranchSpec{Source: machine, MachineSpec: lab.MachineSpec{Name: "branch"}})
	if err != nil {
		t.Fatal(err)
	}
	reset := lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"m": *clean.Snapshot}}
	if _, err := l.Reset(t.Context(), reset, nil); err == nil || !strings.Contains(err.Error(), "branch (in project other)") {
		t.Errorf("the reset gave %v", err)
	}
	if err := l.InProject("other").DeleteMachine(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reset(t.Context(), reset, nil); err != nil {
		t.Errorf("without the branch: %v", err)
	}
}
