// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// saved gives a host with a machine on a network and a checkpoint of it, and a branch of that on another network.
func saved(t *testing.T, driver string, options ...lxdtest.Option) (*lxdtest.Server, *lab.Lab, lab.BranchSpec) {
	t.Helper()
	server, l, spec := vmHost(t, driver, options...)
	for _, name := range []string{"net", "apart"} {
		if err := server.Client(t).CreateNetwork(api.NetworksPost{Name: name, Type: "bridge"}); err != nil {
			t.Fatal(err)
		}
	}
	spec.Networks = map[string]lab.NIC{"eth0": {Network: "net"}}
	machine := mustCreate(t, l, spec)
	taken := checkpoint(t, l, machine)
	return server, l, lab.BranchSpec{
		Source: lab.SourceID{Machine: machine.ID, Snapshot: &taken.ID}, WithMemory: true,
		MachineSpec: lab.MachineSpec{Name: "branch", Running: true, Networks: map[string]lab.NIC{"eth0": {Network: "apart"}}},
	}
}

// wantNoStaging fails unless only the given projects are there, and only the given machines in them.
func wantNoStaging(t *testing.T, server *lxdtest.Server, projects []string, machines ...string) {
	t.Helper()
	client := server.Client(t)
	found, err := client.GetProjectNames()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(projects, found); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
	instances, err := client.GetInstancesAllProjects(api.InstanceTypeAny)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, instance := range instances {
		names = append(names, instance.Project+"/"+instance.Name)
		if mark := instance.Config["user.lab.staging"]; mark != "" {
			t.Errorf("%s is marked as under way: %q", instance.Name, mark)
		}
	}
	if diff := cmp.Diff(machines, names); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
}

// A branch with memory goes on where the checkpoint was, in its source's project or in another, and is then a branch like
// any other. Its source is left as it is.
func TestBranchWithMemory(t *testing.T) {
	t.Parallel()
	for version, project := range map[string]string{"5.0.2": "default", "6.9": "other"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server, l, spec := saved(t, "btrfs", lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.ServerVersion = version }))
			makeOther(t, server)
			memory := server.Boot("default", "vm")
			wait(t)(server.Client(t).UpdateInstanceState("vm", api.InstanceStatePut{Action: "restart", Force: true}, ""))
			source, now := liveOf(t, server, "vm"), server.Boot("default", "vm")

			in := l.InProject(project)
			spec.Config = map[string]string{"user.role": "x"}
			made, timings, err := in.CreateBranch(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if got := server.Boot(project, "branch"); got != memory || got == now {
				t.Errorf("its memory is of boot %q, want %q", got, memory)
			}
			if timings.LaunchMS < timings.BranchMS || timings.UsableMS < timings.LaunchMS {
				t.Errorf("it took %+v", timings)
			}
			wantResumed(t, server, spec, made, project)
			if diff := cmp.Diff(source, liveOf(t, server, "vm")); diff != "" || server.Boot("default", "vm") != now {
				t.Errorf("its source was touched:\n%s", diff)
			}
			wantNoStaging(t, server, []string{"default", "other"}, project+"/branch", "default/vm")

			// Its own network comes in place.
			later := spec.MachineSpec
			later.Networks = map[string]lab.NIC{"eth0": {Network: "net"}}
			made, err = in.UpdateBranch(t.Context(), made.ID, spec.MachineSpec, later)
			if err != nil || made.Networks["eth0"].Network != "net" || server.Boot(project, "branch") != memory {
				t.Errorf("the update gave %+v, %v", made, err)
			}
			if err := in.DeleteMachine(t.Context(), made.ID); err != nil {
				t.Error(err)
			}
			wantNoStaging(t, server, []string{"default", "other"}, "default/vm")
		})
	}
}

func makeOther(t *testing.T, server *lxdtest.Server) {
	t.Helper()
	put := api.ProjectPut{Config: map[string]string{"features.images": "false"}}
	if err := server.Client(t).CreateProject(api.ProjectsPost{Name: "other", ProjectPut: put}); err != nil {
		t.Fatal(err)
	}
}

// wantResumed fails unless a branch is as it was asked for, with an identity of its own on the daemon.
func wantResumed(t *testing.T, server *lxdtest.Server, spec lab.BranchSpec, made *lab.Machine, project string) {
	t.Helper()
	if made.ID.Project != project || made.ID.UUID == spec.Source.Machine.UUID || made.Source != spec.Source.String() || !made.Running {
		t.Errorf("it is %+v", made)
	}
	if diff := cmp.Diff(spec.Networks, made.Networks); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	live, _, err := server.Client(t).UseProject(project).GetInstance("branch")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"size.state": live.ExpandedDevices["root"]["size.state"]}
	for _, key := range []string{"user.role", "limits.memory", "migration.stateful"} {
		got[key] = live.Config[key]
	}
	want := map[string]string{"user.role": "x", "limits.memory": "512MiB", "migration.stateful": "true"}
	want["size.state"] = liveOf(t, server, "vm").Devices["root"]["size.state"]
	if diff := cmp.Diff(want, got); diff != "" || live.Stateful {
		t.Errorf("it is stateful: %t, and has (-want +got):\n%s", live.Stateful, diff)
	}
}

