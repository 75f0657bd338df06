// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	lxd "github.com/canonical/lxd/client"
)

const (
	startTimeout = time.Minute
	pollInterval = 50 * time.Millisecond
	logTail      = 30 // lines of the daemon's log that an error shows

	// maxSocketPath is what the kernel allows for the address of a unix socket.
	maxSocketPath = 107
)

// daemon is an lxd process with a directory of its own.
type daemon struct {
	dir     string // LXD_DIR
	path    string // PATH
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended; exitErr is set before
	exitErr error
}

func (d *daemon) socket() string { return filepath.Join(d.dir, "unix.socket") }

// start runs the process and waits until it serves requests.
func (d *daemon) start(ctx context.Context) error {
	if n := len(filepath.Join(d.dir, "devlxd", "sock")); n > maxSocketPath {
		return fmt.Errorf("the directory %s is too long for sockets by %d characters: set %s to a shorter one", d.dir, n-maxSocketPath, dirVariable)
	}
	log, err := os.OpenFile(d.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()

	// The process outlives the context of the test that asked for it.
	d.cmd = exec.CommandContext(context.WithoutCancel(ctx), "lxd", "--group", "root")
	d.cmd.Env = append(withoutLXD(os.Environ()), "LXD_DIR="+d.dir, "PATH="+d.path)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	d.exited = make(chan struct{})
	go func() {
		defer close(d.exited)
		d.exitErr = d.cmd.Wait()
	}()
	if err := d.waitReady(ctx); err != nil {
		return fmt.Errorf("LXD in %s did not become ready: %w\nThe end of its log:\n%s", d.dir, err, d.log())
	}
	return nil
}

func (d *daemon) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		last := probeReady(ctx, d.socket())
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-d.exited:
			return fmt.Errorf("it ended: %w", d.exitErr)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		}
	}
}

// probeReady fails until the daemon has finished starting; its socket answers before that.
func probeReady(ctx context.Context, socket string) error {
	c, err := lxd.ConnectLXDUnixWithContext(ctx, socket, &lxd.ConnectionArgs{SkipGetServer: true})
	if err != nil {
		return err
	}
	defer c.Disconnect()
	_, _, err = c.RawQuery("GET", "/internal/ready", nil, "")
	return err
}

// signal ends the process by a signal and waits for that. Its instances keep running.
func (d *daemon) signal(ctx context.Context, s os.Signal) error {
	if err := d.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-d.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("LXD in %s is still running after %s: %w", d.dir, s, ctx.Err())
	}
}

// running tells whether the process has not ended yet.
func (d *daemon) running() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// log returns the end of what the process printed.
func (d *daemon) log() string {
	data, err := os.ReadFile(d.logFile)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTail):], "\n")
}

// withoutLXD removes what would lead LXD's programs to another daemon.
func withoutLXD(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		return strings.HasPrefix(e, "LXD_") || strings.HasPrefix(e, "PATH=")
	})
}

// toolsExcept fills dir with links to every program in PATH but the named ones, so that dir can stand for PATH.
func toolsExcept(dir string, without []string) error {
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(from)
		if err != nil {
			continue // PATH may name directories that do not exist.
		}
		for _, e := range entries {
			if slices.Contains(without, e.Name()) {
				continue
			}
			err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name()))
			if err != nil && !errors.Is(err, os.ErrExist) {
				return err
			}
		}
	}
	return nil
}
