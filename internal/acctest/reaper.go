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
	"syscall"

	"github.com/gofrs/flock"
)

const reaperLog = "reaper.log"

// startReaper runs this binary once more, as the process that removes the space when this one has ended. A second
// process is the only one that survives a panic in a test, an expired -timeout, an interrupt and a kill.
func (s *space) startReaper() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	gone, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = gone.Close() }()
	log, err := os.Create(filepath.Join(s.dir, reaperLog))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()

	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), reapVariable+"="+s.dir)
	cmd.Stdin = gone
	// Its output must not be the test's: go test waits until everybody has closed that.
	cmd.Stdout, cmd.Stderr = log, log
	// An interrupt from the terminal ends the tests, not the clean-up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("unable to start the process that cleans up: %w", err)
	}
	s.reaper, s.alive = cmd, alive
	return nil
}

// reap waits until the parent has closed our standard input, by its end at the latest, removes the space, and returns
// an exit code.
func reap(dir string) int {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), takedownTimeout)
	defer cancel()
	lock, err := inheritSpace(ctx, dir)
	if errors.Is(err, os.ErrNotExist) {
		return 0 // Another run's sweep was faster.
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = lock.Close() }()
	if err := takeDown(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// inheritSpace waits for the lock of a space. The kernel may close the pipe of a process that dies before it gives back
// its lock.
func inheritSpace(ctx context.Context, dir string) (*flock.Flock, error) {
	for {
		lock, ok, err := lockSpace(dir)
		if ok || err != nil {
			return lock, err
		}
		if _, err := os.Stat(dir); err != nil {
			return nil, err
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("somebody else holds %s: %w", dir, err)
		}
	}
}
