// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestSystemRuns(t *testing.T) {
	t.Parallel()
	var status []string
	out, err := System{}.Run(t.Context(), Command{
		Args:   []string{"sh", "-c", `echo out; echo err >&2; echo half:$WORD >&3; echo done >&3`},
		Env:    []string{"WORD=way"},
		Status: func(line string) { status = append(status, line) },
	})
	if err != nil || out != "out\nerr\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if diff := cmp.Diff([]string{"half:way", "done"}, status); diff != "" {
		t.Error(diff)
	}
}

func TestSystemDoesNotWaitForServices(t *testing.T) {
	t.Parallel()
	var status []string
	_, err := System{}.Run(t.Context(), Command{
		Args:   []string{"sh", "-c", `echo done >&3; sleep 600 >/dev/null 2>&1 & echo $! >&3`},
		Status: func(line string) { status = append(status, line) },
	})
	if err != nil || len(status) != 2 || status[0] != "done" {
		t.Fatalf("got %q, %v", status, err)
	}
	if _, err := (System{}).Run(t.Context(), Command{Args: []string{"kill", status[1]}}); err != nil {
		t.Errorf("what the program started did not outlive it: %v", err)
	}
}

func TestSystemTellsFailures(t *testing.T) {
	t.Parallel()
	_, err := System{}.Run(t.Context(), Command{Args: []string{"sh", "-c", "echo it broke; exit 3"}})
	if printed(err) != "it broke\n" || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("got %v", err)
	}
	if _, err := (System{}).Run(t.Context(), Command{Args: []string{"no-such-program"}}); err == nil {
		t.Error("a program that is not there ran")
	}
}

func TestSystemEndsProgramsInOrder(t *testing.T) {
	t.Parallel()
	ended := filepath.Join(t.TempDir(), "ended")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := System{}.Run(ctx, Command{
		Args:   []string{"sh", "-c", `trap 'echo yes >"$1"; exit 1' TERM; echo ready >&3; while :; do sleep 0.01; done`, "sh", ended},
		Status: func(string) { cancel() },
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the program was not asked to end: %v", err)
	}
}

func TestSystemStartsPrograms(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	log := filepath.Join(t.TempDir(), "new", "log")
	exited, err := System{}.Start(ctx, Command{Args: []string{"sh", "-c", "echo started; read line; exit 4"}}, log)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // it does not end with the context, but with its input, which is empty
	select {
	case err := <-exited:
		if err == nil || !strings.Contains(err.Error(), "exit status 4") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it did not end")
	}
	if said, err := os.ReadFile(log); err != nil || string(said) != "started\n" {
		t.Errorf("the log holds %q, %v", said, err)
	}
}

func TestSystemFindsPrograms(t *testing.T) {
	t.Parallel()
	if path := (System{}).Find("sh"); !filepath.IsAbs(path) {
		t.Errorf("sh is at %q", path)
	}
	if path := (System{}).Find("no-such-program"); path != "" {
		t.Errorf("found %q", path)
	}
}

func TestSystemKnowsItsInvoker(t *testing.T) {
	t.Setenv("SUDO_USER", "alice")
	invoker, err := System{}.Invoker()
	if err != nil {
		t.Fatal(err)
	}
	if invoker.Root != (os.Geteuid() == 0) || invoker.Root && invoker.User != "alice" || !invoker.Root && invoker.User == "" {
		t.Errorf("got %+v", invoker)
	}
	if !slices.Contains(invoker.Groups, os.Getegid()) {
		t.Errorf("%v lacks the group %d", invoker.Groups, os.Getegid())
	}
	if gid, err := (System{}).OwningGroup("/"); err != nil || gid != 0 {
		t.Errorf("the group of / is %d, %v", gid, err)
	}
}

func TestSystemTriesAPool(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t, lxdtest.WithDrivers("dir"), lxdtest.WithUsableDrivers("dir", "btrfs"))
	host := System{}
	before, err := host.Ask(t.Context(), daemon.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := host.TryPool(t.Context(), daemon.Address(), driver); err != nil {
		t.Fatal(err)
	}
	after, err := host.Ask(t.Context(), daemon.Address())
	if err != nil {
		t.Fatal(err)
	}
	if (daemonFacts{server: before}).offers() || !(daemonFacts{server: after}).offers() {
		t.Errorf("the daemon offers %v before and %v after", before.Drivers, after.Drivers)
	}
}
