// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

func TestAccLockBetweenProcesses(t *testing.T) {
	t.Parallel()
	d, _ := shareDaemon(t)
	machine := acctest.Name(t, "m") // it need not be there
	pid, release := lockElsewhere(t, d, machine)

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := d.Lock(ctx, machine)
	if !errors.Is(err, ErrBusy) || !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v, want busy and a timeout", err)
	}
	if want := fmt.Sprintf("held by process %d (%s) of this host", pid, filepath.Base(os.Args[0])); !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not contain %q", err, want)
	}
	unlock, err := d.Lock(patient(t), acctest.Name(t, "other"))
	if err != nil {
		t.Fatalf("another machine is locked, too: %v", err)
	}
	unlock()

	release()
	unlock, err = d.Lock(patient(t), machine)
	if err != nil {
		t.Fatalf("it stays locked after the other process has ended: %v", err)
	}
	unlock()
}

// TestAccLockWaitsForOthers has a client that knows nothing of locks stop a machine whose init does not react, which
// keeps the daemon at work for as long as that client says.
func TestAccLockWaitsForOthers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can halt a container's init")
	}
	d, h := shareDaemon(t)
	machine := launch(t, d, h)
	state, err := d.InstanceState(patient(t), machine)
	must(t, err)
	must(t, syscall.Kill(int(state.Pid), syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(int(state.Pid), syscall.SIGCONT) })

	raw := h.Client(t)
	stop, err := raw.UpdateInstanceState(machine, api.InstanceStatePut{Action: "stop", Timeout: 3}, "")
	must(t, err)
	id := stop.Get().ID
	ctx, end := ending(t, false)
	time.AfterFunc(100*time.Millisecond, end)
	_, err = d.Lock(ctx, machine)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "operation "+id+" (Stopping instance), Running") {
		t.Errorf("got %v, want busy with operation %s", err, id)
	}

	unlock, err := d.Lock(patient(t), machine)
	must(t, err)
	defer unlock()
	operation, _, err := raw.GetOperation(id)
	must(t, err)
	if !operation.StatusCode.IsFinal() {
		t.Errorf("the machine was locked while the other's operation is %s", operation.Status)
	}
}

func TestAccInProject(t *testing.T) {
	t.Parallel()
	d, h := shareDaemon(t)
	project := acctest.Name(t, "project")
	raw := h.Client(t)
	must(t, raw.CreateProject(api.ProjectsPost{Name: project, ProjectPut: api.ProjectPut{Config: map[string]string{"features.images": "false"}}}))
	t.Cleanup(func() {
		if err := raw.DeleteProject(project); err != nil {
			t.Error(err)
		}
	})
	there := d.InProject(project)
	if there.Project() != project || d.InProject("") != d || d.InProject(d.Project()) != d || there.Fingerprint() != d.Fingerprint() {
		t.Errorf("project is %s", there.Project())
	}
	machine := create(t, there, h)
	if _, _, err := there.Instance(patient(t), machine); err != nil {
		t.Errorf("the machine is not in its project: %v", err)
	}
	if _, _, err := d.Instance(patient(t), machine); !isOnly(err, ErrNotFound) {
		t.Errorf("in the other project: got %v, want not found", err)
	}
	unlock, err := there.Lock(patient(t), machine)
	must(t, err)
	defer unlock()
	other, err := d.Lock(patient(t), machine)
	if err != nil {
		t.Fatalf("a machine of the same name in another project is locked, too: %v", err)
	}
	other()
}
