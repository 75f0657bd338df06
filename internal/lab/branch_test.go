// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// branch makes a branch and removes it when the test ends.
func branch(t testing.TB, l *lab.Lab, spec lab.BranchSpec) (*lab.Machine, lab.BranchTimings) {
	t.Helper()
	made, timings, err := l.CreateBranch(t.Context(), spec)
	if made != nil {
		t.Cleanup(func() {
			if err := l.DeleteMachine(context.Background(), made.ID); err != nil {
				t.Errorf("clean up: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return made, timings
}

// running is a running branch of a source in which nothing is declared.
func running(t testing.TB, source lab.SourceID) lab.BranchSpec {
	t.Helper()
	return lab.BranchSpec{Source: source, MachineSpec: lab.MachineSpec{Name: acctest.Name(t, "b"), Running: true}}
}

func snapshotOf(t testing.TB, l *lab.Lab, machine *lab.Machine) lab.SourceID {
	t.Helper()
	snapshot, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "clean"})
	if err != nil {
		t.Fatal(err)
	}
	return lab.SourceID{Machine: machine.ID, Snapshot: &snapshot.ID}
}

// addressOn gives an address of a host's network that its DHCP keeps for nobody else.
func addressOn(t *testing.T, host *acctest.Host, last byte) string {
	t.Helper()
	network, _, err := host.Client(t).GetNetwork(host.Network(t))
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParsePrefix(network.Config["ipv4.address"]).Addr().As4()
	address[3] = last
	return netip.AddrFrom4(address).String()
}

// A branch has what its source has, but for what only one of them may have; and the source may run on all the while.
func TestBranchIsAMachineOfItsOwn(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Description, spec.Memory = "prepared", "256MiB"
	spec.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t), IPv4Address: addressOn(t, host, 77), HWAddr: "00:16:3e:01:02:03"}}
	spec.Ready = lab.Ready{Address: "ipv4"}
	spec.Config = map[string]string{
		"user.role": "prepared", "environment.KEPT": "yes",
		"boot.autostart": "true", "security.protection.delete": "true", "snapshots.schedule": "@daily", "snapshots.expiry": "1d",
	}
	outside := t.TempDir()
	spec.Devices = map[string]map[string]string{
		"listener": {"type": "proxy", "listen": "unix:@" + spec.Name, "connect": "tcp:127.0.0.1:80"},
		"shared":   {"type": "disk", "source": outside, "path": "/mnt"},
	}
	spec.Setup = []lab.Setup{{Command: []string{"sh", "-c", "echo 0123456789abcdef0123456789abcdef > /etc/machine-id"}}}
	machine, _ := create(t, l, spec)
	t.Cleanup(func() { host.LXC(t, "config", "set", machine.Name, "security.protection.delete", "false") })

	for name, source := range map[string]lab.SourceID{"machine": {Machine: machine.ID}, "snapshot": snapshotOf(t, l, machine)} {
		made, timings := branch(t, l, running(t, source))
		if !(0 < timings.BranchMS && timings.BranchMS <= timings.LaunchMS && timings.LaunchMS <= timings.UsableMS) {
			t.Errorf("%s: the moments are not in order: %+v", name, timings)
		}
		want := machine.MachineSpec
		want.Name, want.CloudInit = made.Name, made.CloudInit
		want.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
		want.Config = map[string]string{"user.role": "prepared", "environment.KEPT": "yes"}
		want.Devices = map[string]map[string]string{}
		if diff := cmp.Diff(want, made.MachineSpec); diff != "" {
			t.Errorf("%s: the branch is not what it should be (-want +got):\n%s", name, diff)
		}
		if made.Source != source.String() {
			t.Errorf("%s: the lineage is %q", name, made.Source)
		}
		if made.Addresses.IPv4 == machine.Addresses.IPv4 {
			t.Errorf("%s: source and branch both have %s", name, made.Addresses.IPv4)
		}
		wantOwnIdentity(t, host, machine.Name, made.Name)
	}
}

