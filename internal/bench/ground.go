// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const (
	// markKey is the configuration key, and the property of images, that carries the mark of a campaign.
	markKey = "user.bench"
	// namePrefix begins the names of all that is made.
	namePrefix = "bench-"
	// poolSize is what a pool on a loop file may grow to; its file takes only what is written.
	poolSize = "20GiB"

	// machineCPUs and machineMemory limit each machine.
	machineCPUs   = 1
	machineMemory = "256MiB"
)

// Ground is what campaigns stand on: a daemon and an image.
type Ground struct {
	// Lab is the verbs on the daemon.
	Lab *lab.Lab

	fingerprint string
	file        *lab.ImageFile
}

// NewGround finds the image: by the fingerprint or an alias that the daemon knows, or in files, which are imported where
// the daemon does not have it.
func NewGround(ctx context.Context, l *lab.Lab, image string, file *lab.ImageFile) (*Ground, error) {
	g := &Ground{Lab: l, fingerprint: image, file: file}
	if file != nil {
		var err error
		g.fingerprint, err = file.Fingerprint(ctx)
		return g, err
	}
	alias, err := l.Daemon().ImageAlias(ctx, image)
	if err == nil {
		g.fingerprint = alias.Target
	} else if !errors.Is(err, lxd.ErrNotFound) {
		return nil, err
	}
	_, _, err = l.Daemon().Image(ctx, g.fingerprint)
	return g, err
}

// name is that of something a run makes.
func (r *Run) name(what string) string { return namePrefix + r.ID + "-" + what }

// obtain makes the daemon have the image, in a stage of its own if it does not.
func (g *Ground) obtain(ctx context.Context, run *Run) error {
	_, _, err := g.Lab.Daemon().Image(ctx, g.fingerprint)
	if g.file == nil || !errors.Is(err, lxd.ErrNotFound) {
		return err
	}
	return run.Stage(ctx, "Import the image", func(ctx context.Context) (Values, error) {
		_, _, _, err := g.Lab.CreateImage(ctx, lab.ImageSpec{File: g.file, Properties: map[string]string{markKey: run.ID}})
		return nil, err
	})
}

// machine is the specification of a machine.
func (r *Run) machine(what, image, pool string) lab.MachineSpec {
	return lab.MachineSpec{
		Name: r.name(what), Type: lab.TypeContainer, Image: image, Pool: pool, CPUs: machineCPUs, Memory: machineMemory,
		Config: map[string]string{markKey: r.ID}, Running: true,
	}
}

// createPool makes a pool that copies on write, and proves it.
func (g *Ground) createPool(ctx context.Context, run *Run, driver string) (name string, err error) {
	name = run.name(driver)
	return name, run.Stage(ctx, fmt.Sprintf("Create a pool (%s) and prove that it copies on write", driver), func(ctx context.Context) (Values, error) {
		_, timings, err := g.Lab.CreatePool(ctx, lab.PoolSpec{Name: name, Driver: driver, Size: poolSize, Config: map[string]string{markKey: run.ID}})
		return Values{"create_ms": timings.CreateMS, "verify_ms": timings.VerifyMS}, err
	})
}

// remove removes a machine, and makes sure that it is gone. It outlives an interrupt.
func (g *Ground) remove(ctx context.Context, name string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	daemon := g.Lab.Daemon()
	if err := daemon.Idle(ctx, name); err != nil {
		return &RemainsError{Err: err}
	}
	live, err := g.Lab.MachineByName(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = g.Lab.DeleteMachine(ctx, live.ID)
	}
	if err != nil {
		return &RemainsError{Err: err}
	}
	if _, _, err := daemon.Instance(ctx, name); !errors.Is(err, lxd.ErrNotFound) {
		return &RemainsError{Err: errors.Join(fmt.Errorf("machine %q is there although it was deleted", name), err)}
	}
	return nil
}

// Sweep removes the machines, images and pools that carry a run's mark.
func (g *Ground) Sweep(ctx context.Context, run *Run) error {
	daemon := g.Lab.Daemon()
	machines, err := daemon.Instances(ctx)
	if err != nil {
		return err
	}
	for i := range machines {
		if machines[i].Config[markKey] == run.ID {
			if err := g.remove(ctx, machines[i].Name); err != nil {
				return err
			}
		}
	}
	images, err := daemon.Images(ctx)
	if err != nil {
		return err
	}
	for i := range images {
		if images[i].Properties[markKey] == run.ID {
			if err := g.Lab.DeleteImage(ctx, images[i].Fingerprint, lab.ImageSpec{}, true); err != nil {
				return err
			}
		}
	}
	pools, err := daemon.Pools(ctx)
	if err != nil {
		return err
	}
	for i := range pools {
		if pools[i].Config[markKey] == run.ID {
			if err := g.Lab.DeletePool(ctx, pools[i].Name); err != nil {
				return err
			}
		}
	}
	return nil
}
