// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"time"
)

// The pause between two looks grows from the first to the last of these: short enough that nobody waits for the
// pause, long enough that a slow guest is not kept busy by our asking.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 250 * time.Millisecond
	// slowPause is the longest pause on a host that takes long over a look: there the pause is as long as the look, so
	// that half of its time at least goes to what is waited for.
	slowPause = 5 * time.Second
)

// Look is one observation of something that is waited for: whether the wait is over, and what was seen. An error ends
// the wait, too; but one that comes of the context's end is told as a [TimeoutError], unless the look says done.
type Look func(ctx context.Context) (done bool, seen string, err error)

// Poll looks again and again, with growing pauses, until the look says done, fails, or the context ends. The context
// is the only deadline; when it ends the error is a [TimeoutError] that names the condition and what was last seen.
func Poll(ctx context.Context, condition string, look Look) error {
	started := time.Now()
	last := ""
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		asked := time.Now()
		done, seen, err := look(ctx)
		took := time.Since(asked)
		cause := ended(ctx)
		if seen != "" && (cause == nil || last == "") {
			last = seen // what a look saw whose own context ended says less than the one before
		}
		if done || (err != nil && cause == nil) {
			return err
		}
		if cause == nil {
			wait(ctx, max(pause, min(took, slowPause)))
			cause = ended(ctx)
		}
		if cause != nil {
			return &TimeoutError{Condition: condition, LastSeen: last, Waited: time.Since(started), Cause: cause}
		}
	}
}

// ended says why a context is over. A connection has its deadline from a clock of its own, and may fail of it just before
// the context says so.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// wait pauses, or returns when the context ends.
func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