// wantOwnIdentity checks that two machines have nothing of each other's identity.
func wantOwnIdentity(t *testing.T, host *acctest.Host, source, branch string) {
	t.Helper()
	read := func(name string) *api.Instance {
		live, _, err := host.Client(t).GetInstance(name)
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	a, b := read(source), read(branch)
	for _, key := range []string{"volatile.uuid", "volatile.cloud-init.instance-id", "user.lab.id"} {
		if a.Config[key] == b.Config[key] || b.Config[key] == "" {
			t.Errorf("%s of the branch is %q, and of the source %q", key, b.Config[key], a.Config[key])
		}
	}
	const facts = "hostname; cat /etc/machine-id; cat /sys/class/net/eth0/address"
	of, by := strings.Split(host.In(t, source, facts), "\n"), strings.Split(host.In(t, branch, facts), "\n")
	for index, what := range []string{"host name", "machine id", "MAC address"} {
		if of[index] == by[index] || by[index] == "" {
			t.Errorf("the %s of the branch is %q, and of the source %q", what, by[index], of[index])
		}
	}
	if len(by[1]) != 32 {
		t.Errorf("%q is no machine id", by[1])
	}
}

// What is declared takes the place of what would be inherited, at first and later; what is not stays as it is.
func TestBranchIsManagedByWhatIsDeclared(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Memory, spec.Description = "256MiB", "prepared"
	spec.Config = map[string]string{"user.role": "prepared", "user.gone": "x", "user.kept": "y"}
	spec.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
	machine, _ := create(t, l, spec)

	asked := running(t, lab.SourceID{Machine: machine.ID})
	asked.CPUs, asked.Description = 1, "a branch"
	asked.Config = map[string]string{"user.role": "branch", "user.gone": "", "boot.autostart": "true"}
	asked.Networks = map[string]lab.NIC{"eth1": {Network: host.Network(t)}}
	asked.Files = map[string]lab.File{"/root/file": {Content: "pushed"}}
	asked.Setup = []lab.Setup{{Command: []string{"sh", "-c", "cat /root/file > /root/setup"}}}
	made, _ := branch(t, l, asked)
	if got := in(t, made.Name, "cat /root/setup"); got != "pushed" {
		t.Errorf("the setup left %q", got)
	}
	want := machine.MachineSpec
	want.Name, want.CPUs, want.Description, want.Networks = made.Name, 1, "a branch", asked.Networks
	want.Config = map[string]string{"user.role": "branch", "user.kept": "y", "boot.autostart": "true"}
	if diff := cmp.Diff(want, made.MachineSpec); diff != "" {
		t.Errorf("the branch is not what it should be (-want +got):\n%s", diff)
	}

	host.LXC(t, "config", "set", made.Name, "limits.memory", "300MiB") // inherited, and nobody's
	now := asked.MachineSpec
	now.CPUs, now.Config = 2, map[string]string{"user.role": "changed"}
	changed, err := l.UpdateBranch(t.Context(), made.ID, asked.MachineSpec, now)
	if err != nil {
		t.Fatal(err)
	}
	want.CPUs, want.Memory, want.Config["user.role"] = 2, "300MiB", "changed"
	if diff := cmp.Diff(want, changed.MachineSpec); diff != "" {
		t.Errorf("the changed branch is not what it should be (-want +got):\n%s", diff)
	}
}

// sum is a checksum of all that a test wrote in a machine.
const sum = "cd /root && cat * | sha256sum"

// What is written on one side is seen on none of the others: source, snapshot, siblings.
func TestBranchesAreIsolated(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machine, _ := create(t, l, tiny(t, host))
	in(t, machine.Name, "dd if=/dev/urandom of=/root/data bs=1M count=8 2>/dev/null; sync")
	source := snapshotOf(t, l, machine)
	one, _ := branch(t, l, running(t, source))
	two, _ := branch(t, l, running(t, source))
	nested, _ := branch(t, l, running(t, lab.SourceID{Machine: one.ID}))
	machines := []string{machine.Name, one.Name, two.Name, nested.Name}
	clean := in(t, machine.Name, sum)
	for _, name := range machines {
		if got := in(t, name, sum); got != clean {
			t.Errorf("%s does not begin with its source's data", name)
		}
	}
	want := map[string]string{}
	for index, name := range machines {
		// Within, at the end, and beside.
		in(t, name, fmt.Sprintf("dd if=/dev/urandom of=/root/data bs=1M seek=%d count=1 conv=notrunc 2>/dev/null; echo %s >> /root/data; echo %s > /root/new; sync", index, name, name))
		want[name] = in(t, name, sum)
		for other, before := range want {
			if got := in(t, other, sum); got != before {
				t.Errorf("writing in %s changed %s", name, other)
			}
		}
	}
	for a := range want {
		for b := range want {
			if a != b && want[a] == want[b] {
				t.Errorf("%s and %s hold the same", a, b)
			}
		}
	}
	again, _ := branch(t, l, running(t, source)) // the snapshot is what it was
	if got := in(t, again.Name, sum); got != clean {
		t.Error("writing in the machines changed the snapshot")
	}
	if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"m": *source.Snapshot}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := in(t, machine.Name, sum); got != clean {
		t.Error("the source did not go back")
	}
	if got := in(t, one.Name, sum); got != want[one.Name] {
		t.Error("putting the source back changed a branch")
	}
}

