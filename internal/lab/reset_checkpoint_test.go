// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func resetTo(t *testing.T, l *lab.Lab, snapshots ...*lab.Snapshot) (*lab.ResetResult, error) {
	t.Helper()
	spec := lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{}}
	for _, snapshot := range snapshots {
		spec.Snapshots[snapshot.ID.Machine.Name] = snapshot.ID
	}
	return l.Reset(t.Context(), spec, nil)
}

// changed updates a machine, and gives what it is declared to be now.
func changed(t *testing.T, l *lab.Lab, machine *lab.Machine, before lab.MachineSpec, change func(*lab.MachineSpec)) lab.MachineSpec {
	t.Helper()
	now := before
	now.AllowRestart = true
	change(&now)
	if _, err := l.UpdateMachine(t.Context(), machine.ID, before, now); err != nil {
		t.Fatal(err)
	}
	return now
}

// ignoreVolatile leaves out what the daemon notes of a machine by itself.
var ignoreVolatile = cmpopts.IgnoreMapEntries(func(key, _ string) bool { return strings.HasPrefix(key, "volatile.") })

// A checkpoint brings back the memory, without a boot; a snapshot without memory boots. One reset may do both. What was
// declared since stays as far as that can be on a machine that runs.
func TestResetToCheckpoint(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"5.0.2", "6.9"} {
		server, l, spec := vmHost(t, "btrfs", lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.ServerVersion = version }))
		warm := mustCreate(t, l, spec)
		cold := spec
		cold.Name = "cold"
		other := mustCreate(t, l, cold)
		memory := server.Boot("default", "vm")
		saved := checkpoint(t, l, warm)
		plain, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: other.ID, Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		now := changed(t, l, warm, spec, func(s *lab.MachineSpec) {
			s.Description, s.Disk, s.Ready = "changed after", "12GiB", lab.Ready{Command: []string{"true"}}
			s.Config = map[string]string{"user.role": "changed", "boot.autostart": "false"}
		})
		wait(t)(server.Client(t).UpdateInstanceState("vm", api.InstanceStatePut{Action: "restart", Force: true}, ""))
		before, coldBoot := liveOf(t, server, "vm"), server.Boot("default", "cold")

		result, err := resetTo(t, l, saved, plain)
		if err != nil {
			t.Fatal(err)
		}
		if got := server.Boot("default", "vm"); got != memory {
			t.Errorf("on LXD %s the memory is of boot %q, want %q", version, got, memory)
		}
		if got := server.Boot("default", "cold"); got == "" || got == coldBoot {
			t.Errorf("on LXD %s the other machine was not booted anew: %q", version, got)
		}
		if diff := cmp.Diff(before.Writable(), liveOf(t, server, "vm").Writable(), ignoreVolatile); diff != "" {
			t.Errorf("on LXD %s it is not as declared (-before +after):\n%s", version, diff)
		}
		if read, err := l.Machine(t.Context(), warm.ID, now.Config); err != nil || !read.Running || read.Disk != "12GiB" {
			t.Errorf("it is read as %+v, %v", read, err)
		}
		for name, started := range map[string]bool{"vm": false, "cold": true} {
			// In memory it takes no time, so what counts is only what cannot be.
			if took := result.Machines[name]; took.UsableMS < took.RestoredMS || !started && took.StartedMS != 0 {
				t.Errorf("on LXD %s machine %q took %+v", version, name, took)
			}
		}
	}
}

// The memory only fits the machine that it was taken of.
func TestResetToCheckpointOfAnotherShapeIsRefused(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	machine := mustCreate(t, l, spec)
	saved := checkpoint(t, l, machine)
	if err := server.Client(t).CreateNetwork(api.NetworksPost{Name: "net", Type: "bridge"}); err != nil {
		t.Fatal(err)
	}
	now := changed(t, l, machine, spec, func(s *lab.MachineSpec) {
		s.Memory, s.CPUs = "1GiB", 2
		s.Networks = map[string]lab.NIC{"eth0": {Network: "net"}}
	})
	before := liveOf(t, server, "vm")
	server.ForgetRequests()
	_, err := resetTo(t, l, saved)
	if _, ok := errors.AsType[*lab.ResetRefusedError](err); !ok {
		t.Fatalf("got %v", err)
	}
	wantParts(t, err, "limits.memory was 512MiB, and is 1GiB now", "limits.cpu was not set, and is 2 now", `device "eth0" was added`)
	for _, request := range server.Requests() {
		if request.Method == http.MethodPut {
			t.Errorf("the daemon was asked for %+v", request)
		}
	}
	if diff := cmp.Diff(before, liveOf(t, server, "vm")); diff != "" {
		t.Errorf("it was touched:\n%s", diff)
	}
	// The same apply may change the machine back.
	asked := lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"vm": saved.ID}}
	if err := l.AdmitReset(t.Context(), asked); err != nil {
		t.Errorf("at plan it is refused: %v", err)
	}
	// The same in other words is no other shape.
	changed(t, l, machine, now, func(s *lab.MachineSpec) { s.Memory, s.CPUs, s.Networks = "524288KiB", 0, nil })
	if _, err := resetTo(t, l, saved); err != nil {
		t.Error(err)
	}
	if got := liveOf(t, server, "vm").Config["limits.memory"]; got != "512MiB" {
		t.Errorf("its memory is %q", got)
	}
}

// A machine that is declared to be stopped gets its disk back, and is stopped.
func TestResetOfStoppedMachineToCheckpoint(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	machine := mustCreate(t, l, spec)
	saved := checkpoint(t, l, machine)
	changed(t, l, machine, spec, func(s *lab.MachineSpec) { s.Memory, s.Running = "1GiB", false })
	result, err := resetTo(t, l, saved)
	if err != nil {
		t.Fatal(err)
	}
	live := liveOf(t, server, "vm")
	if live.StatusCode != api.Stopped || live.Stateful || live.Config["limits.memory"] != "1GiB" || result.Machines["vm"].UsableMS != 0 {
		t.Errorf("it is %s with %v, and took %+v", live.Status, live.Config, result.Machines["vm"])
	}
}

// When the memory does not come back, the error says where the machine stands, and it is configured as declared.
func TestResetToCheckpointThatFails(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	machine := mustCreate(t, l, spec)
	memory := server.Boot("default", "vm")
	saved := checkpoint(t, l, machine)
	changed(t, l, machine, spec, func(s *lab.MachineSpec) { s.Description, s.Config = "after", map[string]string{"user.role": "changed"} })
	server.Set(lxdtest.WithMemoryFaults(func(verb string) string { return map[string]string{"resume": "load of migration failed"}[verb] }))
	_, err := resetTo(t, l, saved)
	wantParts(t, err, "load of migration failed",
		`it is stopped now, and whether its disk is back at snapshot "saved" is not known, and its memory is not`)
	live := liveOf(t, server, "vm")
	if live.Description != "after" || live.Config["user.role"] != "changed" || live.Config["user.lab.running"] != "true" {
		t.Errorf("it is configured as %q with %v", live.Description, live.Config)
	}
	server.Set(lxdtest.WithMemoryFaults(nil))
	if _, err := resetTo(t, l, saved); err != nil {
		t.Fatal(err)
	}
	if got := server.Boot("default", "vm"); got != memory {
		t.Errorf("the memory is of boot %q, want %q", got, memory)
	}
}
