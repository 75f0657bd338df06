// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func fileOf(t *testing.T, server *lxdtest.Server, machine, path string) string {
	t.Helper()
	content, _, err := server.Client(t).GetInstanceFile(machine, path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func checkpoint(t *testing.T, l *lab.Lab, machine *lab.Machine) *lab.Snapshot {
	t.Helper()
	made, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "saved", Stateful: true})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		driver, disk string // disk is the size of a container's beside it
		size         int64
	}{
		"a pool that counts": {"btrfs", "1GiB", 38 << 20}, "a pool that does not": {"btrfs", "", 0}, "thin volumes": {"lvm", "1GiB", 0},
	} {
		server, l, spec := vmHost(t, test.driver)
		wait(t)(server.Client(t).CreateInstance(api.InstancesPost{
			Name: "beside", Type: api.InstanceTypeContainer, Source: api.InstanceSource{Type: api.SourceTypeNone},
			InstancePut: api.InstancePut{Devices: map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool", "size": test.disk}}},
		}))
		machine := mustCreate(t, l, spec)
		boot := server.Boot("default", "vm")
		made := checkpoint(t, l, machine)
		if !made.Stateful || made.StateBytes != test.size {
			t.Errorf("on %s the snapshot is %+v, want %d bytes of memory", name, made, test.size)
		}
		if live := liveOf(t, server, "vm"); live.StatusCode != api.Running || server.Boot("default", "vm") != boot {
			t.Errorf("the machine is %s", live.Status)
		}
		if names, err := server.Client(t).GetInstanceNames(api.InstanceTypeAny); err != nil || len(names) != 2 {
			t.Errorf("there are the machines %v, %v", names, err)
		}
		plain, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "plain"})
		if err != nil || plain.StateBytes != 0 || plain.Stateful {
			t.Errorf("a snapshot without memory is %+v, %v", plain, err)
		}
	}
}

// What cannot be captured is refused before the guest is paused.
func TestCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	stopped, plain := spec, spec
	stopped.Name, stopped.Running = "stopped", false
	plain.Name, plain.Checkpointable = "plain", false
	machines := map[string]lab.MachineID{
		"the machine does not run":                        mustCreate(t, l, stopped).ID,
		"the machine is not set up for keeping":           mustCreate(t, l, plain).ID,
		"the memory of a container cannot be kept":        source(t, server, api.InstancesPost{Type: "container"}).Machine,
		"the machine has a snapshot of this name already": mustCreate(t, l, spec).ID,
	}
	for says, id := range machines {
		if id.Name == "vm" {
			if _, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: id, Name: "saved"}); err != nil {
				t.Fatal(err)
			}
		}
		asked := lab.SnapshotSpec{Machine: id, Name: "saved", Stateful: true}
		server.ForgetRequests()
		_, _, err := l.CreateSnapshot(t.Context(), asked)
		wantParts(t, err, says)
		for _, request := range server.Requests() {
			if request.Method == http.MethodPost {
				t.Errorf("%s: the daemon was asked for %+v", says, request)
			}
		}
		refused := l.AdmitSnapshot(t.Context(), asked)
		if want := id.Name != "vm"; (refused != nil) != want {
			t.Errorf("at plan, %q gave %v", says, refused)
		}
		// What the plan at hand cures is left to the apply, which looks again.
		l.Checker().PlanMachine(id.String(), capability.PlannedMachine{Checkpointable: true, Running: true})
		if err := l.AdmitSnapshot(t.Context(), asked); (err == nil) != (id.Name != "source") {
			t.Errorf("with a plan that cures it, %q gave %v", says, err)
		}
		_, _, err = l.CreateSnapshot(t.Context(), asked)
		wantParts(t, err, says)
	}
}