// An interface that is declared to be on no network stays, since the guest knows of it, and is connected to nothing.
func TestBranchWithMemoryOnNoNetwork(t *testing.T) {
	t.Parallel()
	server, l, spec := saved(t, "zfs")
	spec.Networks = map[string]lab.NIC{}
	made, _, err := l.CreateBranch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"type": "nic", "nictype": "p2p", "name": "eth0"}
	if diff := cmp.Diff(want, liveOf(t, server, "branch").Devices["eth0"]); diff != "" || len(made.Networks) != 0 {
		t.Errorf("its networks are %v, its interface (-want +got):\n%s", made.Networks, diff)
	}
	later := spec.MachineSpec
	later.Networks = map[string]lab.NIC{"eth0": {Network: "net"}}
	if made, err = l.UpdateBranch(t.Context(), made.ID, spec.MachineSpec, later); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(later.Networks, made.Networks); diff != "" {
		t.Errorf("plugged in later (-want +got):\n%s", diff)
	}
	spec.Name = "second"
	if _, _, err := l.CreateBranch(t.Context(), spec); err != nil || server.Boot("default", "second") != server.Boot("default", "branch") {
		t.Errorf("a second branch gave %v", err)
	}
}

// Files and setup come through the agent, and one that fails is kept, to be replaced.
func TestBranchWithMemoryIsPrepared(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	commands := []string{}
	server, l, spec := saved(t, "btrfs", lxdtest.WithExec(func(_ context.Context, e lxdtest.Exec) lxdtest.ExecResult {
		if e.Instance == "branch" {
			mu.Lock()
			commands = append(commands, strings.Join(e.Command, " "))
			mu.Unlock()
		}
		if e.Command[0] == "fail" {
			return lxdtest.ExecResult{Code: 3}
		}
		return lxdtest.ExecResult{Stdout: "running\n"}
	}))
	spec.Files = map[string]lab.File{"/note": {Content: "hello"}}
	spec.Setup = []lab.Setup{{Command: []string{"fail"}}}
	made, _, err := l.CreateBranch(t.Context(), spec)
	if made == nil || made.Name != "branch" {
		t.Fatalf("it gave %+v, %v", made, err)
	}
	wantParts(t, err, `"fail"`, "returned 3")
	wantNoStaging(t, server, []string{"default"}, "default/branch", "default/vm")
	if got := fileOf(t, server, "branch", "/note"); got != "hello" {
		t.Errorf("the file holds %q", got)
	}
	for _, command := range commands {
		if strings.Contains(command, "machine-id") {
			t.Errorf("the machine id was renewed: %s", command)
		}
	}
}

// When the memory does not come back, nothing is left.
func TestBranchWhoseMemoryIsLost(t *testing.T) {
	t.Parallel()
	server, l, spec := saved(t, "btrfs")
	server.Set(lxdtest.WithMemoryFaults(func(string) string { return "qemu: wrong magic" }))
	made, _, err := l.CreateBranch(t.Context(), spec)
	if made != nil {
		t.Errorf("it gave %+v", made)
	}
	wantParts(t, err, "the memory did not come back", "wrong magic")
	if argument, ok := errors.AsType[*lab.ArgumentError](err); !ok || argument.Argument != "memory" {
		t.Errorf("the error is of %+v", argument)
	}
	wantNoStaging(t, server, []string{"default"}, "default/vm")
	server.Set(lxdtest.WithMemoryFaults(nil))
	if _, _, err := l.CreateBranch(t.Context(), spec); err != nil {
		t.Error(err)
	}
}

