// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	spacePattern = "lab-acctest-*"
	lockName     = "lock"
	pidName      = "test.pid"

	// takedownTimeout bounds what a run waits for the removal of everything that it started.
	takedownTimeout = 2 * time.Minute
)

// space is the directory of one test process. Whoever holds the lock in it owns all that is recorded in it; the kernel
// gives the lock back when the process dies, so what is not locked is a crashed run's.
type space struct {
	dir    string
	lock   *flock.Flock
	hosts  atomic.Int32
	reaper *exec.Cmd
	alive  io.Closer // its other end tells the reaper that this process ended
}

// opened is the process's space, once there is one.
var opened atomic.Pointer[space]

func base() string {
	if dir := os.Getenv(dirVariable); dir != "" {
		return dir
	}
	return os.TempDir()
}

// newSpace sweeps what crashed runs left and makes this process's space.
func newSpace() (*space, error) {
	ctx, cancel := context.WithTimeout(context.Background(), takedownTimeout)
	defer cancel()
	if err := sweep(ctx, base()); err != nil {
		// A leftover costs space on the host, but no test depends on its absence.
		fmt.Fprintf(os.Stderr, "acctest: unable to sweep what an earlier run left: %v\n", err)
	}
	s, err := makeSpace(base())
	if err != nil {
		return nil, err
	}
	if err := s.startReaper(); err != nil {
		return nil, errors.Join(err, s.lock.Unlock(), os.RemoveAll(s.dir))
	}
	opened.Store(s)
	return s, nil
}

func makeSpace(base string) (*space, error) {
	if err := os.MkdirAll(base, 0o711); err != nil { //nolint:gosec // Containers reach their files through it.
		return nil, err
	}
	if err := checkOpen(base); err != nil {
		return nil, err
	}
	for range 10 {
		dir, err := os.MkdirTemp(base, spacePattern)
		if err != nil {
			return nil, err
		}
		lock, ok, err := lockSpace(dir)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // A sweep was faster, and removes the directory.
		}
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // Likewise.
			return nil, err
		}
		pid := strconv.Itoa(os.Getpid()) + "\n"
		return &space{dir: dir, lock: lock}, os.WriteFile(filepath.Join(dir, pidName), []byte(pid), 0o600)
	}
	return nil, fmt.Errorf("unable to lock a new directory in %s", base)
}

// checkOpen fails unless the root of an unprivileged container, a stranger on the host, can reach its files in dir.
func checkOpen(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for ; abs != "/"; abs = filepath.Dir(abs) {
		info, err := os.Stat(abs)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("containers cannot run below %s, which is closed to other users: set %s to an open directory", abs, dirVariable)
		}
	}
	return nil
}

// lockSpace takes the lock of a space; ok is false if another process has it or has removed the space.
func lockSpace(dir string) (lock *flock.Flock, ok bool, err error) {
	lock = flock.New(filepath.Join(dir, lockName))
	ok, err = lock.TryLock()
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil || !ok {
		return nil, false, err
	}
	if _, err := os.Stat(lock.Path()); errors.Is(err, os.ErrNotExist) {
		return nil, false, lock.Close() // Locked only after its removal.
	}
	return lock, true, nil
}

// sweep takes down what crashed runs of this user left in base.
func sweep(ctx context.Context, base string) error {
	dirs, err := filepath.Glob(filepath.Join(base, spacePattern))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if !own(dir) {
			continue
		}
		lock, ok, err := lockSpace(dir)
		if !ok {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, takeDown(ctx, dir), lock.Close())
	}
	return errors.Join(errs...)
}

// own tells whether path is a directory, not a link, of this user. The temporary directory is everybody's.
func own(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// closeSpace ends the process's space, if it has one: the reaper removes it and reports.
func closeSpace() error {
	s := opened.Load()
	if s == nil {
		return nil
	}
	if err := errors.Join(s.lock.Unlock(), s.alive.Close()); err != nil {
		return err
	}
	if err := s.reaper.Wait(); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, reaperLog))
		return fmt.Errorf("%w\n%s", err, log)
	}
	return nil
}
