// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// ResetSpec is a scenario to put back: one snapshot for each machine.
type ResetSpec struct {
	// Snapshots are what to go back to, by a key of the caller's choice.
	Snapshots map[string]SnapshotID
	// Parallelism is how many machines are put back at once; 0 is all of them.
	Parallelism int
	// Ready overrides the ready conditions that are recorded on the machines; nil takes those.
	Ready *Ready
}

// MachineReset is how putting back one machine went, its moments in milliseconds from the start of the whole reset.
type MachineReset struct {
	// StoppedMS is when the machine was stopped; RestoredMS when its disk was back and, from a checkpoint, its memory too;
	// StartedMS when the daemon's call to start it returned, which one that goes on from its memory does not take; UsableMS
	// when its ready condition held. What did not happen is 0.
	StoppedMS, RestoredMS, StartedMS, UsableMS int64
	// VerifiedBy says what shows that the disk went back: [capability.WitnessLineage] or [capability.WitnessProof]; it is
	// empty for a machine whose disk did not get so far.
	VerifiedBy string
}

// ResetResult is how long a reset took, in milliseconds from its start.
type ResetResult struct {
	// RestoreMS is when the last machine was restored, UsableMS when the last was usable.
	RestoreMS, UsableMS int64
	Machines            map[string]MachineReset
}

// Progress is told of every step of every machine, by the caller's key; it may be called from many goroutines at once.
type Progress func(key, step string)

// Reset puts a scenario back. Every machine is locked and looked at first, and when one cannot be put back none is
// touched. Then they are put back side by side; one that fails does not keep the others from getting there, and the
// error is a [ResetError], which says of each machine where it stands.
func (l *Lab) Reset(ctx context.Context, spec ResetSpec, progress Progress) (*ResetResult, error) {
	start := time.Now()
	unlock, err := l.lockAll(ctx, spec.Snapshots)
	if err != nil {
		return nil, err
	}
	defer unlock()
	plans, err := l.preflight(ctx, spec, (*Lab).provenReset)
	if err != nil {
		return nil, err
	}

	result := &ResetResult{Machines: map[string]MachineReset{}}
	failed := &ResetError{Failed: map[string]error{}}
	var mu sync.Mutex
	group := errgroup.Group{}
	group.SetLimit(max(1, spec.limit()))
	for key, plan := range plans {
		group.Go(func() error {
			took, err := plan.run(ctx, start, func(step string) {
				if progress != nil {
					progress(key, step)
				}
			})
			mu.Lock()
			defer mu.Unlock()
			result.Machines[key] = took
			result.RestoreMS = max(result.RestoreMS, took.RestoredMS)
			result.UsableMS = max(result.UsableMS, took.UsableMS)
			if err != nil {
				failed.Failed[plan.snapshot.Machine.Name] = err
				return nil
			}
			failed.Back = append(failed.Back, plan.snapshot.Machine.Name)
			return nil
		})
	}
	_ = group.Wait() // failures are gathered, so that one does not hide another
	if len(failed.Failed) > 0 {
		return result, failed
	}
	return result, nil
}

func (s ResetSpec) limit() int {
	if s.Parallelism > 0 {
		return s.Parallelism
	}
	return len(s.Snapshots)
}

// lockAll locks the machines of a scenario, in one order for everybody, so that two resets never wait for each other
// in a circle.
func (l *Lab) lockAll(ctx context.Context, snapshots map[string]SnapshotID) (unlock func(), err error) {
	machines := map[string]MachineID{}
	for key, snapshot := range snapshots {
		name := snapshot.Machine.Project + "/" + snapshot.Machine.Name
		if _, twice := machines[name]; twice {
			return nil, argumentErrorf("snapshots", "machine %q is named twice (again at key %q): it can only go back to one snapshot", snapshot.Machine.Name, key)
		}
		machines[name] = snapshot.Machine
	}
	unlocks := []func(){}
	unlock = func() {
		for _, release := range slices.Backward(unlocks) {
			release()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		release, err := l.daemon.InProject(machines[name].Project).Lock(ctx, machines[name].Name)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, release)
	}
	return unlock, nil
}

// AdmitReset says whether a scenario can be put back, by the facts alone, without a lock or a proof. The error is a
// [ResetRefusedError] when it cannot.
func (l *Lab) AdmitReset(ctx context.Context, spec ResetSpec) error {
	_, err := l.preflight(ctx, spec, (*Lab).planReset)
	return err
}

// preflight finds out of every machine whether it can be put back, and how. The error is a [ResetRefusedError], which
// tells all that is wrong at once.
func (l *Lab) preflight(ctx context.Context, spec ResetSpec, plan func(*Lab, context.Context, SnapshotID, *Ready) (*machineReset, error)) (map[string]*machineReset, error) {
	plans := map[string]*machineReset{}
	refused := &ResetRefusedError{ByKey: map[string]error{}}
	for _, key := range slices.Sorted(maps.Keys(spec.Snapshots)) {
		snapshot := spec.Snapshots[key]
		one, err := plan(l.InProject(snapshot.Machine.Project), ctx, snapshot, spec.Ready)
		if err != nil {
			refused.ByKey[key] = fmt.Errorf("machine %q cannot be put back to snapshot %q: %w", snapshot.Machine.Name, snapshot.Name, err)
			continue
		}
		plans[key] = one
	}
	if len(refused.ByKey) > 0 {
		return nil, refused
	}
	return plans, nil
}
