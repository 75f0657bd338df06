// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// machines is what the inner loop does with machines. Times are in milliseconds from the start of the call.
type machines interface {
	// launch makes a machine and says when the call to start it returned, and when it was usable.
	launch(ctx context.Context, spec lab.MachineSpec) (returned, usable int64, err error)
	snapshot(ctx context.Context, machine, name string) (took int64, err error)
	// restore puts machines back side by side and says when the last call returned, and when the last was usable.
	restore(ctx context.Context, machines []string, snapshot string) (returned, usable int64, err error)
}

// verbs are machines as a lab has them: admitted, locked, and read back.
type verbs struct{ lab *lab.Lab }

func (v verbs) launch(ctx context.Context, spec lab.MachineSpec) (returned, usable int64, err error) {
	_, timings, err := v.lab.CreateMachine(ctx, spec)
	return timings.LaunchMS, timings.UsableMS, err
}

func (v verbs) snapshot(ctx context.Context, machine, name string) (took int64, err error) {
	live, err := v.lab.MachineByName(ctx, machine)
	if err != nil {
		return 0, err
	}
	_, took, err = v.lab.CreateSnapshot(ctx, lab.SnapshotSpec{Machine: live.ID, Name: name})
	return took, err
}

func (v verbs) restore(ctx context.Context, machines []string, snapshot string) (returned, usable int64, err error) {
	spec := lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{}}
	for _, machine := range machines {
		taken, err := v.lab.SnapshotByName(ctx, machine, snapshot)
		if err != nil {
			return 0, 0, err
		}
		spec.Snapshots[machine] = taken.ID
	}
	result, err := v.lab.Reset(ctx, spec, nil)
	if err != nil {
		return 0, 0, err
	}
	for _, machine := range result.Machines {
		returned = max(returned, machine.StartedMS)
	}
	return returned, result.UsableMS, nil
}

// client is machines as anybody has them who asks the daemon.
type client struct{ daemon *lxd.Daemon }

func (c client) launch(ctx context.Context, spec lab.MachineSpec) (returned, usable int64, err error) {
	start := time.Now()
	post := api.InstancesPost{
		Name: spec.Name, Type: api.InstanceType(spec.Type), Source: api.InstanceSource{Type: api.SourceTypeImage, Fingerprint: spec.Image},
	}
	post.Profiles = []string{}
	post.Config = map[string]string{"limits.cpu": fmt.Sprint(spec.CPUs), "limits.memory": spec.Memory, markKey: spec.Config[markKey]}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": spec.Pool}}
	if err := c.daemon.CreateInstance(ctx, post); err != nil {
		return 0, 0, err
	}
	if err := c.daemon.SetInstanceState(ctx, spec.Name, api.InstanceStatePut{Action: "start", Timeout: -1}); err != nil {
		return 0, 0, err
	}
	returned = time.Since(start).Milliseconds()
	err = c.waitUsable(ctx, spec.Name)
	return returned, time.Since(start).Milliseconds(), err
}

func (c client) snapshot(ctx context.Context, machine, name string) (took int64, err error) {
	start := time.Now()
	err = c.daemon.CreateSnapshot(ctx, machine, api.InstanceSnapshotsPost{Name: name, ExpiresAt: &time.Time{}})
	return time.Since(start).Milliseconds(), err
}

func (c client) restore(ctx context.Context, machines []string, snapshot string) (returned, usable int64, err error) {
	start := time.Now()
	returns := make([]int64, len(machines))
	var group errgroup.Group
	for i, machine := range machines {
		group.Go(func() error {
			if err := c.daemon.RestoreInstance(ctx, machine, snapshot, false); err != nil {
				return err
			}
			returns[i] = time.Since(start).Milliseconds()
			return c.waitUsable(ctx, machine)
		})
	}
	err = group.Wait()
	for _, at := range returns {
		returned = max(returned, at)
	}
	return returned, time.Since(start).Milliseconds(), err
}

// waitUsable waits until a command runs.
func (c client) waitUsable(ctx context.Context, machine string) error {
	return lxd.Poll(ctx, fmt.Sprintf("a command runs on machine %q", machine), func(ctx context.Context) (bool, string, error) {
		code, err := c.daemon.ExitCode(ctx, machine, "true")
		if err != nil {
			return false, err.Error(), nil //nolint:nilerr // it may be too young; the context is the deadline
		}
		return code == 0, fmt.Sprintf("`true` returned %d", code), nil
	})
}
