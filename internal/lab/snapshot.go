// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// SnapshotSpec is a snapshot as it should be.
type SnapshotSpec struct {
	Machine MachineID
	Name    string
	// Stateful captures the memory of a virtual machine, too.
	Stateful bool
	// ExpiresAt is when the daemon may delete it; the zero time is never.
	ExpiresAt time.Time
}

// Snapshot is a snapshot as the daemon has it.
type Snapshot struct {
	ID        SnapshotID
	Stateful  bool
	ExpiresAt time.Time
	// StateBytes is how much the snapshot alone held when its memory had been captured, which is the memory in compressed
	// form and next to nothing else; 0 where there is no memory, or the pool does not count what each volume holds: btrfs
	// does once a container's disk has had a size.
	StateBytes int64
}

// CreateSnapshot takes a snapshot, and returns how long that took in milliseconds. One that was taken although the
// daemon's answer did not come in time is returned beside the error.
func (l *Lab) CreateSnapshot(ctx context.Context, spec SnapshotSpec) (*Snapshot, int64, error) {
	unlock, err := l.daemon.Lock(ctx, spec.Machine.Name)
	if err != nil {
		return nil, 0, err
	}
	defer unlock()
	live, err := l.admitSnapshot(ctx, spec, true)
	if err != nil {
		return nil, 0, err
	}
	// The zero time says never. None at all would take over snapshots.expiry, and the daemon would delete it one day.
	expires := spec.ExpiresAt
	post := api.InstanceSnapshotsPost{Name: spec.Name, Stateful: spec.Stateful, ExpiresAt: &expires}
	if spec.Stateful {
		return l.createCheckpoint(ctx, spec, live, post)
	}
	start := time.Now()
	if err := l.daemon.CreateSnapshot(ctx, spec.Machine.Name, post); err != nil {
		return l.snapshotMadeAnyway(ctx, spec, err), 0, err
	}
	took := since(start)
	made, err := l.daemon.Snapshot(ctx, spec.Machine.Name, spec.Name)
	if err != nil {
		return nil, took, err
	}
	return snapshotOf(spec.Machine, made), took, nil
}

