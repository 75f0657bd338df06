// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"slices"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// path is one way to a machine that gives the result.
type path struct {
	name, meaning string
	// provision makes the trial's machine, or the parent what it was, and measures its steps; nil uses the parent as it is.
	provision func(ctx context.Context, t *trial) error
	// parent says that the trial is on the parent itself; memory, that it goes on from the parent's checkpoint.
	parent, memory bool
	// prepares says that the machine comes without the data and makes it; loads that it has the saved table only, and
	// brings that into memory.
	prepares, loads bool
}

// paths are all ways, in the order of the report.
var paths = []path{
	{
		name: "fresh", meaning: "a machine from the image, which prepares the data anew",
		provision: func(ctx context.Context, t *trial) error { return t.create(ctx, t.fingerprint) }, prepares: true,
	},
	{
		name: "export", meaning: "a machine from an image that was published of a prepared one; it loads the saved table",
		provision: func(ctx context.Context, t *trial) error { return t.create(ctx, t.export) }, loads: true,
	},
	{
		name: "checkpoint", meaning: "the prepared virtual machine, spoilt, which goes back to a snapshot with its memory",
		provision: func(ctx context.Context, t *trial) error { return t.goBack(ctx) }, parent: true, memory: true,
	},
	{
		name: "branch", meaning: "a branch of the prepared machine, which goes on running; it loads the saved table",
		provision: func(ctx context.Context, t *trial) error {
			return t.branch(ctx, lab.BranchSpec{Source: lab.SourceID{Machine: t.parent.ID}})
		}, loads: true,
	},
	{
		name: "live-branch", meaning: "a branch of that snapshot, which goes on from its memory",
		provision: func(ctx context.Context, t *trial) error {
			return t.branch(ctx, lab.BranchSpec{Source: lab.SourceID{Machine: t.parent.ID, Snapshot: t.checkpoint}, WithMemory: true})
		}, memory: true,
	},
	{name: "existing", meaning: "the prepared machine itself, with no isolation from what was done before", parent: true},
}

func pathOf(name string) *path {
	at := slices.IndexFunc(paths, func(p path) bool { return p.name == name })
	if at < 0 {
		return nil
	}
	return &paths[at]
}

// trial is one try of a path.
type trial struct {
	*Provisioning
	run *Run
	// name is that of the machine: the trial's own, or the parent's.
	name   string
	values Values
	start  time.Time
	// usedCPU is the processor time that the machine had used when the trial began, in nanoseconds.
	usedCPU int64
}

// create makes the machine from an image.
func (t *trial) create(ctx context.Context, image string) error {
	spec := t.machine(t.run, "", image)
	spec.Name = t.name
	_, timings, err := t.Lab.CreateMachine(ctx, spec)
	t.made(timings)
	return err
}

// branch makes it from the parent.
func (t *trial) branch(ctx context.Context, spec lab.BranchSpec) error {
	spec.Name, spec.Running, spec.Config = t.name, true, map[string]string{markKey: t.run.ID}
	_, timings, err := t.Lab.CreateBranch(ctx, spec)
	t.made(lab.MachineTimings{CreateMS: timings.BranchMS, LaunchMS: timings.LaunchMS, UsableMS: timings.UsableMS})
	return err
}

// goBack puts the parent back to its checkpoint. Other trials stand on the parent, so that a failure ends the campaign.
func (t *trial) goBack(ctx context.Context) error {
	result, err := t.Lab.Reset(ctx, lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{parentMachine: *t.checkpoint}}, nil)
	if err != nil {
		return &RemainsError{Err: err}
	}
	t.values[restoreMS] = result.Machines[parentMachine].RestoredMS
	t.values[usableMS] = result.UsableMS - t.values[restoreMS]
	t.values[aroundMS] = time.Since(t.start).Milliseconds() - result.UsableMS
	return nil
}

// made turns the moments of a machine into steps.
func (t *trial) made(timings lab.MachineTimings) {
	t.values[createMS] = timings.CreateMS
	t.values[startMS] = timings.LaunchMS - timings.CreateMS
	t.values[usableMS] = timings.UsableMS - timings.LaunchMS
	t.values[aroundMS] = time.Since(t.start).Milliseconds() - timings.UsableMS
}

// begin starts the clock of a trial, and notes what the machine had used of the processor.
func (t *trial) begin(ctx context.Context, path *path) error {
	switch {
	case path.memory:
		t.usedCPU = t.capturedCPU
	case path.parent:
		state, err := t.Lab.Daemon().InstanceState(ctx, t.parent.Name)
		if err != nil {
			return err
		}
		t.usedCPU = state.CPU.Usage
	}
	if path.parent {
		t.name = t.parent.Name
		if path.provision != nil {
			if err := in(ctx, t.Lab.Daemon(), t.name, "spoil the tables", t.work.spoilScript()); err != nil {
				return err
			}
		}
	}
	t.start = time.Now()
	return nil
}

// reach gets to both results, and measures when and how.
func (t *trial) reach(ctx context.Context, path *path) error {
	if err := t.begin(ctx, path); err != nil {
		return err
	}
	if path.provision != nil {
		if err := path.provision(ctx, t); err != nil {
			return err
		}
	}
	steps := []struct {
		wanted        bool
		step, moment  string
		title, script string
	}{
		{path.prepares, prepareMS, "", "prepare the data", t.work.prepareScript()},
		{true, diskQueryMS, diskMS, "ask the table on disk", t.work.queryScript(diskTable)},
		{path.loads, loadMS, "", "load the saved table", t.work.loadScript()},
		{true, memoryQueryMS, memoryMS, "ask the table in memory", t.work.queryScript(memoryTable)},
	}
	for _, step := range steps {
		if !step.wanted {
			continue
		}
		begin := time.Now()
		if err := in(ctx, t.Lab.Daemon(), t.name, step.title, step.script); err != nil {
			return err
		}
		t.values[step.step] = time.Since(begin).Milliseconds()
		if step.moment != "" {
			t.values[step.moment] = time.Since(t.start).Milliseconds()
		}
	}
	return nil
}

// account takes down what the machine has cost by the daemon's own state of it.
func (t *trial) account(ctx context.Context, path *path) error {
	state, err := t.Lab.Daemon().InstanceState(ctx, t.name)
	if err != nil {
		return err
	}
	if state.CPU.Usage > 0 {
		t.values[machineCPUMS] = (state.CPU.Usage - t.usedCPU) / int64(time.Millisecond)
	}
	// That of the parent, and of what has its memory, is what it had when it made the data, and says nothing of the trial.
	if state.Memory.UsagePeak > 0 && !path.parent && !path.memory {
		t.values[machinePeak] = state.Memory.UsagePeak
	}
	return nil
}

// checkSource spoils what the machine has of the data, and makes sure that the parent does not see that.
func (t *trial) checkSource(ctx context.Context, path *path) error {
	if path.parent {
		return nil
	}
	if err := in(ctx, t.Lab.Daemon(), t.name, "spoil the tables", t.work.spoilScript()); err != nil {
		return err
	}
	for _, table := range []string{diskTable, memoryTable} {
		if err := in(ctx, t.Lab.Daemon(), t.parent.Name, "ask the parent after a child's writes", t.work.queryScript(table)); err != nil {
			return &RemainsError{Err: err}
		}
	}
	return nil
}
