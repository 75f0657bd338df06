// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const (
	// canaryMemory is what a virtual machine gets that only has to reach its firmware.
	canaryMemory = "256MiB"
	// firmwareTime is how long it must go on running: QEMU that cannot run ends at once.
	firmwareTime = time.Second
)

// errNoProgram says that a container could be made, but with nothing in it to run.
var errNoProgram = errors.New("there is no program to run for the architecture")

// trial is how a throw-away machine fared.
type trial struct {
	pool, member string
	// seen is what it did, in words.
	seen string
	// failure is why it did not do it; nil when it did.
	failure error
}

// try starts a throw-away machine of a type on every member that answers, to see whether such machines run. On a host
// without a pool that could hold one there are no trials. Errors are those of talking to the daemon; a machine that
// does not run is a trial that failed.
func (c *Checker) try(ctx context.Context, facts *Facts, kind api.InstanceType, pool string) ([]trial, error) {
	pool = facts.canaryPool(pool)
	if pool == "" {
		return nil, nil
	}
	unlock, err := lockPool(ctx, c.daemon, pool)
	if err != nil {
		return nil, fmt.Errorf("wait for another probe of storage pool %q: %w", pool, err)
	}
	defer unlock()
	_ = sweep(ctx, c.daemon, pool) // as with the probe of a pool
	var trials []trial
	for _, at := range facts.sites() {
		canary := newCanary(c.daemon.OnMember(at.member), at, pool)
		run := canary.runContainer
		if kind == api.InstanceTypeVM {
			run = canary.runVirtualMachine
		}
		seen, err := run(ctx, pool)
		cleaned := canary.clean(ctx)
		if err := errors.Join(unasked(ctx, err), cleaned); err != nil {
			return nil, err
		}
		trials = append(trials, trial{pool: pool, member: at.member, seen: seen, failure: err})
	}
	return trials, nil
}

// unasked gives the errors that say nothing about the machine: we were interrupted, or lost the daemon.
func unasked(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), err)
	case errors.Is(err, lxd.ErrUnreachable), errors.Is(err, lxd.ErrUnknownOutcome):
		return err
	default:
		return nil
	}
}

// canaryPool is where to put a canary: the pool that was asked for, else the best one that is there.
func (f *Facts) canaryPool(asked string) string {
	if _, ok := f.present[asked]; ok {
		return asked
	}
	best := ""
	for _, pool := range f.sortedPools() {
		_, there := f.present[pool.Name]
		_, _, bad := f.traits(pool).worst()
		switch {
		case !there, f.traits(pool).snapshots.verdict == Absent:
		case !bad:
			return pool.Name
		case best == "":
			best = pool.Name
		}
	}
	return best
}

func newCanary(d *lxd.Daemon, at site, pool string) *bench {
	b := &bench{daemon: d, mark: newMark(pool)}
	if len(at.environment.Architectures) > 0 {
		b.architecture = at.environment.Architectures[0]
	}
	return b
}

// runContainer starts a container and runs a command on it.
func (b *bench) runContainer(ctx context.Context, pool string) (seen string, err error) {
	if canaryProgram(b.architecture) == nil {
		return "", fmt.Errorf("%w: %q", errNoProgram, b.architecture)
	}
	begun := time.Now()
	if err := b.makeMachine(ctx, pool); err != nil {
		return "", err
	}
	created := time.Since(begun)
	if err := b.start(ctx); err != nil {
		return "", err
	}
	started := time.Since(begun)
	err = step(ctx, func(ctx context.Context) error {
		result, err := b.daemon.Exec(ctx, b.mark.name(), lxd.Command{Args: []string{canaryPath, "end"}})
		if err == nil && result.ExitCode != 0 {
			err = fmt.Errorf("a command that returns 0 returned %d: %s", result.ExitCode, result.Stderr)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("a container was made in %d ms, had started after %d ms, and had run a command after %d ms",
		created.Milliseconds(), started.Milliseconds(), time.Since(begun).Milliseconds()), nil
}

// runVirtualMachine starts an empty virtual machine, which runs its firmware and no guest system.
func (b *bench) runVirtualMachine(ctx context.Context, pool string) (seen string, err error) {
	post := api.InstancesPost{Type: api.InstanceTypeVM, Source: api.InstanceSource{Type: api.SourceTypeNone}, InstancePut: b.put(pool)}
	// No size for its disk: that would make the daemon count quotas on the whole of a btrfs pool, from then on.
	post.Config["limits.memory"], post.Config["limits.cpu"], post.Config["security.secureboot"] = canaryMemory, "1", "false"
	begun := time.Now()
	if err := b.create(ctx, post); err != nil {
		return "", err
	}
	created := time.Since(begun)
	if err := b.start(ctx); err != nil {
		return "", err
	}
	started := time.Since(begun)
	select {
	case <-time.After(firmwareTime):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	state, err := b.daemon.InstanceState(ctx, b.mark.name())
	if err != nil {
		return "", err
	}
	if state.StatusCode != api.Running && state.StatusCode != api.Ready {
		return "", fmt.Errorf("it was started, and %s later the daemon says that it is %s", firmwareTime, state.Status)
	}
	return fmt.Sprintf("an empty virtual machine was made in %d ms, had started after %d ms, and was running its firmware %s later",
		created.Milliseconds(), started.Milliseconds(), firmwareTime), nil
}

// judgeTrials puts what was tried in the place of what the daemon says. Without any trial the daemon's word stays.
func (f *Finding) judgeTrials(trials []trial) {
	for _, t := range trials {
		where := fmt.Sprintf("on pool %q", t.pool)
		if t.member != "" {
			where += fmt.Sprintf(" of member %q", t.member)
		}
		if t.failure == nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s, %s", t.seen, where))
			continue
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("tried %s: %v", where, t.failure))
	}
	const look = "See the evidence for why, and the daemon's log."
	switch failed := firstFailure(trials); {
	case len(trials) == 0:
		f.Evidence = append(f.Evidence, "not tried: there is no storage pool to put a machine on")
		return
	case failed == nil:
		f.Verdict, f.Reason, f.Remedy = Proven, "", ""
	case errors.Is(failed, errNoProgram), api.StatusErrorCheck(failed, http.StatusForbidden, http.StatusUnauthorized):
		f.Verdict, f.Reason, f.Remedy = Unproven, "none could be made to try it", look
	case f.Verdict != Absent: // what the daemon says of it already tells more
		f.Verdict, f.Reason, f.Remedy = Absent, "it was tried, and did not run", look
	}
	f.Judged = byDoing
}

func firstFailure(trials []trial) error {
	for _, t := range trials {
		if t.failure != nil {
			return t.failure
		}
	}
	return nil
}
