// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// InnerLoopName is the name of the campaign that compares storage drivers.
const InnerLoopName = "inner-loop"

// Measures of a trial of the inner loop: of one machine, and of four side by side.
const (
	launchMS   = "launch_ms"        // the call to start a new machine returned
	launchedMS = "launch_usable_ms" // a command ran on it
	snapshot1  = "snapshot_1_ms"
	snapshot2  = "snapshot_2_ms"
	snapshot3  = "snapshot_3_ms"
	restoreMS  = "restore_ms"        // the call to restore it returned
	restoredMS = "restore_usable_ms" // a command ran on it again
	removeMS   = "remove_ms"
	// snapshotsBytes is the space of three snapshots, with the MiB that was written before each.
	snapshotsBytes = "snapshots_bytes"

	fourLaunchMS   = "four_launch_ms"
	fourSnapshotMS = "four_snapshot_ms"
	fourRestoreMS  = "four_restore_ms"
	// fourCycleMS is what is repeated: the snapshot of a scenario, and the way back to it.
	fourCycleMS  = "four_cycle_ms"
	fourRemoveMS = "four_remove_ms"

	fourMachines = 4
)

// plainDriver is the driver that copies everything: the daemon's fallback, which no lab uses.
const plainDriver = "dir"

// InnerLoop compares storage drivers in what a test suite does all day: snapshot, restore, again.
type InnerLoop struct {
	*Ground
	// Drivers are the storage drivers to compare.
	Drivers []string

	pools map[string]string
}

// Name implements [Campaign].
func (*InnerLoop) Name() string { return InnerLoopName }

// Subjects implements [Campaign].
func (c *InnerLoop) Subjects() []Subject {
	var subjects []Subject
	for _, driver := range c.Drivers {
		subject := Subject{Name: driver, Meaning: "a pool on a loop file, worked on by the verbs of a lab"}
		if driver == plainDriver {
			subject.Meaning = "directories on the host's file system, worked on through the client: a lab refuses such a pool"
		} else if missing := c.missing(driver); missing != "" {
			subject.Unavailable = missing
		}
		subjects = append(subjects, subject)
	}
	return subjects
}

// missing says why the daemon cannot make a pool with a driver; empty where it may.
func (c *InnerLoop) missing(driver string) string {
	for _, offered := range c.Lab.Daemon().Server().Environment.StorageSupportedDrivers {
		if offered.Name == driver {
			return ""
		}
	}
	return fmt.Sprintf("the daemon does not offer the driver %q", driver)
}

// Settings implements [Campaign].
func (c *InnerLoop) Settings() map[string]string {
	return map[string]string{
		"image": c.fingerprint, "each machine": fmt.Sprintf("a container with %d CPU and %s of memory", machineCPUs, machineMemory),
		"written before each snapshot": "1 MiB",
	}
}

