// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// orderly is how long processes get to end by themselves before they are killed.
	orderly = 5 * time.Second
	// endTimeout is how long killed processes may take.
	endTimeout = 20 * time.Second
)

// process is one that belongs to a daemon.
type process struct {
	pid     int
	monitor bool // looks after a container, and ends in an orderly way when that ends
}

// endProcesses ends everything that runs for the daemon in dir. It goes by what a process is now, never by a recorded
// number, which may have been given to another one.
func endProcesses(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	killTime := time.Now().Add(orderly)
	for {
		processes, err := processesOf(dir)
		if err != nil || len(processes) == 0 {
			return err
		}
		for _, p := range processes {
			if err := end(p, time.Now().After(killTime)); err != nil {
				return err
			}
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("processes of the daemon in %s do not end: %v: %w", dir, processes, err)
		}
	}
}

func end(p process, kill bool) error {
	var errs []error
	if p.monitor {
		children, err := childrenOf(p.pid)
		errs = append(errs, err)
		for _, child := range children {
			errs = append(errs, syscall.Kill(child, syscall.SIGKILL))
		}
	} else if !kill {
		errs = append(errs, syscall.Kill(p.pid, syscall.SIGTERM))
	}
	if kill {
		errs = append(errs, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// processesOf returns the running processes of the daemon in dir: LXD itself, which has dir in its environment, and
// what it started, which has a path in dir among its arguments.
func processesOf(dir string) ([]process, error) {
	pids, err := allPIDs()
	if err != nil {
		return nil, err
	}
	var found []process
	for _, pid := range pids {
		// A process may end while it is looked at; then nothing matches.
		exe, _ := os.Readlink(procFile(pid, "exe"))
		if !isServer(filepath.Base(strings.TrimSuffix(exe, " (deleted)"))) {
			continue
		}
		arguments, _ := os.ReadFile(procFile(pid, "cmdline"))
		environment, _ := os.ReadFile(procFile(pid, "environ"))
		inside := bytes.Contains(arguments, []byte(dir+"/"))
		serves := bytes.Contains(append([]byte{0}, environment...), []byte("\x00LXD_DIR="+dir+"\x00"))
		if inside || serves {
			found = append(found, process{pid: pid, monitor: bytes.HasPrefix(arguments, []byte("[lxc monitor]"))})
		}
	}
	return found, nil
}

// isServer tells LXD's processes from those of a person who looks into a daemon's directory.
func isServer(program string) bool {
	switch program {
	case "lxd", "dnsmasq", "virtiofsd":
		return true
	}
	return strings.HasPrefix(program, "qemu-system-")
}

func allPIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func childrenOf(parent int) ([]int, error) {
	pids, err := allPIDs()
	if err != nil {
		return nil, err
	}
	var children []int
	for _, pid := range pids {
		stat, err := os.ReadFile(procFile(pid, "stat"))
		if err != nil {
			continue // It ended since it was listed.
		}
		// PID (NAME) STATE PARENT ..., where NAME may hold anything.
		_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			children = append(children, pid)
		}
	}
	return children, nil
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