// A branch has snapshots and goes back to them, and outlives what it was made from.
func TestBranchOutlivesItsSource(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machine, _ := create(t, l, tiny(t, host))
	in(t, machine.Name, "echo prepared > /root/mark; sync")
	first, _ := branch(t, l, running(t, snapshotOf(t, l, machine)))
	second, _ := branch(t, l, running(t, snapshotOf(t, l, first)))
	clean := snapshotOf(t, l, second)
	for _, gone := range []*lab.Machine{machine, first} {
		if err := l.DeleteMachine(t.Context(), gone.ID); err != nil {
			t.Fatal(err)
		}
	}
	in(t, second.Name, "echo dirty > /root/mark")
	if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"b": *clean.Snapshot}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := in(t, second.Name, "cat /root/mark"); got != "prepared" {
		t.Errorf("it went back to %q", got)
	}
	_, _, err := l.CreateBranch(t.Context(), running(t, lab.SourceID{Machine: first.ID}))
	if at, ok := errors.AsType[*lab.ArgumentError](err); !ok || at.Argument != "source" || !errors.Is(err, lxd.ErrNotFound) {
		t.Errorf("a branch of what is gone gave %v", err)
	}
}

// A branch may be in another project than its source, under the same name.
func TestBranchInAnotherProject(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machine, _ := create(t, l, tiny(t, host))
	in(t, machine.Name, "echo prepared > /root/mark; sync")
	project := acctest.Name(t, "p")
	client := host.Client(t)
	if err := client.CreateProject(api.ProjectsPost{Name: project}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.DeleteProject(project); err != nil {
			t.Error(err)
		}
	})
	spec := running(t, snapshotOf(t, l, machine))
	spec.Name = machine.Name
	if err := l.AdmitBranch(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "name of its source") {
		t.Errorf("in the same project, the same name gave %v", err)
	}
	made, _ := branch(t, l.InProject(project), spec)
	if made.ID.Project != project || made.Name != machine.Name {
		t.Errorf("it is %v", made.ID)
	}
	host.LXC(t, "exec", "--project", project, made.Name, "--", "grep", "-qx", "prepared", "/root/mark") // fails the test unless it is there
}

