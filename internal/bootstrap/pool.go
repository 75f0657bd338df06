// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// A throw-away pool says in its configuration when it was made, so that one whose maker was killed is removed later.
const (
	poolPrefix     = "lab-bootstrap-"
	poolMark       = "user.lab.bootstrap"
	abandonedAfter = time.Hour
	removalTimeout = time.Minute
)

// WithThrowAwayPool makes a loop pool of a size ("4GiB") with a driver on a daemon, calls use with its name, and
// removes the pool again, also when use fails or the context ends.
func WithThrowAwayPool(ctx context.Context, d *lxd.Daemon, driver, size string, use func(ctx context.Context, name string) error) (err error) {
	if err := sweepPools(ctx, d); err != nil {
		return err
	}
	name := poolPrefix + strings.ToLower(rand.Text()[:8])
	pool := api.StoragePoolsPost{Name: name, Driver: driver}
	pool.Description = "throw-away pool of terraform-provider-lab bootstrap"
	pool.Config = map[string]string{"size": size, poolMark: time.Now().UTC().Format(time.RFC3339)}
	defer func() { err = errors.Join(err, removePool(ctx, d, name)) }()
	if err := d.CreatePool(ctx, pool); err != nil {
		return err
	}
	return use(ctx, name)
}

// removePool removes a pool that may be there, however the context ended.
func removePool(ctx context.Context, d *lxd.Daemon, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalTimeout)
	defer cancel()
	if err := d.DeletePool(ctx, name); err != nil && !errors.Is(err, lxd.ErrNotFound) {
		return fmt.Errorf("remove the throw-away pool again: %w", err)
	}
	return nil
}

// sweepPools removes the throw-away pools of runs that were killed.
func sweepPools(ctx context.Context, d *lxd.Daemon) error {
	pools, err := d.Pools(ctx)
	if err != nil {
		return err
	}
	for _, pool := range pools {
		made, err := time.Parse(time.RFC3339, pool.Config[poolMark])
		if err != nil || !strings.HasPrefix(pool.Name, poolPrefix) || len(pool.UsedBy) > 0 || time.Since(made) < abandonedAfter {
			continue
		}
		if err := removePool(ctx, d, pool.Name); err != nil {
			return err
		}
	}
	return nil
}
