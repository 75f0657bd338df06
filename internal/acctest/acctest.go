// SPDX-License-Identifier: MPL-2.0

// Package acctest gives acceptance tests real LXD daemons of their own.
//
// Each daemon has its own LXD_DIR below the temporary directory (or LAB_ACC_DIR), its own bridges and its own loop
// devices, so that packages may be tested at once and nothing of the host's own daemon is touched. Everything is taken
// down when the test process ends, however it ends: a second process waits for that (see reap). What survives even so,
// for instance because both were killed, is swept by the next run.
//
// Where no daemon can be started (not root, LXD from a snap), LAB_ACC_ADDRESS may name a daemon, in which a project of
// the tests' own is used.
package acctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
)

// Environment variables that steer the harness.
const (
	enableVariable  = "TF_ACC"          // acceptance tests run when it is not empty
	dirVariable     = "LAB_ACC_DIR"     // directory for daemons; the temporary directory by default
	addressVariable = "LAB_ACC_ADDRESS" // unix:// address of a daemon to use where none can be started
	reapVariable    = "LAB_ACC_REAP"    // internal: makes the test binary wait for its parent's end and clean up
)

// Options describe a daemon that a test wants for itself.
type Options struct {
	// WithoutTools are the names of programs, such as "btrfs", that the daemon does not find in its PATH.
	WithoutTools []string
	// HTTPS makes the daemon listen on a loopback port too.
	HTTPS bool
	// DiskSize, such as "256M", puts the daemon's directory on a file system of its own of that size: a disk that is nearly full, or
	// one on which nobody else writes.
	DiskSize string
}

var (
	mainRuns  atomic.Bool
	workspace = sync.OnceValues(newSpace)
	shared    = sync.OnceValues(startShared)
)

// Main runs a package's tests and exits with their code. Call it from TestMain, and do nothing else there. Daemons are
// started when a test first asks for one, and are gone when Main exits.
func Main(m *testing.M) {
	if dir := os.Getenv(reapVariable); dir != "" {
		os.Exit(reap(dir))
	}
	mainRuns.Store(true)
	code := m.Run()
	if err := closeSpace(); err != nil {
		fmt.Fprintf(os.Stderr, "acctest: unable to take everything down: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Shared returns the package's daemon. It skips the test unless TF_ACC is set, and fails it if the daemon cannot start.
func Shared(t testing.TB) *Host {
	t.Helper()
	need(t)
	h, err := shared()
	if err != nil {
		t.Fatalf("Unable to start the package's LXD daemon: %v", err)
	}
	return h
}

func startShared() (*Host, error) {
	h, err := start(context.Background(), Options{})
	if err != nil {
		return nil, err
	}
	h.shared = true
	return h, nil
}

// Start returns a daemon of the test's own, which is taken down with everything in it when the test ends. It skips the
// test unless TF_ACC is set, and where the host only offers a project on a daemon that others use.
func Start(t testing.TB, o Options) *Host {
	t.Helper()
	need(t)
	if borrowed() {
		t.Skipf("needs a daemon of its own, which cannot be started here: %v", missing())
	}
	h, err := start(t.Context(), o)
	if err != nil {
		t.Fatalf("Unable to start an LXD daemon: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Log of the daemon in %s:\n%s", h.Dir, h.daemon.log())
		}
		if err := h.close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Unable to take down the LXD daemon in %s: %v", h.Dir, err)
		}
	})
	return h
}

// need ends the test unless acceptance tests are wanted and can be cleaned up after.
func need(t testing.TB) {
	t.Helper()
	if os.Getenv(enableVariable) == "" {
		t.Skipf("acceptance tests run with %s=1 only", enableVariable)
	}
	if !mainRuns.Load() {
		t.Fatal("TestMain of this package must call acctest.Main")
	}
}

// borrowed tells whether tests use a project on a daemon that is not ours.
func borrowed() bool {
	return os.Getenv(addressVariable) != "" && missing() != nil
}

func start(ctx context.Context, o Options) (*Host, error) {
	s, err := workspace()
	if err != nil {
		return nil, err
	}
	if borrowed() {
		return s.borrow(ctx, os.Getenv(addressVariable))
	}
	if err := missing(); err != nil {
		return nil, errors.Join(err, fmt.Errorf("or name a daemon to use a project of in %s", addressVariable))
	}
	return s.start(ctx, o)
}
