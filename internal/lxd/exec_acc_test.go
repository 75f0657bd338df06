// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// create makes a tiny machine, stopped, and removes it after the test.
func create(t *testing.T, d *Daemon, h *acctest.Host) string {
	t.Helper()
	name := acctest.Name(t, "tiny")
	machine := api.InstancesPost{Name: name, Source: api.InstanceSource{Type: "image", Fingerprint: h.Tiny(t).Fingerprint}}
	machine.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": h.Pool(t)}}
	machine.Profiles = []string{}
	must(t, d.CreateInstance(patient(t), machine))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		stop := d.SetInstanceState(ctx, name, api.InstanceStatePut{Action: "stop", Force: true})
		if err := d.DeleteInstance(ctx, name); err != nil && !errors.Is(err, ErrNotFound) {
			t.Error(errors.Join(stop, err))
		}
	})
	return name
}

// launch makes a tiny machine that runs.
func launch(t *testing.T, d *Daemon, h *acctest.Host) string {
	t.Helper()
	name := create(t, d, h)
	must(t, d.SetInstanceState(patient(t), name, api.InstanceStatePut{Action: "start"}))
	return name
}

// whole runs a command, again where a busy LXD 5.0 lost the output that it should have.
func whole(t *testing.T, d *Daemon, machine string, command Command, speaks bool) *CommandResult {
	t.Helper()
	for tries := 1; ; tries++ {
		result, err := d.Exec(patient(t), machine, command)
		must(t, err)
		if !speaks || len(result.Stdout) > 0 || tries == 5 {
			return result
		}
	}
}

// shell runs a script, which must succeed, and returns what it printed, without the last line break.
func shell(t *testing.T, d *Daemon, machine, script string) string {
	t.Helper()
	result, err := d.Exec(patient(t), machine, Command{Args: []string{"sh", "-c", script}})
	must(t, err)
	if result.ExitCode != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", script, result.ExitCode, result.Stdout, result.Stderr)
	}
	return strings.TrimSuffix(string(result.Stdout), "\n")
}

func TestAccExec(t *testing.T) {
	t.Parallel()
	d, h := shareDaemon(t)
	machine := launch(t, d, h)
	sh := func(script string) Command { return Command{Args: []string{"sh", "-c", script}} }
	in := func(directory string, c Command) Command { c.Directory = directory; return c }
	as := func(user, group uint32, c Command) Command { c.User, c.Group = user, group; return c }
	with := func(environment map[string]string, c Command) Command { c.Environment = environment; return c }
	for name, test := range map[string]struct {
		command        Command
		code           int
		stdout, stderr string
	}{
		"success":         {command: Command{Args: []string{"true"}}},
		"failure":         {command: sh("exit 3"), code: 3},
		"killed":          {command: sh("kill -KILL $$"), code: 137},
		"output":          {command: sh("echo out; echo err >&2; exit 1"), code: 1, stdout: "out\n", stderr: "err\n"},
		"no shell":        {command: Command{Args: []string{"echo", "$HOME", "a  b", ";"}}, stdout: "$HOME a  b ;\n"},
		"environment":     {command: with(map[string]string{"LAB": "a b"}, sh(`echo "$LAB"`)), stdout: "a b\n"},
		"home":            {command: sh("pwd"), stdout: "/root\n"},
		"directory":       {command: in("/usr/bin", sh("pwd")), stdout: "/usr/bin\n"},
		"user":            {command: as(1000, 100, sh("id -u; id -g")), stdout: "1000\n100\n"},
		"input is at end": {command: Command{Args: []string{"cat"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := whole(t, d, machine, test.command, test.stdout != "")
			want := &CommandResult{ExitCode: test.code, Stdout: []byte(test.stdout), Stderr: []byte(test.stderr)}
			if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a command that is not there", func(t *testing.T) {
		t.Parallel()
		got, err := d.Exec(patient(t), machine, Command{Args: []string{"no-such-command"}})
		must(t, err)
		if got.ExitCode != 127 || !strings.Contains(string(got.Stderr), "ommand not found") {
			t.Errorf("got %d and %q, want 127 and the daemon's words", got.ExitCode, got.Stderr)
		}
	})
	t.Run("only the exit code", func(t *testing.T) {
		t.Parallel()
		for program, want := range map[string]int{"true": 0, "false": 1, "no-such-command": 127} {
			if got, err := d.ExitCode(patient(t), machine, program); err != nil || got != want {
				t.Errorf("%s: got %d, %v, want %d", program, got, err, want)
			}
		}
	})
	t.Run("a long output keeps its end", func(t *testing.T) {
		t.Parallel()
		got := whole(t, d, machine, Command{Args: []string{"seq", "100000"}}, true)
		if len(got.Stdout) != outputLimit || !bytes.HasSuffix(got.Stdout, []byte("\n99999\n100000\n")) {
			t.Errorf("kept %d bytes that end in %q", len(got.Stdout), got.Stdout[max(0, len(got.Stdout)-20):])
		}
	})
	t.Run("a child in the background", func(t *testing.T) {
		t.Parallel()
		pid := shell(t, d, machine, "sleep 1000 </dev/null >/dev/null 2>&1 & echo $!")
		shell(t, d, machine, "kill "+pid) // it was left alone
	})
	t.Run("a child in the background that holds the output", func(t *testing.T) {
		t.Parallel()
		got, err := d.Exec(patient(t), machine, sh("sleep 1000 & echo $! >/run/child"))
		switch {
		case err == nil && got.ExitCode == 0: // newer daemons
		case isOnly(err, ErrUnsupported) && strings.Contains(err.Error(), "redirect the output"): // LXD 5.0
		default:
			t.Errorf("got %+v, %v, want success, or an error that says what to do", got, err)
		}
		shell(t, d, machine, "kill $(cat /run/child)")
	})
}

func TestAccExecKillsWithItsContext(t *testing.T) {
	t.Parallel()
	d, h := shareDaemon(t)
	machine := launch(t, d, h)
	for name, test := range map[string]struct {
		interrupt bool
		want      error
	}{
		"deadline":  {false, ErrTimeout},
		"interrupt": {true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, end := ending(t, test.interrupt)
			pidFile := "/run/" + name
			done := make(chan error, 1)
			go func() {
				_, err := d.Exec(ctx, machine, Command{Args: []string{"sh", "-c", "echo almost there; echo $$ >" + pidFile + "; exec sleep 1000"}})
				done <- err
			}()
			pid := ""
			must(t, Poll(patient(t), "the command runs", func(ctx context.Context) (bool, string, error) {
				result, err := d.Exec(ctx, machine, Command{Args: []string{"cat", pidFile}})
				if err != nil {
					return false, "", err
				}
				pid = strings.TrimSpace(string(result.Stdout))
				return pid != "", string(result.Stderr), nil
			}))
			shell(t, d, machine, "kill -0 "+pid)
			end()
			err := <-done
			timeout, ok := errors.AsType[*TimeoutError](err)
			if !ok || !isOnly(err, test.want) {
				t.Fatalf("got %v, want a wait that ended by %v", err, test.want)
			}
			if want := `the command was killed; it had printed "almost there"`; timeout.LastSeen != want {
				t.Errorf("last seen is %q, want %q", timeout.LastSeen, want)
			}
			shell(t, d, machine, fmt.Sprintf("! kill -0 %s 2>/dev/null", pid))
		})
	}
}
