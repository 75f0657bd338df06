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

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// lockPatience is how long a sweep tries for the lock of another pool, which a living run holds to its end.
const lockPatience = 250 * time.Millisecond

// leftovers are what a run of the probe has on the daemon.
type leftovers struct {
	mark               mark
	branches, machines []string
	fingerprint        string
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
	case left.mark.host != thisHost():
		// Its lock cannot be seen from here.
		if time.Since(left.mark.started) < abandonedAfter {
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
	return removeProbe(ctx, d, left.branches, left.machines, left.fingerprint)
}

// lockPool takes the lock that a pool's prober holds. Pools belong to no project, so neither does it.
func lockPool(ctx context.Context, d *lxd.Daemon, pool string) (unlock func(), err error) {
	return d.InProject(api.ProjectDefaultName).Lock(ctx, "pool/"+pool)
}
