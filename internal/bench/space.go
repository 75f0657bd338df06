// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// used is the space that a pool has given away, in bytes.
func (g *Ground) used(ctx context.Context, pool string) (int64, error) {
	resources, err := g.Lab.Daemon().PoolResources(ctx, pool)
	if err != nil {
		return 0, err
	}
	return int64(resources.Space.Used), nil //nolint:gosec // bytes of a disk
}

// restTolerance is by how much the space of a pool at rest may move: machines that run write now and then.
const restTolerance = 1 << 20

// settled reads a pool's space when it has not moved for a while: what was deleted is given back in the background.
func (g *Ground) settled(ctx context.Context, pool string, calm time.Duration) (used int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, spacePatience)
	defer cancel()
	since := time.Now()
	err = lxd.Poll(ctx, fmt.Sprintf("the space of storage pool %q is at rest", pool), func(ctx context.Context) (bool, string, error) {
		now, err := g.used(ctx, pool)
		if max(now-used, used-now) > restTolerance {
			used, since = now, time.Now()
		}
		return err == nil && time.Since(since) >= calm, fmt.Sprintf("%d bytes are in use", now), err
	})
	return used, err
}

// restStage is the title of the stage that waits for that.
const restStage = "Wait until the pool's space is at rest"

// spaceStage begins the title of the stage that measures the space of a path's machine.
const spaceStage = "Space of one more machine: "

// measureSpace makes one machine by each path, one after the other, and reads what each adds to the pool. Nothing is
// removed meanwhile: among the trials, what the ones before have left would come in between.
func (p *Provisioning) measureSpace(ctx context.Context, run *Run) error {
	var used int64
	err := run.Stage(ctx, restStage, func(ctx context.Context) (_ Values, err error) {
		used, err = p.settled(ctx, p.pool, p.calm)
		return nil, err
	})
	if err != nil {
		return err
	}
	var made []string
	for i := range paths {
		path := &paths[i]
		if path.parent || path.memory && p.noMemory != "" {
			continue
		}
		name := run.name(path.name + "-space")
		made = append(made, name)
		err := run.Stage(ctx, spaceStage+path.name, func(ctx context.Context) (Values, error) {
			t := &trial{Provisioning: p, run: run, name: name, values: Values{}}
			if err := t.reach(ctx, path); err != nil {
				return nil, err
			}
			if err := in(ctx, p.Lab.Daemon(), name, "flush", flushScript); err != nil {
				return nil, err
			}
			before := used
			used, err = p.used(ctx, p.pool)
			return Values{poolGrowth: used - before}, err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range made {
		if err := p.remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

const (
	// baselineTolerance is what a pool may use more than before: file systems keep books, and those grow.
	baselineTolerance = 8 << 20
	// spacePatience is how long a pool may take to give space back; btrfs does so in the background.
	spacePatience = 5 * time.Minute
)

// Finish implements [Campaign]: everything is removed, and the pool must be as empty as before.
func (p *Provisioning) Finish(ctx context.Context, run *Run) error {
	err := run.Stage(ctx, "Delete the "+parentMachine, func(ctx context.Context) (Values, error) {
		return nil, p.remove(ctx, p.parent.Name)
	})
	if err != nil {
		return err
	}
	err = run.Stage(ctx, "Delete the export", func(ctx context.Context) (Values, error) {
		return nil, p.Lab.DeleteImage(ctx, p.export, lab.ImageSpec{}, true)
	})
	if err != nil {
		return err
	}
	return run.Stage(ctx, "Wait until the pool's space is back at its baseline", func(ctx context.Context) (Values, error) {
		ctx, cancel := context.WithTimeout(ctx, spacePatience)
		defer cancel()
		var over int64
		err := lxd.Poll(ctx, fmt.Sprintf("storage pool %q is as empty as before", p.pool), func(ctx context.Context) (bool, string, error) {
			used, err := p.used(ctx, p.pool)
			over = used - p.baselineUsed
			return over <= baselineTolerance, fmt.Sprintf("%d bytes more are in use", over), err
		})
		return Values{overBaseline: over}, err
	})
}
