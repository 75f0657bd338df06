// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/gofrs/flock"
)

// LXD does not lock a machine against all that can be asked of it at once: a snapshot taken during a restore leaves
// a machine that cannot be deleted any more. So every verb that changes a machine holds its lock: a mutex within
// this process, a file lock against other processes of this host, and a look at the daemon's running operations for
// everybody else.

// fileLockPause is how often another process's lock is tried; the flock library has no blocking call with a context.
const fileLockPause = 20 * time.Millisecond

// lockFileMode lets everybody read a lock file, which is what locking it takes.
const lockFileMode = 0o644

// processLocks is shared by all connections of the process, since two provider blocks may name the same daemon.
var processLocks = &lockTable{}

// lockTable hands out one lock for each name.
type lockTable struct {
	mu    sync.Mutex
	slots map[string]chan struct{}
}

// acquire takes the lock of a name, or gives up when the context ends.
func (t *lockTable) acquire(ctx context.Context, name string) (release func(), err error) {
	t.mu.Lock()
	if t.slots == nil {
		t.slots = map[string]chan struct{}{}
	}
	slot, ok := t.slots[name]
	if !ok {
		slot = make(chan struct{}, 1)
		t.slots[name] = slot
	}
	t.mu.Unlock()

	select {
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Lock takes the lock of a machine of this project and waits until the daemon runs no operation on it. The error is
// [ErrBusy] when the context ends first, and says who holds the machine.
func (d *Daemon) Lock(ctx context.Context, machine string) (unlock func(), err error) {
	started := time.Now()
	ask := fmt.Sprintf("lock machine %q", machine)
	busy := func(holder string, cause error) error {
		return &Error{Ask: ask, Kind: ErrBusy, Err: &TimeoutError{
			Condition: "the machine is free", LastSeen: holder, Waited: time.Since(started), Cause: cause,
		}}
	}

	if err := ctx.Err(); err != nil {
		return nil, classify(ask, err)
	}
	name := strings.Join([]string{d.Fingerprint(), d.project, machine}, "/")
	release, err := d.locks.acquire(ctx, name)
	if err != nil {
		return nil, busy("held by another resource of this run", err)
	}
	file, err := lockFile(name)
	if err != nil {
		release()
		return nil, &Error{Ask: ask, Err: err}
	}
	if _, err := file.TryLockContext(ctx, fileLockPause); err != nil {
		release()
		if ctx.Err() != nil {
			return nil, busy(fmt.Sprintf("held by %s of this host, through %s", lockHolder(file.Path()), file.Path()), err)
		}
		return nil, &Error{Ask: ask, Err: err}
	}
	unlock = func() {
		_ = file.Unlock() // closing the file is what unlocks, and nothing is to be done if that fails
		release()
	}
	if err := d.Idle(ctx, machine); err != nil {
		unlock()
		if cause := ctx.Err(); cause != nil {
			return nil, &Error{Ask: ask, Kind: ErrBusy, Err: err}
		}
		return nil, err
	}
	return unlock, nil
}

// someProcess is a holder of a lock that is not known.
const someProcess = "another terraform process"

// lockFile gives the lock file that stands for a machine. Every user of the host must come to the same one.
func lockFile(name string) (*flock.Flock, error) {
	sum := sha256.Sum256([]byte(name))
	var errs []error
	for _, parent := range []string{"/run/lock", os.TempDir()} {
		path, err := makeLockFile(filepath.Join(parent, "terraform-provider-lab"), hex.EncodeToString(sum[:16]))
		if err == nil {
			return flock.New(path, flock.SetFlag(os.O_RDONLY)), nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("make a lock file: %w", errors.Join(errs...))
}

// makeLockFile makes sure that a lock file is there, in a directory that is sticky and open to all, as /run/lock itself:
// users of one daemon exclude each other. It is made apart from being opened, since the kernel may forbid to open another
// user's file in such a directory with O_CREATE, even to root (fs.protected_regular).
func makeLockFile(dir, name string) (string, error) {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o777|os.ModeSticky)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	path := filepath.Join(dir, name)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, lockFileMode)
	if errors.Is(err, fs.ErrExist) {
		return path, nil
	}
	if err != nil {
		return "", err
	}
	return path, errors.Join(file.Chmod(lockFileMode), file.Close()) // the umask must not keep others out
}

// harmless are operations that do not change a machine's disk or configuration, by the daemon's descriptions.
var harmless = []string{"Executing command", "Showing console"}

// Idle waits until the daemon runs no operation that changes the machine. The context is the only deadline.
func (d *Daemon) Idle(ctx context.Context, machine string) error {
	return Poll(ctx, fmt.Sprintf("the daemon runs no other operation on machine %q", machine), func(ctx context.Context) (bool, string, error) {
		doing, err := d.Doing(ctx, machine)
		return err == nil && doing == "", doing, err
	})
}

// Doing describes an operation of the daemon's that is at work on the machine; it is empty when there is none. Meanwhile
// the machine's own state says little: LXD 5.0 shows a virtual machine as stopped while its memory is being captured.
func (d *Daemon) Doing(ctx context.Context, machine string) (string, error) {
	operations, err := d.client(ctx).GetOperations()
	if err != nil {
		return "", classify("list the daemon's operations", err)
	}
	for _, operation := range operations {
		if touches(operation, machine) {
			return fmt.Sprintf("operation %s (%s), %s", operation.ID, operation.Description, operation.Status), nil
		}
	}
	return "", nil
}

// touches says whether an operation is at work on a machine.
func touches(operation api.Operation, machine string) bool {
	if operation.StatusCode.IsFinal() || slices.Contains(harmless, operation.Description) {
		return false
	}
	for _, kind := range []string{"instances", "containers"} {
		for _, resource := range operation.Resources[kind] {
			path, _, _ := strings.Cut(resource, "?")
			parts := strings.Split(strings.TrimPrefix(path, "/1.0/"+kind+"/"), "/")
			if parts[0] == machine {
				return true
			}
		}
	}
	return false
}