// When the daemon fails, the guest goes on, and nothing is left.
func TestCheckpointThatFails(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"5.0.2", "5.21.3"} {
		server, l, spec := vmHost(t, "btrfs", lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.ServerVersion = version }))
		machine := mustCreate(t, l, spec)
		boot := server.Boot("default", "vm")
		server.Set(lxdtest.WithMemoryFaults(func(verb string) string { return map[string]string{"dump": "no space left on device"}[verb] }))
		made, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "saved", Stateful: true})
		if made != nil {
			t.Errorf("it gave %+v", made)
		}
		wantParts(t, err, "no space left on device", `machine "vm" is running, and nothing is left of the snapshot`)
		if live := liveOf(t, server, "vm"); live.StatusCode != api.Running || server.Boot("default", "vm") != boot {
			t.Errorf("on LXD %s the machine is %s", version, live.Status)
		}
		if names, err := server.Client(t).GetInstanceSnapshotNames("vm"); err != nil || len(names) > 0 {
			t.Errorf("on LXD %s there are the snapshots %v, %v", version, names, err)
		}
		server.Set(lxdtest.WithMemoryFaults(nil))
		checkpoint(t, l, machine)
	}
}

// A guest that somebody else's failed capture left paused goes on, and is not started beside itself.
func TestPausedMachineGoesOn(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs", lxdtest.WithMemoryFaults(func(string) string { return "no space left on device" }))
	machine := mustCreate(t, l, spec)
	boot := server.Boot("default", "vm")
	operation, err := server.Client(t).CreateInstanceSnapshot("vm", api.InstanceSnapshotsPost{Name: "theirs", Stateful: true})
	if err != nil || operation.Wait() == nil {
		t.Fatal("it was captured", err)
	}
	if found, err := l.RefreshMachine(t.Context(), machine.ID, nil); err != nil || found.Running {
		t.Fatalf("paused, it is read as %+v, %v", found, err)
	}
	if found, err := l.UpdateMachine(t.Context(), machine.ID, spec, spec); err != nil || !found.Running || server.Boot("default", "vm") != boot {
		t.Errorf("it is %+v, %v", found, err)
	}
}

// One that is interrupted is left to the daemon to end, and what comes of it is told.
func TestCheckpointThatIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault string
		kept  bool
	}{"and succeeds": {"", true}, "and fails": {"no space left on device", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server, l, spec := vmHost(t, "btrfs", lxdtest.WithMemoryFaults(func(string) string {
				cancel()
				return test.fault
			}))
			machine := mustCreate(t, l, spec)
			made, _, err := l.CreateSnapshot(ctx, lab.SnapshotSpec{Machine: machine.ID, Name: "saved", Stateful: true})
			if !errors.Is(err, context.Canceled) || (made != nil) != test.kept {
				t.Errorf("it gave %+v, %v", made, err)
			}
			if live := liveOf(t, server, "vm"); live.StatusCode != api.Running {
				t.Errorf("the machine is %s", live.Status)
			}
			if names, err := server.Client(t).GetInstanceSnapshotNames("vm"); err != nil || (len(names) == 1) != test.kept {
				t.Errorf("there are the snapshots %v, %v", names, err)
			}
		})
	}
}

// While the memory is captured, LXD 5.0 shows the machine as stopped. That is no drift; to be stopped is.
func TestMachineIsNotStoppedWhileItIsCaptured(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	machine := mustCreate(t, l, spec)
	paused, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	another := lab.New(daemon, capability.New(daemon)) // as another run has it
	server.Set(lxdtest.WithMemoryFaults(func(string) string {
		close(paused)
		<-goOn
		return ""
	}))
	go func() {
		defer close(ended)
		_, _, err := l.CreateSnapshot(context.Background(), lab.SnapshotSpec{Machine: machine.ID, Name: "saved", Stateful: true})
		if err != nil {
			t.Error(err)
		}
	}()
	<-paused
	if live := liveOf(t, server, "vm"); live.StatusCode != api.Stopped {
		t.Fatalf("the daemon shows it as %s, which proves nothing", live.Status)
	}
	for _, read := range []func(context.Context, lab.MachineID, map[string]string) (*lab.Machine, error){another.RefreshMachine, another.Machine} {
		if found, err := read(t.Context(), machine.ID, nil); err != nil || !found.Running {
			t.Errorf("it is read as running: %v, %v", found != nil && found.Running, err)
		}
	}
	close(goOn)
	<-ended
	wait(t)(server.Client(t).UpdateInstanceState("vm", api.InstanceStatePut{Action: "stop", Force: true}, ""))
	if found, err := another.Machine(t.Context(), machine.ID, nil); err != nil || found.Running {
		t.Errorf("when it has stopped it is read as %+v, %v", found, err)
	}
}
