// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// machineReset is one machine that is to be put back.
type machineReset struct {
	lab      *Lab
	snapshot SnapshotID
	pool     string
	stateful bool
	// before is the machine as it was just before, under the lock: what restore rewinds and must not be rewound.
	before *api.Instance
	ready  Ready
	// running says whether the machine is to be running afterwards.
	running bool
}

// provenReset looks at one machine and makes sure that its pool is proved to go back as it should.
func (l *Lab) provenReset(ctx context.Context, id SnapshotID, ready *Ready) (*machineReset, error) {
	plan, err := l.planReset(ctx, id, ready)
	if err != nil {
		return nil, err
	}
	if _, _, err := l.checker.EnsureProof(ctx, plan.pool); err != nil {
		return nil, err
	}
	return plan, nil
}

// planReset looks at one machine.
func (l *Lab) planReset(ctx context.Context, id SnapshotID, ready *Ready) (*machineReset, error) {
	before, _, err := l.own(ctx, id.Machine)
	if err != nil {
		return nil, err
	}
	snapshot, err := l.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	newer, err := l.newerSnapshots(ctx, id)
	if err != nil {
		return nil, err
	}
	branches, err := l.branchesOf(ctx, id.Machine)
	if err != nil {
		return nil, err
	}
	pool := machineOf(before, nil).Pool
	ask := capability.ResetAsk{Machine: id.Machine.Name, Snapshot: id.Name, Pool: pool, Newer: newer, Branches: branches}
	if err := l.checker.AdmitReset(ctx, ask); err != nil {
		return nil, err
	}
	plan := &machineReset{lab: l, snapshot: id, pool: pool, stateful: snapshot.Stateful, before: before, ready: decodeReady(before.Config[keyReady])}
	if ready != nil {
		plan.ready = *ready
	}
	plan.running = before.StatusCode != api.Stopped
	if declared, ok := before.Config[keyRunning]; ok {
		plan.running = declared == "true"
	}
	return plan, nil
}

// newerSnapshots names the snapshots of a machine that were taken after one.
func (l *Lab) newerSnapshots(ctx context.Context, id SnapshotID) ([]string, error) {
	all, err := l.daemon.Snapshots(ctx, id.Machine.Name)
	if err != nil {
		return nil, err
	}
	newer := []string{}
	for _, snapshot := range all {
		if snapshot.CreatedAt.After(id.CreatedAt) {
			newer = append(newer, snapshot.Name)
		}
	}
	return newer, nil
}

// branchesOf names the branches that were made of a machine, by the lineage that is recorded on them.
func (l *Lab) branchesOf(ctx context.Context, id MachineID) ([]string, error) {
	instances, err := l.daemon.Instances(ctx)
	if err != nil {
		return nil, err
	}
	branches := []string{}
	for _, instance := range instances {
		source, marked := instance.Config[keySource]
		if marked && (source == id.String() || strings.HasPrefix(source, id.String()+"/")) {
			branches = append(branches, instance.Name)
		}
	}
	return branches, nil
}

// run puts the machine back. A disk is put back while the machine is stopped, so that it starts with the configuration
// that it had just before and not with the snapshot's.
func (r *machineReset) run(ctx context.Context, start time.Time, step func(string)) (MachineReset, error) {
	took := MachineReset{}
	name, daemon := r.snapshot.Machine.Name, r.lab.daemon
	if r.before.StatusCode != api.Stopped && !r.stateful {
		step("stopping")
		if err := r.lab.power(ctx, name, false); err != nil {
			return took, r.stands(ctx, err)
		}
		took.StoppedMS = since(start)
	}
	step("restoring")
	if err := daemon.RestoreInstance(ctx, name, r.snapshot.Name, r.stateful); err != nil {
		return took, r.stands(ctx, err)
	}
	took.RestoredMS = since(start)
	after, err := r.putBack(ctx)
	if err != nil {
		return took, r.stands(ctx, err)
	}
	switch running := after.StatusCode != api.Stopped; {
	case r.running && !running:
		step("starting")
		if err := r.lab.power(ctx, name, true); err != nil {
			return took, r.stands(ctx, err)
		}
		took.StartedMS = since(start)
	case !r.running && running:
		if err := r.lab.power(ctx, name, false); err != nil {
			return took, r.stands(ctx, err)
		}
	}
	if r.running {
		step("waiting until usable")
		if err := waitUsable(ctx, daemon, name, r.ready); err != nil {
			return took, r.stands(ctx, err)
		}
	}
	took.UsableMS = since(start)
	step("usable")
	return took, nil
}

// putBack writes what the restore rewound and should not have: the configuration, devices, profiles and description
// of just before. What is volatile stays as the restore left it. It returns the machine as it is then.
func (r *machineReset) putBack(ctx context.Context) (*api.Instance, error) {
	name := r.snapshot.Machine.Name
	after, etag, err := r.lab.daemon.Instance(ctx, name)
	if err != nil {
		return nil, err
	}
	put := r.before.Writable()
	put.Config = map[string]string{}
	for key, value := range r.before.Config {
		if !strings.HasPrefix(key, "volatile.") {
			put.Config[key] = value
		}
	}
	for key, value := range after.Config {
		if strings.HasPrefix(key, "volatile.") {
			put.Config[key] = value
		}
	}
	put.Stateful = after.Stateful
	if sameInstance(after.Writable(), put) {
		return after, nil
	}
	return after, r.lab.daemon.ReplaceInstance(ctx, name, put, etag)
}

// stands adds to a failure in which state the machine was left.
func (r *machineReset) stands(ctx context.Context, cause error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	live, _, err := r.lab.daemon.Instance(ctx, r.snapshot.Machine.Name)
	if errors.Is(err, lxd.ErrNotFound) {
		return fmt.Errorf("%w; the machine is gone", cause)
	}
	if err != nil {
		return fmt.Errorf("%w; in which state the machine is is not known (%w)", cause, err)
	}
	return fmt.Errorf("%w; the machine is %s now, and the next apply puts it back again", cause, strings.ToLower(live.Status))
}