// Prepare implements [Campaign]: a pool of each driver. The image is not unpacked ahead, so that the warm-up shows the
// first launch on a pool that has never seen it.
func (c *InnerLoop) Prepare(ctx context.Context, run *Run) error {
	if err := c.obtain(ctx, run); err != nil {
		return err
	}
	c.pools = map[string]string{}
	for _, subject := range c.Subjects() {
		if subject.Unavailable != "" {
			continue
		}
		var err error
		if subject.Name == plainDriver {
			c.pools[plainDriver], err = c.createPlainPool(ctx, run)
		} else {
			c.pools[subject.Name], err = c.createPool(ctx, run, subject.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createPlainPool makes a pool that copies, which a lab would refuse to.
func (c *InnerLoop) createPlainPool(ctx context.Context, run *Run) (name string, err error) {
	pool := api.StoragePoolsPost{Name: run.name(plainDriver), Driver: plainDriver}
	pool.Config = map[string]string{markKey: run.ID}
	return pool.Name, run.Stage(ctx, "Create a pool ("+plainDriver+")", func(ctx context.Context) (Values, error) {
		return nil, c.Lab.Daemon().CreatePool(ctx, pool)
	})
}

// Finish implements [Campaign].
func (c *InnerLoop) Finish(ctx context.Context, run *Run) error {
	return run.Stage(ctx, "Delete the pools", func(ctx context.Context) (Values, error) { return nil, c.Sweep(ctx, run) })
}

// Try implements [Campaign].
func (c *InnerLoop) Try(ctx context.Context, run *Run, driver string, round int) (Values, error) {
	var on machines = verbs{c.Lab}
	if driver == plainDriver {
		on = client{c.Lab.Daemon()}
	}
	l := &loop{InnerLoop: c, run: run, on: on, pool: c.pools[driver], values: Values{}}
	before := readHost(c.Lab.Daemon())
	err := l.one(ctx, fmt.Sprintf("%s-%d", driver, round))
	if err == nil {
		err = l.four(ctx, fmt.Sprintf("%s-%d", driver, round))
	}
	readHost(c.Lab.Daemon()).since(before, l.values)
	return l.values, err
}

// loop is one trial of a driver.
type loop struct {
	*InnerLoop
	run    *Run
	on     machines
	pool   string
	values Values
}

// one takes one machine through its life.
func (l *loop) one(ctx context.Context, what string) (err error) {
	spec := l.run.machine(what, l.fingerprint, l.pool)
	defer func() {
		start := time.Now()
		err = errors.Join(err, l.remove(ctx, spec.Name))
		l.values[removeMS] = time.Since(start).Milliseconds()
	}()
	if l.values[launchMS], l.values[launchedMS], err = l.on.launch(ctx, spec); err != nil {
		return err
	}
	before, err := l.used(ctx, l.pool)
	if err != nil {
		return err
	}
	for _, measure := range []string{snapshot1, snapshot2, snapshot3} {
		if err := in(ctx, l.Lab.Daemon(), spec.Name, "write 1 MiB", "head -c 1048576 /dev/urandom >/root/"+measure+" && "+flushScript); err != nil {
			return err
		}
		if l.values[measure], err = l.on.snapshot(ctx, spec.Name, snapshotNames[measure]); err != nil {
			return err
		}
	}
	after, err := l.used(ctx, l.pool)
	if err != nil {
		return err
	}
	l.values[snapshotsBytes] = after - before
	l.values[restoreMS], l.values[restoredMS], err = l.on.restore(ctx, []string{spec.Name}, snapshotNames[snapshot1])
	return err
}

var snapshotNames = map[string]string{snapshot1: "s1", snapshot2: "s2", snapshot3: "s3"}

// four takes four machines side by side through the cycle that is repeated most.
func (l *loop) four(ctx context.Context, what string) (err error) {
	var names []string
	for i := range fourMachines {
		names = append(names, l.run.name(fmt.Sprintf("%s-%c", what, 'a'+i)))
	}
	defer func() {
		removeErr := l.timed(fourRemoveMS, names, func(name string) error { return l.remove(ctx, name) })
		err = errors.Join(err, removeErr)
	}()
	err = l.timed(fourLaunchMS, names, func(name string) error {
		spec := l.run.machine("", l.fingerprint, l.pool)
		spec.Name = name
		_, _, err := l.on.launch(ctx, spec)
		return err
	})
	if err != nil {
		return err
	}
	start := time.Now()
	err = l.timed(fourSnapshotMS, names, func(name string) error {
		_, err := l.on.snapshot(ctx, name, "clean")
		return err
	})
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, _, err := l.on.restore(ctx, names, "clean"); err != nil {
		return err
	}
	l.values[fourRestoreMS] = time.Since(begin).Milliseconds()
	l.values[fourCycleMS] = time.Since(start).Milliseconds()
	return nil
}

// timed does something with all machines side by side, and measures until the last is done.
func (l *loop) timed(measure string, names []string, do func(name string) error) error {
	start := time.Now()
	var group errgroup.Group
	for _, name := range names {
		group.Go(func() error { return do(name) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	l.values[measure] = time.Since(start).Milliseconds()
	return nil
}

// DefaultDrivers are those that are compared unless others are named.
func DefaultDrivers() []string { return []string{plainDriver, capability.DefaultDriver} }
