// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// Some things that the daemon has no call for are done by a machine that is there for a moment only and is never started.

// momentaryName is the name of a machine that is there for a moment only, to do something with what is named by the
// parts. It is always the same, so that what a run that died has left is found by the next one.
func momentaryName(purpose string, parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write([]byte(part + "\n"))
	}
	return "lab-" + purpose + "-" + hex.EncodeToString(hash.Sum(nil)[:6])
}

// undoTries is how often something is tried that must not stay as it is.
const undoTries = 5

// arrival is for how long a request whose sender has given up may still be on its way to the daemon, which then shows
// nothing of it yet.
const arrival = time.Second

// undo does what puts things back after a failure or an interrupt, again if it fails; the condition says what is put back.
func undo(ctx context.Context, condition string, back func(context.Context) error) error {
	if ctx.Err() != nil {
		time.Sleep(arrival) // nothing ends what outlives its context sooner
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	tries := 0
	return lxd.Poll(ctx, condition, func(ctx context.Context) (bool, string, error) {
		tries++
		err := back(ctx)
		if err == nil || tries == undoTries {
			return true, "", err
		}
		return false, err.Error(), nil
	})
}

// remove discards a machine in any case.
func (l *Lab) remove(ctx context.Context, name string) error {
	return undo(ctx, fmt.Sprintf("machine %q is gone", name), func(ctx context.Context) error { return l.discard(ctx, name) })
}

// discard removes a machine that was made for a moment, once the daemon is done with it. One that is not there is no
// error, and one of somebody else's is left alone.
func (l *Lab) discard(ctx context.Context, name string) error {
	if err := l.daemon.Idle(ctx, name); err != nil {
		return err
	}
	live, _, err := l.daemon.Instance(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if live.Config[keyID] == "" || live.Config[keyID] != live.Config[keyUUID] {
		return fmt.Errorf("a machine is in the way whose name, %q, is one of ours, and which is not: rename it", name)
	}
	return l.deleteStopped(ctx, name)
}

// deleteStopped removes a machine that is stopped, and that is known to be ours.
func (l *Lab) deleteStopped(ctx context.Context, name string) error {
	return deleted(l.daemon.DeleteInstance(ctx, name), func() error {
		_, _, err := l.daemon.Instance(ctx, name)
		return err
	})
}