// snapshotMadeAnyway finds a snapshot whose outcome we did not get to know. The name was free and the machine is locked,
// so one that is there now is ours.
func (l *Lab) snapshotMadeAnyway(ctx context.Context, spec SnapshotSpec, cause error) *Snapshot {
	if !outcomeOpen(cause) {
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := l.daemon.Idle(ctx, spec.Machine.Name); err != nil {
		return nil
	}
	made, err := l.daemon.Snapshot(ctx, spec.Machine.Name, spec.Name)
	if err != nil {
		return nil
	}
	return snapshotOf(spec.Machine, made)
}

// AdmitSnapshot says whether a snapshot may be taken, by the facts and the plan at hand alone. The error is a
// [capability.Refusal] when it may not, and [lxd.ErrNotFound] when the machine is gone.
func (l *Lab) AdmitSnapshot(ctx context.Context, spec SnapshotSpec) error {
	_, err := l.admitSnapshot(ctx, spec, false)
	return err
}

// admitSnapshot also gives the machine as it is. When the snapshot is about to be taken, that is what counts, and not
// what a plan makes of it.
func (l *Lab) admitSnapshot(ctx context.Context, spec SnapshotSpec, applying bool) (*api.Instance, error) {
	live, _, err := l.own(ctx, spec.Machine)
	if err != nil {
		return nil, err
	}
	machine := machineOf(live, nil)
	ask := capability.SnapshotAsk{
		Machine: spec.Machine.Name, Name: spec.Name, Type: api.InstanceType(machine.Type), Pool: machine.Pool,
		Stateful: spec.Stateful, Checkpointable: shared.IsTrue(live.ExpandedConfig[keyStateful]), Ephemeral: live.Ephemeral,
		Scheduled: capability.Scheduled(live.ExpandedConfig),
	}
	if spec.Stateful && !machine.Running {
		if ask.Stopped, err = stopped(ctx, l.daemon, live.Name); err != nil {
			return nil, err
		}
	}
	planned, ok := l.checker.PlannedMachine(spec.Machine.String())
	if ok && !applying {
		ask.Checkpointable, ask.Stopped = planned.Checkpointable, !planned.Running
	}
	return live, l.checker.AdmitSnapshot(ctx, ask)
}

func snapshotOf(machine MachineID, live *api.InstanceSnapshot) *Snapshot {
	snapshot := &Snapshot{
		ID:       SnapshotID{Machine: machine, Name: live.Name, CreatedAt: live.CreatedAt.UTC()},
		Stateful: live.Stateful,
	}
	// The daemon writes "never" as a moment long before any snapshot.
	if live.ExpiresAt.After(live.CreatedAt) {
		snapshot.ExpiresAt = live.ExpiresAt.UTC()
	}
	return snapshot
}

// Snapshot reads a snapshot. The error is [lxd.ErrNotFound] when it is gone: also when its machine is another
// incarnation now, or the snapshot of this name is a later one.
func (l *Lab) Snapshot(ctx context.Context, id SnapshotID) (*Snapshot, error) {
	if _, _, err := l.own(ctx, id.Machine); err != nil {
		return nil, err
	}
	live, err := l.liveSnapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	return snapshotOf(id.Machine, live), nil
}

// liveSnapshot reads a snapshot as the daemon gives it, of a machine that is known to be the one that is meant.
func (l *Lab) liveSnapshot(ctx context.Context, id SnapshotID) (*api.InstanceSnapshot, error) {
	live, err := l.daemon.Snapshot(ctx, id.Machine.Name, id.Name)
	if err != nil {
		return nil, err
	}
	if !live.CreatedAt.Equal(id.CreatedAt) {
		return nil, &lxd.Error{Ask: fmt.Sprintf("read snapshot %q of machine %q", id.Name, id.Machine.Name), Kind: lxd.ErrNotFound, Err: fmt.Errorf(
			"the snapshot taken at %s is gone; the one of this name now was taken at %s",
			id.CreatedAt.Format(time.RFC3339), live.CreatedAt.UTC().Format(time.RFC3339))}
	}
	return live, nil
}

// RefreshSnapshot is [Lab.Snapshot] for many snapshots at once, which may miss what others changed within the last
// seconds.
func (l *Lab) RefreshSnapshot(ctx context.Context, id SnapshotID) (*Snapshot, error) {
	listed, err := l.listed(ctx, id.Machine)
	if err != nil {
		return nil, err
	}
	if listed != nil {
		for i := range listed.Snapshots {
			if live := &listed.Snapshots[i]; live.Name == id.Name && live.CreatedAt.Equal(id.CreatedAt) {
				return snapshotOf(id.Machine, live), nil
			}
		}
	}
	return l.Snapshot(ctx, id)
}

// SnapshotByName reads a snapshot by name, whichever it is, for an import.
func (l *Lab) SnapshotByName(ctx context.Context, machine, name string) (*Snapshot, error) {
	found, err := l.MachineByName(ctx, machine)
	if err != nil {
		return nil, err
	}
	live, err := l.daemon.Snapshot(ctx, machine, name)
	if err != nil {
		return nil, err
	}
	return snapshotOf(found.ID, live), nil
}

// UpdateSnapshot changes when the daemon deletes a snapshot; the zero time is never.
func (l *Lab) UpdateSnapshot(ctx context.Context, id SnapshotID, expires time.Time) (*Snapshot, error) {
	unlock, err := l.daemon.Lock(ctx, id.Machine.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, err := l.Snapshot(ctx, id); err != nil {
		return nil, err
	}
	if err := l.daemon.UpdateSnapshot(ctx, id.Machine.Name, id.Name, api.InstanceSnapshotPut{ExpiresAt: expires}); err != nil {
		return nil, err
	}
	return l.Snapshot(ctx, id)
}

// DeleteSnapshot removes a snapshot. One that is gone already is no error, and one of the same name that is another
// is left alone.
func (l *Lab) DeleteSnapshot(ctx context.Context, id SnapshotID) error {
	unlock, err := l.daemon.Lock(ctx, id.Machine.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := l.Snapshot(ctx, id); err != nil {
		if errors.Is(err, lxd.ErrNotFound) {
			return nil
		}
		return err
	}
	return deleted(l.daemon.DeleteSnapshot(ctx, id.Machine.Name, id.Name), func() error {
		_, err := l.Snapshot(ctx, id)
		return err
	})
}
