// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"sync"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
)

// BranchSpec is a branch as it should be: what it is made from, and what is to be other than there.
type BranchSpec struct {
	// Source is the machine or the snapshot that it is made from.
	Source SourceID
	// MachineSpec holds what is asked for. What is left at its zero value is inherited: a text, a number, a condition; a
	// list or a map that is nil. Of Config each key is inherited by itself, and an empty value removes an inherited one.
	// Type and Image are always the source's; Pool and Target can only confirm where the source is.
	MachineSpec
	// WithMemory makes the branch go on from the memory of its source, a snapshot that was taken with it, without a boot.
	WithMemory bool
}

// BranchTimings are moments of making a branch, in milliseconds from the start of the work. A moment that was not
// reached is 0.
type BranchTimings struct {
	// BranchMS is when the branch existed.
	BranchMS int64
	// LaunchMS is when the daemon's call to start it returned.
	LaunchMS int64
	// UsableMS is when its ready condition held.
	UsableMS int64
}

// CreateBranch makes a machine that shares the disk of another one, or of a snapshot, prepares it, and waits until it
// is usable. It is always the cheap copy, next to its source, or refused. A branch that was made and then failed is
// returned beside the error, so that it is not forgotten.
func (l *Lab) CreateBranch(ctx context.Context, spec BranchSpec) (*Machine, BranchTimings, error) {
	timings := BranchTimings{}
	unlock, unlockSource, err := l.lockBranch(ctx, spec)
	if err != nil {
		return nil, timings, err
	}
	defer unlock()
	unlockSource = sync.OnceFunc(unlockSource)
	defer unlockSource()
	from, err := l.provenOrigin(ctx, spec)
	if err != nil {
		return nil, timings, err
	}
	if spec.Ready.isZero() {
		spec.Ready = decodeReady(from.config[keyReady])
	}

	start := time.Now()
	id := uuid.NewString()
	post := spec.post(from, id)
	if spec.WithMemory {
		return l.createResumed(ctx, &spec, from, post, unlockSource)
	}
	if err := l.daemon.OnMember(from.member()).CreateInstance(ctx, post); err != nil {
		return l.machineMadeAnyway(ctx, spec.MachineSpec, id), timings, err
	}
	timings.BranchMS = since(start)
	unlockSource() // the branch stands by itself from here on
	err = l.finishBranch(ctx, &spec, from, post, start, &timings)
	if err != nil {
		return l.machineMadeAnyway(ctx, spec.MachineSpec, id), timings, err
	}
	machine, err := l.readMachine(ctx, spec.Name, spec.Config)
	if err != nil {
		return l.machineMadeAnyway(ctx, spec.MachineSpec, id), timings, err
	}
	return machine, timings, nil
}

// provenOrigin reads the source of a branch and makes sure that the branch may be made of it.
func (l *Lab) provenOrigin(ctx context.Context, spec BranchSpec) (*origin, error) {
	from, err := l.admittedOrigin(ctx, spec)
	if err != nil {
		return nil, err
	}
	if _, _, err := l.checker.EnsureProof(ctx, from.pool); err != nil {
		return nil, &ArgumentError{Argument: "source", Err: err}
	}
	return from, nil
}

// finishBranch takes a branch that was just copied to the state in which it is used.
func (l *Lab) finishBranch(ctx context.Context, spec *BranchSpec, from *origin, post api.InstancesPost, start time.Time, timings *BranchTimings) error {
	if err := l.renewMachineID(ctx, spec, from); err != nil {
		return err
	}
	if err := l.dropPlaceholders(ctx, spec.Name, spec.devicesOf(from), post.Devices); err != nil {
		return err
	}
	moments := MachineTimings{}
	err := l.prepare(ctx, &spec.MachineSpec, start, &moments)
	timings.LaunchMS, timings.UsableMS = moments.LaunchMS, moments.UsableMS
	return err
}

// dropPlaceholders gives a branch its devices, where some of those that it was made with only kept the source's from
// coming along.
func (l *Lab) dropPlaceholders(ctx context.Context, name string, devices, made map[string]map[string]string) error {
	if sameDevices(devices, made) {
		return nil
	}
	live, etag, err := l.daemon.Instance(ctx, name)
	if err != nil {
		return err
	}
	put := live.Writable()
	put.Devices = devices
	return l.daemon.ReplaceInstance(ctx, name, put, etag)
}

// AdmitBranch says whether a branch may be made, by the facts alone. The error is a [capability.Refusal] when it may
// not, and [lxd.ErrNotFound] when the source is gone.
func (l *Lab) AdmitBranch(ctx context.Context, spec BranchSpec) error {
	if err := l.ownName(spec); err != nil {
		return err
	}
	_, err := l.admittedOrigin(ctx, spec)
	return err
}

// lockBranch locks a branch and its source, in the order in which a reset would, so that nobody waits in a circle.
func (l *Lab) lockBranch(ctx context.Context, spec BranchSpec) (unlock, unlockSource func(), err error) {
	if err := l.ownName(spec); err != nil {
		return nil, nil, err
	}
	source, own := l.daemon.InProject(spec.Source.Machine.Project), l.daemon
	sourceKey, ownKey := source.Project()+"/"+spec.Source.Machine.Name, own.Project()+"/"+spec.Name
	lockSource := func() (err error) { unlockSource, err = source.Lock(ctx, spec.Source.Machine.Name); return err }
	lockOwn := func() (err error) { unlock, err = own.Lock(ctx, spec.Name); return err }
	first, second := lockOwn, lockSource
	if sourceKey < ownKey {
		first, second = lockSource, lockOwn
	}
	if err := first(); err != nil {
		return nil, nil, err
	}
	if err := second(); err != nil {
		for _, release := range []func(){unlock, unlockSource} {
			if release != nil {
				release()
			}
		}
		return nil, nil, err
	}
	return unlock, unlockSource, nil
}

// ownName refuses a branch of the name of its source.
func (l *Lab) ownName(spec BranchSpec) error {
	if spec.Name == spec.Source.Machine.Name && l.daemon.Project() == spec.Source.Machine.Project {
		return argumentErrorf("name", "the branch would have the name of its source, %q: choose another name, or another project", spec.Name)
	}
	return nil
}
