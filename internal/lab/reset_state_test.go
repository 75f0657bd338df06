// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"syscall"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// crash ends a machine's init from outside, as the kernel does when it runs out of memory.
func crash(t *testing.T, host *acctest.Host, l *lab.Lab, machine string) {
	t.Helper()
	state, _, err := host.Client(t).GetInstanceState(machine)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(int(state.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := l.Daemon().Idle(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
}

// A machine that is frozen or has crashed is put back as one that runs.
func TestResetOfFrozenAndCrashedMachines(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machines, snapshots := scenario(t, host, l, 2)
	for _, machine := range machines {
		in(t, machine.Name, "echo dirty > /root/mark; sync")
	}
	host.LXC(t, "pause", machines[0].Name)
	crash(t, host, l, machines[1].Name)

	result, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: snapshots}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range machines {
		if got := in(t, machine.Name, "cat /root/mark"); got != "clean" {
			t.Errorf("%s came back as %q", machine.Name, got)
		}
	}
	for key, took := range result.Machines {
		if took.VerifiedBy != capability.WitnessLineage && took.VerifiedBy != capability.WitnessProof {
			t.Errorf("that the disk of machine %s went back is shown by %q", key, took.VerifiedBy)
		}
	}
}

// What counts is whether a machine is declared to be running, not whether it ran when the snapshot was taken.
func TestResetEndsInTheDeclaredPowerState(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	for name, declared := range map[string]bool{"running": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tiny(t, host)
			before.Running = !declared
			machine, _ := create(t, l, before)
			snapshot, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "clean"})
			if err != nil {
				t.Fatal(err)
			}
			now := before
			now.Running = declared
			if _, err := l.UpdateMachine(t.Context(), machine.ID, before, now); err != nil {
				t.Fatal(err)
			}
			if !declared { // and somebody started it by hand
				host.LXC(t, "start", machine.Name)
			}
			result, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"x": snapshot.ID}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			live, _, err := host.Client(t).GetInstance(machine.Name)
			if err != nil {
				t.Fatal(err)
			}
			if running := live.StatusCode == api.Running; running != declared {
				t.Errorf("declared running: %v, and it is %s", declared, live.Status)
			}
			if usable := result.Machines["x"].UsableMS > 0; usable != declared {
				t.Errorf("declared running: %v, and the reset took %+v", declared, result.Machines["x"])
			}
			if live.Config["user.lab.running"] != map[bool]string{true: "true", false: "false"}[declared] {
				t.Errorf("the machine now counts as declared running: %q", live.Config["user.lab.running"])
			}
		})
	}
}
