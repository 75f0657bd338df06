// SPDX-License-Identifier: MPL-2.0

// Package lab holds the verbs of a laboratory on one LXD daemon: make a pool and prove it, launch a machine and wait
// until it is usable, snapshot it, put a whole scenario back. Each verb takes a plain specification, asks package
// capability to admit it, does the work under the machine's lock, and returns what it made with how long it took.
package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// The configuration keys that we keep on objects.
const (
	// keyID repeats the uuid that we gave an object when we made it. A copy made by somebody else carries the key but
	// has a uuid of its own, and so is never taken for ours.
	keyID = "user.lab.id"
	// keyReady records a machine's ready condition, so that a reset knows it.
	keyReady = "user.lab.ready"
	// keyRunning records whether a machine is declared to be running.
	keyRunning = "user.lab.running"
	// keySource records what a branch was made from.
	keySource = "user.lab.source"

	keyPrefix = "user.lab."
	// volatilePrefix is that of the keys that the daemon keeps for itself.
	volatilePrefix = "volatile."
	keyUUID        = volatilePrefix + "uuid"
)

// cleanupTimeout bounds what is undone after a failure or an interrupt, when the caller's context has ended already.
const cleanupTimeout = 30 * time.Second

// Lab is the verbs on one daemon. It is safe for concurrent use.
type Lab struct {
	daemon  *lxd.Daemon
	checker *capability.Checker
}

// New gives the verbs on a daemon, admitted by a checker of the same daemon.
func New(daemon *lxd.Daemon, checker *capability.Checker) *Lab {
	return &Lab{daemon: daemon, checker: checker}
}

// Daemon is the daemon that the verbs work on.
func (l *Lab) Daemon() *lxd.Daemon { return l.daemon }

// Checker judges what the daemon can do.
func (l *Lab) Checker() *capability.Checker { return l.checker }

// InProject gives the verbs of another project of the same daemon.
func (l *Lab) InProject(project string) *Lab {
	return &Lab{daemon: l.daemon.InProject(project), checker: l.checker}
}

// ArgumentError says which argument of the specification an error is about.
type ArgumentError struct {
	// Argument is its name, as in the specification's Terraform form ("source").
	Argument string
	Err      error
}

func (e *ArgumentError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ArgumentError) Unwrap() error { return e.Err }

func argumentErrorf(argument, format string, args ...any) error {
	return &ArgumentError{Argument: argument, Err: fmt.Errorf(format, args...)}
}

// detached is a context for undoing things: it outlives its parent, but not by long.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}

// outcomeOpen says that a failed change may have been made all the same, or may still be: we stopped waiting, or lost
// sight of it.
func outcomeOpen(err error) bool {
	return errors.Is(err, lxd.ErrTimeout) || errors.Is(err, lxd.ErrUnknownOutcome) || errors.Is(err, context.Canceled)
}

// deleted is what a deletion came to. An object that is gone already is as it was asked for; but the daemon also says
// "not found" of a file that it missed on the way, so the object is looked for once more.
func deleted(err error, look func() error) error {
	if errors.Is(err, lxd.ErrNotFound) && errors.Is(look(), lxd.ErrNotFound) {
		return nil
	}
	return err
}

// deletedUnused is what a deletion came to, of an object that may be in use: then the error lists by what.
func deletedUnused[T any](err error, look func() (*T, error), users func(*T) []string) error {
	if err == nil {
		return nil
	}
	live, lookErr := look()
	if errors.Is(err, lxd.ErrNotFound) && errors.Is(lookErr, lxd.ErrNotFound) {
		return nil
	}
	if lookErr == nil && len(users(live)) > 0 {
		return fmt.Errorf("%w; it is used by %s", err, strings.Join(users(live), ", "))
	}
	return err
}

// milliseconds since a moment, of the monotonic clock.
func since(start time.Time) int64 { return time.Since(start).Milliseconds() }
