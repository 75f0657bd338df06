// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// machineReset is one machine that is to be put back.
type machineReset struct {
	lab      *Lab
	snapshot SnapshotID
	pool     string
	// stateful says that the memory comes back, too.
	stateful bool
	// reshaped lists what keeps it from coming back.
	reshaped []string
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
	// At plan this would be too early: the same apply may change the machine.
	if err := capability.RefuseReshaped(id.Machine.Name, id.Name, plan.reshaped); err != nil {
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
	snapshot, err := l.liveSnapshot(ctx, id)
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
	plan := &machineReset{lab: l, snapshot: id, pool: pool, before: before, ready: decodeReady(before.Config[keyReady])}
	if ready != nil {
		plan.ready = *ready
	}
	plan.running = before.StatusCode != api.Stopped
	if declared, ok := before.Config[keyRunning]; ok {
		plan.running = declared == "true"
	}
	// A machine that is to be stopped needs no memory.
	if plan.stateful = snapshot.Stateful && plan.running; plan.stateful {
		plan.reshaped = reshaped(before, snapshot)
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

// run puts the machine back. A disk is put back while the machine is stopped, so that it starts with the configuration
// that it had just before and not with the snapshot's. With its memory it goes on as soon as that is back.
func (r *machineReset) run(ctx context.Context, start time.Time, step func(string)) (MachineReset, error) {
	took := MachineReset{}
	name, daemon := r.snapshot.Machine.Name, r.lab.daemon
	if r.before.StatusCode != api.Stopped {
		step("stopping")
		if err := r.lab.power(ctx, name, false); err != nil {
			return took, r.stands(ctx, stageStopping, err)
		}
		took.StoppedMS = since(start)
	}
	step("restoring")
	if err := daemon.RestoreInstance(ctx, name, r.snapshot.Name, r.stateful); err != nil {
		if r.stateful && !outcomeOpen(err) {
			err = r.resumeFailed(ctx, err)
		}
		return took, r.stands(ctx, stageRestoring, err)
	}
	took.RestoredMS = since(start)
	after, err := r.write(ctx)
	if err != nil {
		return took, r.stands(ctx, stageRewriting, err)
	}
	took.VerifiedBy, err = r.lab.checker.Restored(ctx, r.restored(after))
	if err != nil {
		return took, r.stands(ctx, stageVerifying, err)
	}
	running := after.StatusCode != api.Stopped
	if r.stateful && !running {
		return took, r.stands(ctx, stageSwitching, errMemoryLost)
	}
	err = r.bringUp(ctx, running, start, step, &took)
	return took, err
}

// bringUp takes a machine that was put back to the power state in which it should be, and waits until it is usable.
func (r *machineReset) bringUp(ctx context.Context, running bool, start time.Time, step func(string), took *MachineReset) error {
	name := r.snapshot.Machine.Name
	if !r.running {
		if running {
			step("stopping again")
			if err := r.lab.power(ctx, name, false); err != nil {
				return r.stands(ctx, stageSwitching, err)
			}
		}
		step("back, and stopped")
		return nil
	}
	if !running {
		step("starting")
		if err := r.lab.power(ctx, name, true); err != nil {
			return r.stands(ctx, stageSwitching, err)
		}
		took.StartedMS = since(start)
	}
	step("waiting until usable")
	wait := waitUsable
	if r.stateful {
		wait = waitResumed
	}
	if err := wait(ctx, r.lab.daemon, name, r.ready); err != nil {
		return r.stands(ctx, stageWaiting, err)
	}
	took.UsableMS = since(start)
	step("usable")
	return nil
}

// restored describes the machine to those who tell whether its disk went back.
func (r *machineReset) restored(live *api.Instance) capability.RestoredAsk {
	return capability.RestoredAsk{
		Pool: r.pool, Project: r.snapshot.Machine.Project, Machine: r.snapshot.Machine.Name, Snapshot: r.snapshot.Name,
		Type: api.InstanceType(live.Type), Location: live.Location,
	}
}

// putBack writes what the restore rewound and should not have: the configuration, devices, profiles and description
// of just before. It returns the machine as it was restored.
func (r *machineReset) putBack(ctx context.Context) (*api.Instance, error) {
	name := r.snapshot.Machine.Name
	after, etag, err := r.lab.daemon.Instance(ctx, name)
	if err != nil {
		return nil, err
	}
	put := r.before.Writable()
	put.Config = configAfter(r.before.Config, after.Config, r.stateful)
	put.Stateful = after.Stateful
	if sameInstance(after.Writable(), put) {
		return after, nil
	}
	return after, r.lab.daemon.ReplaceInstance(ctx, name, put, etag)
}

// configAfter is the configuration of just before. What is volatile belongs to the disk and stays as the restore left
// it, except for MAC addresses: an interface that came after the snapshot would get another one. A guest that goes on
// from its memory knows no MAC addresses but those; and what is the same in other words stays in those words, since the
// daemon would take it for a change that needs a boot.
func configAfter(before, restored map[string]string, resumed bool) map[string]string {
	config := map[string]string{}
	ofDisk := func(key string) bool {
		return strings.HasPrefix(key, volatilePrefix) && (resumed || !strings.HasSuffix(key, ".hwaddr"))
	}
	for key, value := range restored {
		if ofDisk(key) {
			config[key] = value
		}
	}
	for key, value := range before {
		if ofDisk(key) {
			continue
		}
		if then := restored[key]; resumed && then != "" && sameSetting(key, then, value) {
			value = then
		}
		config[key] = value
	}
	return config
}
