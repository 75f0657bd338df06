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
	// unavailable is why no host can be measured on it yet; empty where it can.
	unavailable string
	// provision makes the trial's machine, and measures its steps; nil uses the parent as it is.
	provision func(ctx context.Context, t *trial) error
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
		name: "checkpoint", meaning: "a virtual machine that goes back to a snapshot with its memory",
		unavailable: "only virtual machines have checkpoints, and this campaign measures containers",
	},
	{
		name: "branch", meaning: "a branch of the prepared machine, which goes on running; it loads the saved table",
		provision: func(ctx context.Context, t *trial) error { return t.branch(ctx) }, loads: true,
	},
	{name: "existing", meaning: "the prepared machine itself, with no isolation from what was done before"},
}

func pathOf(name string) *path {
	at := slices.IndexFunc(paths, func(p path) bool { return p.name == name })
	if at < 0 || paths[at].unavailable != "" {
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
	// parentCPU is the processor time that the parent had used when the trial began, in nanoseconds.
	parentCPU int64
}

// create makes the machine from an image.
func (t *trial) create(ctx context.Context, image string) error {
	spec := t.run.machine("", image, t.pool)
	spec.Name = t.name
	_, timings, err := t.Lab.CreateMachine(ctx, spec)
	t.made(timings)
	return err
}

// branch makes it from the parent.
func (t *trial) branch(ctx context.Context) error {
	spec := lab.BranchSpec{Source: lab.SourceID{Machine: t.parent.ID}}
	spec.Name, spec.Running, spec.Config = t.name, true, map[string]string{markKey: t.run.ID}
	_, timings, err := t.Lab.CreateBranch(ctx, spec)
	t.made(lab.MachineTimings{CreateMS: timings.BranchMS, LaunchMS: timings.LaunchMS, UsableMS: timings.UsableMS})
	return err
}

// made turns the moments of a machine into steps.
func (t *trial) made(timings lab.MachineTimings) {
	t.values[createMS] = timings.CreateMS
	t.values[startMS] = timings.LaunchMS - timings.CreateMS
	t.values[usableMS] = timings.UsableMS - timings.LaunchMS
	t.values[aroundMS] = time.Since(t.start).Milliseconds() - timings.UsableMS
}

// reach gets to both results, and measures when and how.
func (t *trial) reach(ctx context.Context, path *path) error {
	if path.provision == nil {
		t.name = t.parent.Name
		state, err := t.Lab.Daemon().InstanceState(ctx, t.name)
		if err != nil {
			return err
		}
		t.parentCPU, t.start = state.CPU.Usage, time.Now()
	} else if err := path.provision(ctx, t); err != nil {
		return err
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
func (t *trial) account(ctx context.Context) error {
	state, err := t.Lab.Daemon().InstanceState(ctx, t.name)
	if err != nil {
		return err
	}
	if state.CPU.Usage > 0 {
		t.values[machineCPUMS] = (state.CPU.Usage - t.parentCPU) / int64(time.Millisecond)
	}
	// That of the parent is what it had when it made the data, and says nothing about the trial.
	if state.Memory.UsagePeak > 0 && t.name != t.parent.Name {
		t.values[machinePeak] = state.Memory.UsagePeak
	}
	return nil
}

// checkSource spoils what the machine has of the data, and makes sure that the parent does not see that.
func (t *trial) checkSource(ctx context.Context, path *path) error {
	if path.provision == nil {
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
