// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// childVariable makes the test binary another process that locks a machine: it holds "ADDRESS PROJECT MACHINE".
const childVariable = "LAB_LXD_TEST_CHILD"

// child locks a machine, says so, and holds the lock until its input ends.
func child(run string) int {
	var address, project, machine string
	if _, err := fmt.Sscan(run, &address, &project, &machine); err != nil {
		fmt.Println(err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d, err := Connect(ctx, Config{Address: address, Project: project})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	unlock, err := d.Lock(ctx, machine)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("locked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	unlock()
	return 0
}

// lockElsewhere has another process lock a machine. It gives that process's id, and what makes it unlock and end.
func lockElsewhere(t *testing.T, d *Daemon, machine string) (pid int, release func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+fmt.Sprintf("%s %s %s", d.Address(), d.Project(), machine))
	input, err := cmd.StdinPipe()
	must(t, err)
	output, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := ""
	if _, err := fmt.Fscanln(output, &said); err != nil || said != "locked" {
		rest, _ := io.ReadAll(output)
		t.Fatalf("the other process did not lock: %q %s (%v)", said, rest, err)
	}
	return cmd.Process.Pid, func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	}
}
