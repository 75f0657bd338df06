// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// ProvisioningName is the name of the campaign that compares the ways to a machine with a result.
const ProvisioningName = "provisioning"

// Measures of a trial of provisioning. Moments count from the start of the trial.
const (
	diskMS    = "disk_ms"    // the answer was right, from the table on disk
	memoryMS  = "memory_ms"  // the answer was right, from the table in memory
	cleanupMS = "cleanup_ms" // how long removing the machine took

	// The steps that these are made of, each by itself.
	createMS      = "create_ms"       // the daemon made the machine
	startMS       = "start_ms"        // the daemon started it
	usableMS      = "usable_ms"       // from there until a command ran
	aroundMS      = "around_ms"       // what came before and after: admission, locks, reading the machine back
	prepareMS     = "prepare_ms"      // making the table
	diskQueryMS   = "disk_query_ms"   // asking the table on disk
	loadMS        = "load_ms"         // bringing the saved table into memory
	memoryQueryMS = "memory_query_ms" // asking the table in memory

	machineCPUMS  = "machine_cpu_ms"
	machinePeak   = "machine_peak_bytes"
	poolGrowth    = "pool_bytes"
	overBaseline  = "over_baseline_bytes"
	parentMachine = "parent"
)

// Provisioning compares the ways to a machine that gives a result.
type Provisioning struct {
	*Ground
	// Driver is that of the pool that is made for the campaign, and Type that of its machines.
	Driver, Type string

	// work and calm are what they are in a campaign, unless a test makes less of them.
	work workload
	calm time.Duration

	// noMemory is why no machine can be captured with its memory; empty where it can.
	noMemory string

	pool         string
	parent       *lab.Machine
	export       string
	baselineUsed int64
	// checkpoint is the parent's; nil where there is none. capturedCPU is the processor time that the parent had used then.
	checkpoint  *lab.SnapshotID
	capturedCPU int64
}

const (
	// usualReadings makes a million of a thousand stations.
	usualReadings = 1000
	// virtualDisk is the size of a virtual machine's disk; a pool holds what is written of it.
	virtualDisk = "4GiB"
	// usualCalm is longer than btrfs waits before it gives back the space of what was deleted.
	usualCalm = 40 * time.Second
)

// NewProvisioning gives the campaign on a pool with a driver, with machines of a type: [lab.TypeContainer] or
// [lab.TypeVirtualMachine]. Whether those can be captured with their memory the daemon is asked.
func NewProvisioning(ctx context.Context, ground *Ground, driver, kind string) (*Provisioning, error) {
	p := &Provisioning{Ground: ground, Driver: driver, Type: kind, work: workload{readings: usualReadings}, calm: usualCalm}
	if kind != lab.TypeVirtualMachine {
		p.noMemory = "only virtual machines can be captured with their memory, and this campaign measures containers (--type)"
		return p, nil
	}
	report, err := ground.Lab.Checker().Assess(ctx, capability.Request{})
	if err != nil {
		return nil, err
	}
	for _, finding := range report.Findings {
		if finding.Capability == capability.Checkpoints && !finding.Verdict.Usable() {
			p.noMemory = finding.Reason
		}
	}
	return p, nil
}

// Name implements [Campaign].
func (*Provisioning) Name() string { return ProvisioningName }

// Subjects implements [Campaign].
func (p *Provisioning) Subjects() []Subject {
	var subjects []Subject
	for _, path := range paths {
		subject := Subject{Name: path.name, Meaning: path.meaning}
		if path.memory {
			subject.Unavailable = p.noMemory
		}
		subjects = append(subjects, subject)
	}
	return subjects
}

// Settings implements [Campaign].
func (p *Provisioning) Settings() map[string]string {
	return map[string]string{
		"readings": fmt.Sprint(stations * p.work.readings), "pool driver": p.Driver, "image": p.fingerprint,
		"each machine": fmt.Sprintf("a %s with %d CPU and %s of memory", strings.ReplaceAll(p.Type, "-", " "), machineCPUs, machineMemory),
	}
}

// machine is the specification of a machine.
func (p *Provisioning) machine(run *Run, what, image string) lab.MachineSpec {
	spec := run.machine(what, image, p.pool)
	if p.Type == lab.TypeVirtualMachine {
		spec.Type, spec.Disk, spec.Checkpointable = p.Type, virtualDisk, p.noMemory == ""
		spec.Config["security.secureboot"] = "false" // whatever image is measured
	}
	return spec
}