// What cannot come back, or would get in its source's way, is refused before anything is touched.
func TestBranchWithMemoryIsRefused(t *testing.T) {
	t.Parallel()
	server, l, spec := saved(t, "btrfs")
	plain, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: spec.Source.Machine, Name: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	container := source(t, server, api.InstancesPost{Type: "container"})
	on := func(name string, nic lab.NIC) func(*lab.BranchSpec) {
		return func(s *lab.BranchSpec) { s.Networks = map[string]lab.NIC{name: nic} }
	}
	for name, test := range map[string]struct {
		change   func(*lab.BranchSpec)
		argument string
		says     []string
	}{
		"a machine":      {func(s *lab.BranchSpec) { s.Source.Snapshot = nil }, "memory", []string{"the source holds no memory", "stateful = true"}},
		"without memory": {func(s *lab.BranchSpec) { s.Source.Snapshot = &plain.ID }, "memory", []string{"the source holds no memory"}},
		"a container":    {func(s *lab.BranchSpec) { s.Source = container }, "memory", []string{"the memory of a container cannot be captured"}},
		"stopped":        {func(s *lab.BranchSpec) { s.Running = false }, "running", []string{"would lose the memory"}},
		"processors":     {func(s *lab.BranchSpec) { s.CPUs = 2 }, "cpus", []string{"cpus cannot be other than there"}},
		"disk":           {func(s *lab.BranchSpec) { s.Disk = "30GiB" }, "disk", []string{"goes on without a boot"}},
		"devices":        {func(s *lab.BranchSpec) { s.Devices = map[string]map[string]string{} }, "devices", []string{"Leave out devices"}},
		"profiles":       {func(s *lab.BranchSpec) { s.Profiles = []string{} }, "profiles", []string{"Leave out profiles"}},
		"cloud-init":     {func(s *lab.BranchSpec) { s.CloudInit.UserData = "#!/bin/sh" }, "cloud_init", []string{"without a boot"}},
		"config":         {func(s *lab.BranchSpec) { s.Config = map[string]string{"limits.cpu.priority": "1"} }, "config", []string{"config cannot be"}},
		"its network":    {func(s *lab.BranchSpec) { s.Networks = nil }, "networks", []string{`on network "net" the two would collide`, "networks = {}"}},
		"same network": {on("eth0", lab.NIC{Network: "net"}), "networks", []string{
			"keeps the MAC address", `so is or was interface "eth0" of its source`, "plugs in a new interface",
		}},
		"a new interface": {on("eth1", lab.NIC{Network: "apart"}), "networks", []string{`no interface "eth1"`, "the checkpoint has eth0"}},
		"an address":      {on("eth0", lab.NIC{Network: "apart", IPv4Address: "10.0.0.9"}), "networks", []string{"keeps its addresses", "declared for eth0"}},
	} {
		asked := spec
		test.change(&asked)
		server.ForgetRequests()
		wantBranchRefused(t, l, asked, test.argument, test.says...)
		for _, request := range server.Requests() {
			if request.Method != http.MethodGet {
				t.Errorf("%s: the daemon was asked for %+v", name, request)
			}
		}
	}
}

// A profile that says something else where the branch is to be makes another shape, which is found before it starts.
func TestBranchWithMemoryOfAnotherShapeIsRefused(t *testing.T) {
	t.Parallel()
	server, l, spec := saved(t, "btrfs")
	client := server.Client(t)
	put := api.InstancePut{Profiles: []string{"default"}, Config: map[string]string{"migration.stateful": "true"}}
	put.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool", "size.state": "2GiB"}}
	wait(t)(client.CreateInstance(api.InstancesPost{Name: "profiled", Type: "virtual-machine", Source: api.InstanceSource{Type: "none"}, InstancePut: put}))
	wait(t)(client.UpdateInstanceState("profiled", api.InstanceStatePut{Action: "start"}, ""))
	id := lab.MachineID{Project: "default", Name: "profiled", UUID: liveOf(t, server, "profiled").Config["volatile.uuid"]}
	taken, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: id, Name: "saved", Stateful: true})
	if err != nil {
		t.Fatal(err)
	}
	makeOther(t, server)
	profile := api.ProfilePut{Config: map[string]string{"limits.cpu": "3"}}
	if err := client.UseProject("other").UpdateProfile("default", profile, ""); err != nil {
		t.Fatal(err)
	}
	spec.Source, spec.Networks = lab.SourceID{Machine: id, Snapshot: &taken.ID}, nil
	made, _, err := l.InProject("other").CreateBranch(t.Context(), spec)
	refusal, ok := errors.AsType[*capability.Refusal](err)
	if !ok || made != nil || !strings.Contains(refusal.Detail(), "limits.cpu was not set, and is 3 now") {
		t.Errorf("it gave %+v, %v", made, err)
	}
	wantNoStaging(t, server, []string{"default", "other"}, "default/profiled", "default/vm")
	if _, _, err := l.CreateBranch(t.Context(), spec); err != nil {
		t.Errorf("in its source's project: %v", err)
	}
}

// A machine of the branch's name is left alone, whatever mark of ours it has been given.
func TestBranchWithMemoryTouchesNoOther(t *testing.T) {
	t.Parallel()
	server, l, spec := saved(t, "btrfs")
	client := server.Client(t)
	post := api.InstancesPost{Name: "branch", Type: "container", Source: api.InstanceSource{Type: "none"}}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
	for _, mark := range []string{"", "0123456789ab 2020-01-02T03:04:05Z abc default/branch", "0123456789ab 2020-01-02T03:04:05Z abc default/vm"} {
		post.Config = map[string]string{"user.lab.staging": mark, "user.lab.id": "other"}
		wait(t)(client.CreateInstance(post))
		before := liveOf(t, server, "branch")
		if _, _, err := l.CreateBranch(t.Context(), spec); !errors.Is(err, lxd.ErrExists) {
			t.Errorf("with the mark %q: %v", mark, err)
		}
		if diff := cmp.Diff(before, liveOf(t, server, "branch")); diff != "" {
			t.Errorf("with the mark %q it was touched:\n%s", mark, diff)
		}
		wait(t)(client.DeleteInstance("branch"))
	}
	wantNoStaging(t, server, []string{"default"}, "default/vm")
}
