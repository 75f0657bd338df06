// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"strconv"
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
func mark(t testing.TB, host *acctest.Host, machine lab.MachineID, text string) string {
	t.Helper()
	return host.InProject(t, machine.Project, machine.Name, "echo "+text+" > /dev/shm/mark; echo "+text+" > /root/mark; sync; "+look)
}

// captured is a guest with a snapshot of its memory and disk.
type captured struct {
	host       *acctest.Host
	l          *lab.Lab
	machine    *lab.Machine
	checkpoint lab.SnapshotID
	// clean is what look read of the guest before the snapshot, and up for how many seconds it had run.
	clean string
	up    float64
}

// One machine goes through all that its memory allows, since each of its boots takes a minute under emulation.
func TestVMCheckpoint(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachinesAtLength(t)
	l := verbsOn(t, host)
	countVolumes(t, host)
	machine, timings := create(t, l, guest(t, host))
	t.Logf("created: %+v", timings)
	c := &captured{host: host, l: l, machine: machine, clean: mark(t, host, machine.ID, "clean")}
	c.up = c.uptime(t, machine.ID)
	c.checkpoint = c.snapshot(t, "checkpoint", true)
	t.Run("branches", func(t *testing.T) { wantBranches(t, c) }) //nolint:paralleltest // nor here
	t.Run("reset", func(t *testing.T) { wantReset(t, c) })       //nolint:paralleltest // nor here
}

// countVolumes makes a pool of btrfs count what each volume holds, as it does once a container's disk has had a size.
func countVolumes(t *testing.T, host *acctest.Host) {
	t.Helper()
	name := acctest.Name(t, "c")
	host.LXC(t, "init", "--empty", name, "--storage", host.Pool(t), "--device", "root,size=64MiB")
	host.LXC(t, "delete", name)
}

// uptime is for how many seconds a guest has run.
func (c *captured) uptime(t *testing.T, machine lab.MachineID) float64 {
	t.Helper()
	up, err := strconv.ParseFloat(c.host.InProject(t, machine.Project, machine.Name, "cut -d' ' -f1 /proc/uptime"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return up
}

// wantMemory checks that a guest goes on from the checkpoint.
func (c *captured) wantMemory(t *testing.T, machine lab.MachineID) {
	t.Helper()
	if got := c.host.InProject(t, machine.Project, machine.Name, look); got != c.clean {
		t.Errorf("machine %s is at %q, want %q", machine, got, c.clean)
	}
	up := c.uptime(t, machine)
	t.Logf("machine %s has been up for %.1f s; it was captured after %.1f s", machine, up, c.up)
	if up < c.up {
		t.Errorf("machine %s has been up for %.1f s, less than when it was captured, %.1f s", machine, up, c.up)
	}
}

// snapshot takes a snapshot of the guest, which goes on as it was.
func (c *captured) snapshot(t *testing.T, name string, stateful bool) lab.SnapshotID {
	t.Helper()
	before := c.host.In(t, c.machine.Name, look)
	made, took, err := c.l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: c.machine.ID, Name: name, Stateful: stateful})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("snapshot %q in %d ms: %+v", name, took, made)
	if made.Stateful != stateful || made.StateBytes > 0 != stateful {
		t.Errorf("snapshot %q is %+v", name, made)
	}
	if after := c.host.In(t, c.machine.Name, look); after != before {
		t.Errorf("snapshot %q left the guest at %q, want %q", name, after, before)
	}
	return made.ID
}

// reset puts the guest back.
func (c *captured) reset(t *testing.T, to lab.SnapshotID) *lab.ResetResult {
	t.Helper()
	result, err := c.l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"v": to}}, func(_, step string) { t.Log(step) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("reset to %q: %+v", to.Name, result)
	return result
}

// A checkpoint brings the memory back, and the disk alone comes with a boot.
func wantReset(t *testing.T, c *captured) {
	t.Helper()
	mark(t, c.host, c.machine.ID, "disk")
	disk := c.snapshot(t, "disk", false)
	mark(t, c.host, c.machine.ID, "dirty")
	warm := c.reset(t, c.checkpoint)
	c.wantMemory(t, c.machine.ID)
	again, err := c.l.Machine(t.Context(), c.machine.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.machine, again); diff != "" {
		t.Errorf("the machine is not what it was (-before +after):\n%s", diff)
	}

	mark(t, c.host, c.machine.ID, "dirty")
	cold := c.reset(t, disk)
	booted := c.host.In(t, c.machine.Name, "cat /root/mark; test -e /dev/shm/mark && echo kept; cat /proc/sys/kernel/random/boot_id")
	lines := strings.Split(booted, "\n")
	if len(lines) != 2 || lines[0] != "disk" || strings.Contains(c.clean, lines[1]) {
		t.Errorf("reset to the disk gave %q, want the disk and another boot than in %q", booted, c.clean)
	}
	t.Logf("usable after %d ms with its memory, %d ms with a boot: %.2f", warm.UsableMS, cold.UsableMS, float64(warm.UsableMS)/float64(cold.UsableMS))
}

// Branches of a checkpoint go on from its memory, each by itself, beside the running source or without it.
func wantBranches(t *testing.T, c *captured) {
	t.Helper()
	source := mark(t, c.host, c.machine.ID, "source")
	project := acctest.Name(t, "p")
	if err := c.host.Client(t).CreateProject(api.ProjectsPost{
		Name: project, ProjectPut: api.ProjectPut{Config: map[string]string{"features.images": "false", "features.profiles": "false"}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.host.LXC(t, "project", "delete", project) })
	var made []lab.MachineID
	for _, l := range []*lab.Lab{c.l, c.l.InProject(project)} {
		machine, timings := branch(t, l, lab.BranchSpec{
			Source: lab.SourceID{Machine: c.machine.ID, Snapshot: &c.checkpoint}, WithMemory: true,
			MachineSpec: lab.MachineSpec{Name: acctest.Name(t, "b"), Running: true, Networks: map[string]lab.NIC{}},
		})
		t.Logf("branch: %+v", timings)
		c.wantMemory(t, machine.ID)
		made = append(made, machine.ID)
	}
	one := mark(t, c.host, made[0], "one")
	if two := mark(t, c.host, made[1], "two"); two == one {
		t.Errorf("both branches are at %q", two)
	}
	if got := c.host.InProject(t, made[0].Project, made[0].Name, look); got != one {
		t.Errorf("the first branch is at %q, want %q", got, one)
	}
	if got := c.host.In(t, c.machine.Name, look); got != source {
		t.Errorf("the source is at %q, want %q", got, source)
	}
	if left := c.host.StagingProjects(t); len(left) != 0 {
		t.Errorf("projects %q were left", left)
	}
}
