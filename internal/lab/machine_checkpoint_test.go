// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

const agentOff = "LXD VM agent isn't currently running"

// vmHost is a daemon in memory with virtual machines and an image for them.
func vmHost(t *testing.T, driver string, options ...lxdtest.Option) (*lxdtest.Server, *lab.Lab, lab.MachineSpec) {
	t.Helper()
	server, l := memoryWith(t, driver, append([]lxdtest.Option{lxdtest.WithVirtualMachines()}, options...)...)
	proved(t, server, l, driver)
	client := server.Client(t)
	wait(t)(client.CreateInstance(api.InstancesPost{
		Name: "seed", Type: "virtual-machine", Source: api.InstanceSource{Type: "none"},
		InstancePut: api.InstancePut{Devices: map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}},
	}))
	op, err := client.CreateImage(api.ImagesPost{Source: &api.ImagesPostSource{Type: "instance", Name: "seed"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(); err != nil {
		t.Fatal(err)
	}
	fingerprint, _ := op.Get().Metadata["fingerprint"].(string)
	wait(t)(client.DeleteInstance("seed"))
	return server, l, lab.MachineSpec{
		Name: "vm", Type: lab.TypeVirtualMachine, Image: fingerprint, Pool: "pool", Memory: "512MiB", Running: true, Checkpointable: true,
	}
}

// proofs holds a proof for each driver, as a function that makes it the first time.
var proofs sync.Map

// proved records on a daemon's pool what another one of the same driver was proved by, which saves the time.
func proved(t *testing.T, server *lxdtest.Server, l *lab.Lab, driver string) {
	t.Helper()
	once, _ := proofs.LoadOrStore(driver, sync.OnceValue(func() *capability.Proof {
		proof, _, err := l.Checker().EnsureProof(context.Background(), "pool")
		if err != nil {
			t.Error(err)
		}
		return proof
	}))
	prove, _ := once.(func() *capability.Proof)
	proof, environment := *prove(), l.Daemon().Server().Environment
	proof.Daemon, proof.Version, proof.Kernel = environment.CertificateFingerprint, environment.ServerVersion, environment.KernelVersion
	text, err := json.Marshal(proof)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client(t)
	pool, etag, err := client.GetStoragePool("pool")
	if err != nil {
		t.Fatal(err)
	}
	put := pool.Writable()
	put.Config["user.lab.proof"] = string(text)
	if err := client.UpdateStoragePool("pool", put, etag); err != nil {
		t.Fatal(err)
	}
	l.Checker().Forget()
}

func mustCreate(t *testing.T, l *lab.Lab, spec lab.MachineSpec) *lab.Machine {
	t.Helper()
	machine, _, err := l.CreateMachine(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func liveOf(t *testing.T, server *lxdtest.Server, name string) *api.Instance {
	t.Helper()
	live, _, err := server.Client(t).GetInstance(name)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func wantParts(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

// The room for the memory moves with the memory, and goes when it is not to be captured any more.
func TestCheckpointableMachineHasRoomForItsMemory(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "zfs")
	machine := mustCreate(t, l, spec)
	is := func(stateful, size string) {
		t.Helper()
		live := liveOf(t, server, "vm")
		if got := []string{live.Config["migration.stateful"], live.Devices["root"]["size.state"]}; !slices.Equal(got, []string{stateful, size}) {
			t.Errorf("migration.stateful and size.state are %q, want %q and %q", got, stateful, size)
		}
	}
	is("true", "832MiB") // 512, an eighth of it, and 256
	if diff := cmp.Diff(map[string]map[string]string{}, machine.Devices); diff != "" || !machine.Checkpointable {
		t.Errorf("it is read back as checkpointable: %v, with devices %v", machine.Checkpointable, machine.Devices)
	}

	larger := spec
	larger.Memory = "1GiB"
	_, err := l.UpdateMachine(t.Context(), machine.ID, spec, larger)
	wantParts(t, err, "memory", "allow_restart")
	is("true", "832MiB")
	larger.AllowRestart = true
	boot := server.Boot("default", "vm")
	if _, err := l.UpdateMachine(t.Context(), machine.ID, spec, larger); err != nil {
		t.Fatal(err)
	}
	is("true", "1408MiB")
	if now := server.Boot("default", "vm"); now == "" || now == boot {
		t.Errorf("it was not restarted: %q, before %q", now, boot)
	}

	smaller := larger
	smaller.Memory = "" // the daemon's default, which is as much
	if _, err := l.UpdateMachine(t.Context(), machine.ID, larger, smaller); err != nil {
		t.Fatal(err)
	}
	is("true", "1408MiB")

	off := smaller
	off.Checkpointable = false
	if diff := cmp.Diff([]string{"checkpointable"}, lab.NeedsRestart(smaller, off)); diff != "" {
		t.Error(diff)
	}
	if _, err := l.UpdateMachine(t.Context(), machine.ID, smaller, off); err != nil {
		t.Fatal(err)
	}
	is("", "")
}

// On btrfs the room is a quota on memory and disk together.
func TestRoomForMemoryOnBtrfs(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	for disk, want := range map[string]string{"": "21312MiB", "2GiB": "4928MiB"} {
		spec.Name, spec.Disk, spec.Running = "vm"+disk[:min(1, len(disk))], disk, false
		mustCreate(t, l, spec)
		if got := liveOf(t, server, spec.Name).Devices["root"]["size.state"]; got != want {
			t.Errorf("beside a disk of %q it is %q, want %q", disk, got, want)
		}
	}
}

func TestMachineThatCannotBeCapturedIsRefused(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	spec.Devices = map[string]map[string]string{"tpm": {"type": "tpm"}}
	_, _, err := l.CreateMachine(t.Context(), spec)
	wantParts(t, err, `device "tpm"`)
	spec.Type, spec.Devices = lab.TypeContainer, nil
	_, _, err = l.CreateMachine(t.Context(), spec)
	wantParts(t, err, "the memory of a container cannot be captured")
	if names, err := server.Client(t).GetInstanceNames(api.InstanceTypeAny); err != nil || len(names) > 0 {
		t.Errorf("made were %v, %v", names, err)
	}
}

// The agent of a virtual machine may answer, go away, and come back in the course of a boot.
func TestVirtualMachineIsUsableWhenItsAgentStays(t *testing.T) {
	t.Parallel()
	off := func(text string, calls *atomic.Int64) lxdtest.Option {
		return lxdtest.WithExec(func(context.Context, lxdtest.Exec) lxdtest.ExecResult {
			if n := calls.Add(1); n == 1 || n == 3 {
				return lxdtest.ExecResult{Err: text}
			}
			return lxdtest.ExecResult{}
		})
	}
	for _, text := range []string{agentOff, "LXD VM agent is not currently running"} {
		calls := &atomic.Int64{}
		_, l, spec := vmHost(t, "btrfs", off(text, calls))
		mustCreate(t, l, spec)
		if got := calls.Load(); got != 6 { // off, on, off, and three times in a row on
			t.Errorf("it was usable after %d commands, want 6", got)
		}
	}
	calls := &atomic.Int64{}
	server, l, _ := vmHost(t, "btrfs", off(agentOff, calls))
	machine := source(t, server, api.InstancesPost{Type: "container"})
	before := lab.MachineSpec{Name: "source", Type: lab.TypeContainer, Pool: "pool"}
	now := before
	now.Running = true
	if _, err := l.UpdateMachine(t.Context(), machine.Machine, before, now); err != nil {
		t.Fatal(err)
	}
	if got := calls.Load(); got != 2 {
		t.Errorf("a container was usable after %d commands, want 2", got)
	}
}

func TestVirtualMachineWithoutAgent(t *testing.T) {
	t.Parallel()
	calls := &atomic.Int64{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, l, spec := vmHost(t, "btrfs", lxdtest.WithExec(func(context.Context, lxdtest.Exec) lxdtest.ExecResult {
		if calls.Add(1) == 2 {
			cancel()
		}
		return lxdtest.ExecResult{Err: agentOff}
	}))
	network := api.NetworksPost{Name: "net", Type: "bridge", NetworkPut: api.NetworkPut{Config: map[string]string{"ipv4.address": "10.9.0.1/24"}}}
	if err := server.Client(t).CreateNetwork(network); err != nil {
		t.Fatal(err)
	}
	spec.Networks = map[string]lab.NIC{"eth0": {Network: "net"}}
	spec.Ready = lab.Ready{Address: "ipv4"}
	machine := mustCreate(t, l, spec)
	if machine.Addresses.IPv4 != "10.9.0.2" || calls.Load() != 0 {
		t.Errorf("it is usable at %q after %d commands", machine.Addresses.IPv4, calls.Load())
	}

	spec.Name, spec.Files = "filled", map[string]lab.File{"/a": {Content: "a"}}
	_, _, err := l.CreateMachine(ctx, spec)
	wantParts(t, err, "its image must bring LXD's agent", "leave out setup and files")
}

// The disk of a virtual machine is written by its agent, so its files come when that answers.
func TestFilesOfVirtualMachine(t *testing.T) {
	t.Parallel()
	server, l, spec := vmHost(t, "btrfs")
	spec.Files = map[string]lab.File{"/opt/a": {Content: "within"}}
	spec.Running = false
	machine := mustCreate(t, l, spec)
	if machine.Running {
		t.Error("it still runs")
	}
	wait(t)(server.Client(t).UpdateInstanceState("vm", api.InstanceStatePut{Action: "start"}, ""))
	if got := fileOf(t, server, "vm", "/opt/a"); got != "within" {
		t.Errorf("the file holds %q", got)
	}
}

// A guest is asked to shut down, and stopped by force when it does not.
func TestVirtualMachineIsAskedToShutDown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		deaf  bool
		calls int
	}{"one that does": {false, 1}, "one that does not": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, l, spec := vmHost(t, "btrfs", lxdtest.WithDeafGuests(test.deaf))
			machine := mustCreate(t, l, spec)
			stops := func() (count int) {
				for _, request := range server.Requests() {
					if request.Method == http.MethodPut && request.Path == "/1.0/instances/vm/state" {
						count++
					}
				}
				server.ForgetRequests()
				return count
			}
			server.ForgetRequests()
			stopped := spec
			stopped.Running = false
			changed, err := l.UpdateMachine(t.Context(), machine.ID, spec, stopped)
			if err != nil || changed.Running {
				t.Fatalf("it is %+v, %v", changed, err)
			}
			if got := stops(); got != test.calls {
				t.Errorf("stopping it took %d requests, want %d", got, test.calls)
			}
			if _, err := l.UpdateMachine(t.Context(), machine.ID, stopped, spec); err != nil {
				t.Fatal(err)
			}
			server.ForgetRequests()
			if err := l.DeleteMachine(t.Context(), machine.ID); err != nil {
				t.Fatal(err)
			}
			if got := stops(); got != test.calls {
				t.Errorf("before it was deleted, stopping it took %d requests, want %d", got, test.calls)
			}
		})
	}
}
