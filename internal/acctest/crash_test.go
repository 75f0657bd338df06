// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crashVariable makes TestCrashingRun the run that the tests below end.
const crashVariable = "LAB_ACC_TEST_CRASH"

// TestCrashingRun is a run of another process: it starts a daemon with a machine, says so, and waits to be ended.
func TestCrashingRun(t *testing.T) { //nolint:paralleltest // It is alone in its process.
	mode := os.Getenv(crashVariable)
	if mode == "" {
		t.Skip("only runs as a child of the other tests")
	}
	h := Shared(t)
	launch(t, h)
	fmt.Println("READY", h.Network(t)) // To the parent, whatever -test.v says.
	if mode == "panic" {
		panic("as a test that fails badly")
	}
	select {}
}

// crash starts a run of another process in base, waits until a machine runs in it, and returns it with the names of its
// network interfaces.
func crash(t *testing.T, base, mode string) (cmd *exec.Cmd, interfaces []string) {
	t.Helper()
	need(t)
	if err := missing(); err != nil {
		t.Skip(err)
	}
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCrashingRun$")
	cmd.Env = append(os.Environ(), crashVariable+"="+mode, dirVariable+"="+base)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "READY "); ok {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd, append(portsOf(t, name), name)
		}
		t.Log(lines.Text())
	}
	t.Fatal("the other run did not get ready")
	return nil, nil
}

// portsOf returns what is connected to a bridge: the machine's interface, seen from the host.
func portsOf(t *testing.T, bridge string) []string {
	t.Helper()
	ports, err := ports(bridge)
	if err != nil {
		t.Fatal(err)
	}
	if len(ports) == 0 {
		t.Fatalf("no machine is connected to %s", bridge)
	}
	return ports
}

// openDir returns a temporary directory that containers can reach their files through.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "acctest-*") //nolint:usetesting // Nobody else may enter that of t.TempDir.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // It is what this is for.
		t.Fatal(err)
	}
	return dir
}

// leftovers lists what is there of runs in base.
func leftovers(t *testing.T, base string, interfaces []string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(base, spacePattern))
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := mountsBelow(base)
	if err != nil {
		t.Fatal(err)
	}
	loops, err := loopsBelow(base)
	if err != nil {
		t.Fatal(err)
	}
	left := append(append(dirs, mounts...), loops...)
	rules, err := exec.CommandContext(t.Context(), "nft", "list", "ruleset").Output()
	if err != nil {
		t.Log(err) // LXD uses another firewall then, and its rules are not looked at.
	}
	for _, name := range interfaces {
		if _, err := os.Stat(filepath.Join("/sys/class/net", name)); err == nil {
			left = append(left, "interface "+name)
		}
		if strings.Contains(string(rules), name) {
			left = append(left, "firewall rules for "+name)
		}
	}
	pids, err := allPIDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if line, err := os.ReadFile(procFile(pid, "cmdline")); err == nil && strings.Contains(string(line), base+"/") {
			left = append(left, string(line))
		}
	}
	return left
}

// awaitGone waits until nothing is left in base, which another process cares for.
func awaitGone(t *testing.T, base string, interfaces []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), takedownTimeout)
	defer cancel()
	for {
		left := leftovers(t, base, interfaces)
		if len(left) == 0 {
			return
		}
		if err := pause(ctx); err != nil {
			t.Fatalf("still there: %q", left)
		}
	}
}

func TestDeadRunIsCleanedUp(t *testing.T) {
	t.Parallel()
	for mode, signal := range map[string]os.Signal{"panic": nil, "kill": syscall.SIGKILL, "interrupt": os.Interrupt} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			base := openDir(t)
			cmd, interfaces := crash(t, base, mode)
			if signal != nil {
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); err == nil {
				t.Error("the other run succeeded")
			}
			awaitGone(t, base, interfaces)
		})
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"daemon lives", "daemon dead"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			base := openDir(t)
			cmd, interfaces := crash(t, base, "kill")
			if err := sweep(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			if left := leftovers(t, base, interfaces); len(left) == 0 {
				t.Fatal("a run that goes on was swept")
			}
			kill(t, childrenNamed(t, cmd.Process.Pid, filepath.Base(os.Args[0]))) // What would clean up.
			if mode == "daemon dead" {
				kill(t, childrenNamed(t, cmd.Process.Pid, "lxd"))
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := sweep(ctx, base); err != nil {
				t.Fatal(err)
			}
			if left := leftovers(t, base, interfaces); len(left) > 0 {
				t.Errorf("left after the sweep: %q", left)
			}
		})
	}
}

// childrenNamed returns the children of a process that run the named program.
func childrenNamed(t *testing.T, parent int, program string) []int {
	t.Helper()
	children, err := childrenOf(parent)
	if err != nil {
		t.Fatal(err)
	}
	var named []int
	for _, pid := range children {
		if exe, err := os.Readlink(procFile(pid, "exe")); err == nil && filepath.Base(exe) == program {
			named = append(named, pid)
		}
	}
	if len(named) == 0 {
		t.Fatalf("process %d has no child that runs %s", parent, program)
	}
	return named
}

func kill(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}
