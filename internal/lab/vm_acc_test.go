// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// guest is a specification of the smallest virtual machine whose memory can be captured.
func guest(t testing.TB, host *acctest.Host) lab.MachineSpec {
	t.Helper()
	return lab.MachineSpec{
		Name: acctest.Name(t, "v"), Type: lab.TypeVirtualMachine, Image: host.Guest(t).Fingerprint, Pool: host.Pool(t), Running: true,
		CPUs: 1, Memory: "256MiB", Disk: "256MiB", Checkpointable: true,
		Config:   map[string]string{"security.secureboot": "false"},
		Networks: map[string]lab.NIC{"eth0": {Network: host.Network(t)}},
	}
}

// look is what a script reads of a guest's memory and disk.
const look = "cat /dev/shm/mark /root/mark /proc/sys/kernel/random/boot_id"

// mark writes to the memory and the disk of a guest and gives what look reads then.
func mark(t testing.TB, host *acctest.Host, machine, text string) string {
	t.Helper()
	return host.In(t, machine, "echo "+text+" > /dev/shm/mark; echo "+text+" > /root/mark; sync; "+look)
}

// One machine goes through all that its memory allows, since each of its boots takes a minute under emulation.
func TestVMCheckpoint(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachines(t)
	l := verbsOn(t, host)
	machine, timings := create(t, l, guest(t, host))
	t.Logf("created %+v", timings)
	clean := mark(t, host, machine.Name, "clean")
	snapshot := func(name string, stateful bool) lab.SnapshotID {
		t.Helper()
		made, took, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: name, Stateful: stateful})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("snapshot %q in %d ms: %+v", name, took, made)
		if made.Stateful != stateful {
			t.Errorf("snapshot %q is %+v", name, made)
		}
		return made.ID
	}
	reset := func(to lab.SnapshotID) *lab.ResetResult {
		t.Helper()
		result, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"v": to}}, func(_, step string) { t.Log(step) })
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("reset to %q: %+v", to.Name, result)
		return result
	}
	checkpoint, disk := snapshot("checkpoint", true), snapshot("disk", false)
	if got := host.In(t, machine.Name, look); got != clean {
		t.Errorf("the snapshots left the guest at %q, want %q", got, clean)
	}

	dirty := mark(t, host, machine.Name, "dirty")
	warm := reset(checkpoint)
	if got := host.In(t, machine.Name, look); got != clean || got == dirty {
		t.Errorf("reset to the checkpoint gave %q, want %q", got, clean)
	}
	again, err := l.Machine(t.Context(), machine.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(machine, again); diff != "" {
		t.Errorf("the machine is not what it was (-before +after):\n%s", diff)
	}

	mark(t, host, machine.Name, "dirty")
	cold := reset(disk)
	booted := host.In(t, machine.Name, "cat /root/mark; test -e /dev/shm/mark && echo kept; cat /proc/sys/kernel/random/boot_id")
	lines := strings.Split(booted, "\n")
	if len(lines) != 2 || lines[0] != "clean" || strings.Contains(clean, lines[1]) {
		t.Errorf("reset to the disk gave %q, want the disk and another boot than in %q", booted, clean)
	}
	t.Logf("usable after %d ms with its memory, %d ms with a boot", warm.UsableMS, cold.UsableMS)

	if state, _, err := host.Client(t).GetInstanceState(machine.Name); err != nil || state.StatusCode != api.Running {
		t.Errorf("the machine is %+v, %v", state, err)
	}
}