// Prepare implements [Campaign]: a pool with the image unpacked, a parent that runs and holds the data, and an image
// made of another machine that held the same.
func (p *Provisioning) Prepare(ctx context.Context, run *Run) (err error) {
	if err := p.obtain(ctx, run); err != nil {
		return err
	}
	if p.pool, err = p.createPool(ctx, run, p.Driver); err != nil {
		return err
	}
	err = run.Stage(ctx, "Unpack the image on the pool", func(ctx context.Context) (Values, error) {
		return nil, p.unpack(ctx, p.fingerprint)
	})
	if err != nil {
		return err
	}
	err = run.Stage(ctx, restStage, func(ctx context.Context) (_ Values, err error) {
		p.baselineUsed, err = p.settled(ctx, p.pool, p.calm)
		return nil, err
	})
	if err != nil {
		return err
	}
	if p.parent, err = p.prepared(ctx, run, parentMachine); err != nil {
		return err
	}
	if p.noMemory == "" {
		if err := p.capture(ctx, run); err != nil {
			return err
		}
	}
	if err := p.makeExport(ctx, run); err != nil {
		return err
	}
	return p.measureSpace(ctx, run)
}

// capture takes the parent's checkpoint.
func (p *Provisioning) capture(ctx context.Context, run *Run) error {
	return run.Stage(ctx, "Capture the "+parentMachine+" with its memory", func(ctx context.Context) (Values, error) {
		state, err := p.Lab.Daemon().InstanceState(ctx, p.parent.Name)
		if err != nil {
			return nil, err
		}
		taken, _, err := p.Lab.CreateSnapshot(ctx, lab.SnapshotSpec{Machine: p.parent.ID, Name: "checkpoint", Stateful: true})
		if err != nil {
			return nil, err
		}
		p.checkpoint, p.capturedCPU = &taken.ID, state.CPU.Usage
		return nil, nil
	})
}

func (p *Provisioning) unpack(ctx context.Context, image string) error {
	_, _, err := p.Lab.UpdateImage(ctx, image, lab.ImageSpec{}, lab.ImageSpec{Pools: []string{p.pool}})
	return err
}

// prepared makes a machine that holds the data, in two stages.
func (p *Provisioning) prepared(ctx context.Context, run *Run, what string) (machine *lab.Machine, err error) {
	err = run.Stage(ctx, "Create and start the "+what, func(ctx context.Context) (Values, error) {
		machine, _, err = p.Lab.CreateMachine(ctx, p.machine(run, what, p.fingerprint))
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	return machine, run.Stage(ctx, "Prepare the data in the "+what, func(ctx context.Context) (Values, error) {
		return nil, in(ctx, p.Lab.Daemon(), machine.Name, "prepare the data", p.work.prepareScript())
	})
}

// makeExport publishes a prepared machine as an image, and unpacks it.
func (p *Provisioning) makeExport(ctx context.Context, run *Run) error {
	const what = "export-source"
	machine, err := p.prepared(ctx, run, what)
	if err != nil {
		return err
	}
	err = run.Stage(ctx, "Stop and publish the "+what, func(ctx context.Context) (Values, error) {
		image, _, _, err := p.Lab.CreateImage(ctx, lab.ImageSpec{
			Publish:    &lab.ImagePublish{Source: lab.SourceID{Machine: machine.ID}, Stop: true, Compression: lab.DefaultCompression},
			Properties: map[string]string{markKey: run.ID},
		})
		if err != nil {
			return nil, err
		}
		p.export = image.Fingerprint
		return Values{"image_bytes": image.SizeBytes}, nil
	})
	if err != nil {
		return err
	}
	err = run.Stage(ctx, "Unpack the export on the pool", func(ctx context.Context) (Values, error) {
		return nil, p.unpack(ctx, p.export)
	})
	if err != nil {
		return err
	}
	return run.Stage(ctx, "Delete the "+what, func(ctx context.Context) (Values, error) {
		return nil, p.remove(ctx, machine.Name)
	})
}

// Try implements [Campaign].
func (p *Provisioning) Try(ctx context.Context, run *Run, subject string, round int) (values Values, err error) {
	path := pathOf(subject)
	if path == nil {
		return nil, fmt.Errorf("there is no path %q", subject)
	}
	name := run.name(fmt.Sprintf("%s-%d", subject, round))
	values = Values{}
	if path.parent {
		values[cleanupMS] = 0
	} else {
		defer func() { err = errors.Join(err, p.cleanUp(ctx, name, values)) }()
	}
	before := readHost(p.Lab.Daemon())
	t := &trial{Provisioning: p, run: run, name: name, values: values}
	if err := t.reach(ctx, path); err != nil {
		return values, err
	}
	readHost(p.Lab.Daemon()).since(before, values)
	if err := t.account(ctx, path); err != nil {
		return values, err
	}
	return values, t.checkSource(ctx, path)
}

// cleanUp removes the machine of a trial, and measures that.
func (p *Provisioning) cleanUp(ctx context.Context, name string, values Values) error {
	start := time.Now()
	err := p.remove(ctx, name)
	if err == nil {
		values[cleanupMS] = time.Since(start).Milliseconds()
	}
	return err
}
