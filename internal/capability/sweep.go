// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// lockPatience is how long a sweep tries for the lock of another pool, which a living run holds to its end.
const lockPatience = 250 * time.Millisecond

// leftovers are what a run of the probe has on the daemon.
type leftovers struct {
	mark               mark
	branches, machines []string
	// running are those of the machines that do not stand still.
	running     []string
	fingerprint string
}

// sweep removes what dead runs of the probe have left in the project, and nothing else: every object must bear the
// mark of a run, be no copy, and the run must have died. The caller holds the lock of a pool.
func sweep(ctx context.Context, d *lxd.Daemon, locked string) error {
	runs, err := findLeftovers(ctx, d)
	if err != nil {
		return fmt.Errorf("look for leftovers of earlier probes: %w", err)
	}
	var failed []error
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		failed = append(failed, sweepRun(ctx, d, locked, runs[run]))
	}
	return errors.Join(failed...)
}

func findLeftovers(ctx context.Context, d *lxd.Daemon) (map[string]*leftovers, error) {
	runs := map[string]*leftovers{}
	of := func(m mark) *leftovers {
		if runs[m.String()] == nil {
			runs[m.String()] = &leftovers{mark: m}
		}
		return runs[m.String()]
	}
	instances, err := d.Instances(ctx)
	if err != nil {
		return nil, err
	}
	for _, instance := range instances {
		m, ok := markOf(instance.Name, instance.Config)
		if !ok {
			continue
		}
		left := of(m)
		if instance.Name == m.name() {
			left.machines = append(left.machines, instance.Name)
		} else {
			left.branches = append(left.branches, instance.Name)
		}
		if instance.StatusCode != api.Stopped {
			left.running = append(left.running, instance.Name)
		}
	}
	images, err := d.Images(ctx)
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		m, ok := parseMark(image.Properties[markProbe])
		if !ok {
			continue
		}
		// Ours is byte for byte what we would make; anything else was made by somebody else, with our properties.
		if made, err := probeImage(image.Architecture, m.String()); err != nil || fingerprintOf(made) != image.Fingerprint {
			continue
		}
		of(m).fingerprint = image.Fingerprint
	}
	return runs, nil
}

// sweepRun removes the leftovers of a run, if it has died.
func sweepRun(ctx context.Context, d *lxd.Daemon, locked string, left *leftovers) error {
	switch {
	case left.mark.host != ThisHost():
		if !Abandoned(left.mark.started) {
			return nil
		}
	case left.mark.pool != locked:
		patient, cancel := context.WithTimeout(ctx, lockPatience)
		defer cancel()
		unlock, err := lockPool(patient, d, left.mark.pool)
		if errors.Is(err, lxd.ErrBusy) && ctx.Err() == nil {
			return nil // it lives
		}
		if err != nil {
			return err
		}
		defer unlock()
	}
	return left.remove(ctx, d)
}

// remove deletes a run's objects: what runs is stopped first, branches go before what they were made from, and the image
// goes last.
func (l *leftovers) remove(ctx context.Context, d *lxd.Daemon) error {
	for _, name := range l.running {
		// What cannot be stopped cannot be deleted either, and that tells why.
		_ = d.SetInstanceState(ctx, name, api.InstanceStatePut{Action: "stop", Force: true, Timeout: -1})
	}
	var failed []error
	for _, names := range [][]string{l.branches, l.machines} {
		group := errgroup.Group{}
		group.SetLimit(parallelReads)
		errs := make([]error, len(names))
		for i, name := range names {
			group.Go(func() error { errs[i] = gone(ctx, func() error { return d.DeleteInstance(ctx, name) }); return nil })
		}
		_ = group.Wait() // each has its own place in errs
		failed = append(failed, errs...)
	}
	if l.fingerprint != "" {
		failed = append(failed, gone(ctx, func() error { return d.DeleteImage(ctx, l.fingerprint) }))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("remove what the probe made: %w", err)
	}
	return nil
}

// gone deletes, and waits while something has hold of the object. One that is not there is no error.
func gone(ctx context.Context, remove func() error) error {
	return lxd.Poll(ctx, "the probe's object is free", func(context.Context) (bool, string, error) {
		err := remove()
		switch {
		case err == nil, errors.Is(err, lxd.ErrNotFound):
			return true, "", nil
		case errors.Is(err, lxd.ErrBusy):
			return false, err.Error(), nil
		default:
			return false, "", err
		}
	})
}

// lockPool takes the lock that a pool's prober holds. Pools belong to no project, so neither does it.
func lockPool(ctx context.Context, d *lxd.Daemon, pool string) (unlock func(), err error) {
	return d.InProject(api.ProjectDefaultName).Lock(ctx, "pool/"+pool)
}
