// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

func TestMachineIsUsableWhenItIsThere(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Description = "a machine"
	spec.CPUs, spec.Memory = 1, "256MiB"
	spec.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
	spec.Config = map[string]string{"user.role": "test"}
	spec.Files = map[string]lab.File{
		"/etc/motd":              {Content: "hello\n", Mode: "0640"},
		"/opt/a/deep/dir/binary": {Content: "AAEC", Base64: true, Mode: "0755", UID: 7, GID: 8},
	}
	spec.Setup = []lab.Setup{
		{Command: []string{"sh", "-c", "echo $WORD > /root/setup; pwd >> /root/setup"}, Environment: map[string]string{"WORD": "done"}, Directory: "/tmp"},
	}
	spec.Ready = lab.Ready{Command: []string{"test", "-s", "/root/setup"}, Address: "ipv4"}
	machine, timings := create(t, l, spec)

	if got := in(t, spec.Name, "cat /root/setup"); got != "done\n/tmp" {
		t.Errorf("the setup left %q", got)
	}
	if got := in(t, spec.Name, "stat -c '%a %u %g %s' /etc/motd /opt/a/deep/dir/binary"); got != "640 0 0 6\n755 7 8 3" {
		t.Errorf("the files are %q", got)
	}
	if machine.Addresses.IPv4 == "" {
		t.Error("it has no address, though that was its condition")
	}
	if !(0 < timings.CreateMS && timings.CreateMS <= timings.LaunchMS && timings.LaunchMS <= timings.UsableMS) {
		t.Errorf("the moments are not in order: %+v", timings)
	}

	again, err := l.Machine(t.Context(), machine.ID, spec.Config)
	if err != nil {
		t.Fatal(err)
	}
	want := spec
	want.Files, want.Setup = nil, nil // the daemon does not know them
	want.Profiles, want.Devices = []string{}, map[string]map[string]string{}
	if diff := cmp.Diff(want, again.MachineSpec); diff != "" {
		t.Errorf("it is read back otherwise than it was asked for (-asked +read):\n%s", diff)
	}
}

func TestFailedSetupShowsItsOutputAndKeepsTheMachine(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Setup = []lab.Setup{{Command: []string{"true"}}, {Command: []string{"sh", "-c", "echo out; echo why >&2; exit 3"}}}
	machine, _, err := l.CreateMachine(t.Context(), spec)
	if machine == nil {
		t.Fatal("the machine was forgotten")
	}
	t.Cleanup(func() { _ = l.DeleteMachine(context.Background(), machine.ID) })
	failed, ok := errors.AsType[*lab.SetupError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	want := lab.SetupError{Index: 1, Command: spec.Setup[1].Command, ExitCode: 3, Stdout: "out\n", Stderr: "why\n"}
	if diff := cmp.Diff(want, *failed); diff != "" {
		t.Error(diff)
	}
}

func TestExpiredWaitSaysWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Ready = lab.Ready{Command: []string{"sh", "-c", "echo not yet; exit 9"}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	machine, _, err := l.CreateMachine(ctx, spec)
	if machine == nil {
		t.Fatal("the machine was forgotten")
	}
	t.Cleanup(func() { _ = l.DeleteMachine(context.Background(), machine.ID) })
	if !errors.Is(err, lxd.ErrTimeout) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"not yet", "exit code 9", "returns 0 on machine"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

func TestMachineWhoseInitEndsIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Files = map[string]lab.File{"/sbin/init": {Content: "#!/bin/sh\nexit 1\n", Mode: "0755"}}
	machine, _, err := l.CreateMachine(t.Context(), spec)
	if machine == nil {
		t.Fatal("the machine was forgotten")
	}
	t.Cleanup(func() { _ = l.DeleteMachine(context.Background(), machine.ID) })
	if err == nil {
		t.Fatal("a machine without init counts as usable")
	}
}

func TestMachineChangesInPlace(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	before := tiny(t, host)
	before.Memory = "256MiB"
	machine, _ := create(t, l, before)

	now := before
	now.Memory, now.Description = "512MiB", "larger"
	now.Config = map[string]string{"user.role": "changed"}
	now.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
	changed, err := l.UpdateMachine(t.Context(), machine.ID, before, now)
	if err != nil {
		t.Fatal(err)
	}
	if changed.Memory != "512MiB" || changed.Description != "larger" || changed.Config["user.role"] != "changed" || len(changed.Networks) != 1 {
		t.Errorf("it was changed to %+v", changed.MachineSpec)
	}
	if changed.ID != machine.ID {
		t.Errorf("it became %v", changed.ID)
	}

	restarting := now
	restarting.Config = map[string]string{"security.nesting": "true"}
	if _, err := l.UpdateMachine(t.Context(), machine.ID, now, restarting); err == nil || !strings.Contains(err.Error(), "security.nesting") {
		t.Errorf("a change that needs a restart gave %v", err)
	}
	restarting.AllowRestart = true
	if changed, err = l.UpdateMachine(t.Context(), machine.ID, now, restarting); err != nil || !changed.Running {
		t.Errorf("with a restart allowed: running %v, %v", changed != nil && changed.Running, err)
	}
	stopped := restarting
	stopped.Running = false
	if changed, err = l.UpdateMachine(t.Context(), machine.ID, restarting, stopped); err != nil || changed.Running {
		t.Errorf("stopped: %v, %v", changed, err)
	}
}

func TestAnotherIncarnationIsNotTheMachine(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	first, _ := create(t, l, spec)
	if err := l.DeleteMachine(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	second, _ := create(t, l, spec)
	if _, err := l.Machine(t.Context(), first.ID, nil); !errors.Is(err, lxd.ErrNotFound) {
		t.Errorf("reading the first incarnation gave %v", err)
	}
	if err := l.DeleteMachine(t.Context(), first.ID); err != nil {
		t.Errorf("deleting what is gone gave %v", err)
	}
	if _, err := l.Machine(t.Context(), second.ID, nil); err != nil {
		t.Errorf("deleting the first incarnation took the second with it: %v", err)
	}
}