// However the making of a branch fails, one that was made is returned beside the error, and no other is.
func TestBranchWhoseCreationFails(t *testing.T) {
	t.Parallel()
	host, direct := connect(t)
	machine, _ := create(t, direct, tiny(t, host))
	source := snapshotOf(t, direct, machine)
	for name, test := range map[string]struct {
		rule lxdtest.Rule
		made bool
	}{
		"refused":           {lxdtest.Rule{Method: http.MethodPost, Path: `^/1\.0/instances$`, Status: 500, Error: "no room"}, false},
		"answer lost":       {lxdtest.Rule{Method: http.MethodPost, Path: `^/1\.0/instances$`, DropAfter: true}, true},
		"does not start":    {lxdtest.Rule{Method: http.MethodPut, Path: `/state$`, Status: 500, Error: "cannot start"}, true},
		"machine id unread": {lxdtest.Rule{Method: http.MethodGet, Path: `/files$`, Status: 500, Error: "no sftp"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, l := through(t, host)
			proxy.Add(test.rule)
			spec := running(t, source)
			made, _, err := l.CreateBranch(t.Context(), spec)
			if err == nil {
				t.Fatal("it did not fail")
			}
			if (made != nil) != test.made {
				t.Fatalf("beside %v it gave %v", err, made)
			}
			proxy.Clear()
			if made == nil {
				_, err := direct.MachineByName(t.Context(), spec.Name)
				if !errors.Is(err, lxd.ErrNotFound) {
					t.Errorf("a branch was left behind: %v", err)
				}
				return
			}
			if err := direct.DeleteMachine(t.Context(), made.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBranchOfATakenNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machine, _ := create(t, l, tiny(t, host))
	other, _ := create(t, l, tiny(t, host))
	spec := running(t, lab.SourceID{Machine: machine.ID})
	spec.Name = other.Name
	if made, _, err := l.CreateBranch(t.Context(), spec); made != nil || !errors.Is(err, lxd.ErrExists) {
		t.Errorf("a taken name gave %v, %v", made, err)
	}
	if _, err := l.Machine(t.Context(), other.ID, nil); err != nil {
		t.Errorf("the other machine: %v", err)
	}
}

// wantBranchRefused checks that a branch is refused at plan and at apply, at an argument and in words.
func wantBranchRefused(t *testing.T, l *lab.Lab, spec lab.BranchSpec, argument string, says ...string) {
	t.Helper()
	made, _, applyErr := l.CreateBranch(t.Context(), spec)
	if made != nil {
		t.Fatal("a branch was made")
	}
	for when, err := range map[string]error{"plan": l.AdmitBranch(t.Context(), spec), "apply": applyErr} {
		refusal, ok := errors.AsType[*capability.Refusal](err)
		if !ok {
			t.Fatalf("%s gave %v, want a refusal", when, err)
		}
		if refusal.Argument != argument {
			t.Errorf("%s is refused at %q, want %q", when, refusal.Argument, argument)
		}
		for _, text := range says {
			if !strings.Contains(refusal.Detail(), text) {
				t.Errorf("%s does not say %q:\n%s", when, text, refusal.Detail())
			}
		}
	}
}

func TestBranchElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	spec := tiny(t, host)
	spec.Disk = "2GiB"
	spec.Running = false
	machine, _ := create(t, l, spec)
	for argument, test := range map[string]struct {
		change func(*lab.BranchSpec)
		says   []string
	}{
		"pool":   {func(s *lab.BranchSpec) { s.Pool = "elsewhere" }, []string{"every block of it would be copied", fmt.Sprintf("set it to %q", host.Pool(t))}},
		"target": {func(s *lab.BranchSpec) { s.Target = "m2" }, []string{"in no cluster"}},
		"disk":   {func(s *lab.BranchSpec) { s.Disk = "1GiB" }, []string{"can only grow", "2GiB or more"}},
	} {
		asked := running(t, lab.SourceID{Machine: machine.ID})
		test.change(&asked)
		wantBranchRefused(t, l, asked, argument, test.says...)
	}
	asked := running(t, lab.SourceID{Machine: machine.ID})
	asked.Disk, asked.Running = "3GiB", false
	if made, _ := branch(t, l, asked); made.Disk != "3GiB" {
		t.Errorf("a larger disk is of %q", made.Disk)
	}
}

func TestAccBranchOnACluster(t *testing.T) {
	t.Parallel()
	members := acctest.StartCluster(t, acctest.Options{}, acctest.Options{})
	l := connectTo(t, members[0])
	pool := poolOnAll(t, members)
	if _, _, err := l.CreatePool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.DeletePool(context.Background(), pool.Name) })
	spec := lab.MachineSpec{
		Name: acctest.Name(t, "m"), Type: lab.TypeContainer, Image: members[0].Tiny(t).Fingerprint, Pool: pool.Name, Target: members[1].Member(),
	}
	machine, _ := create(t, l, spec)

	asked := running(t, lab.SourceID{Machine: machine.ID})
	asked.Running, asked.Target = false, members[0].Member()
	wantBranchRefused(t, l, asked, "target", `all of it would be sent to member "m1"`, `the member of its source, "m2"`)
	asked.Target = ""
	if made, _ := branch(t, l, asked); made.Location != members[1].Member() {
		t.Errorf("the branch is on %q", made.Location)
	}
}
