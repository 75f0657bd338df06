// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canonical/lxd/shared/api"
)

func TestLockTableExcludes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table, holders, most := &lockTable{}, 0, 0
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				release, err := table.acquire(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				holders++ // unguarded, so that the race detector judges, too
				most = max(most, holders)
				time.Sleep(time.Millisecond)
				holders--
				release()
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d held the lock at once", most)
		}
	})
}

func TestLockTableKeepsNamesApart(t *testing.T) {
	t.Parallel()
	table := &lockTable{}
	for _, name := range []string{"a", "b"} {
		if _, err := table.acquire(patient(t), name); err != nil {
			t.Errorf("lock %s: %v", name, err)
		}
	}
}

func TestLockTableObeysTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := &lockTable{}
		release, err := table.acquire(t.Context(), "a")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := table.acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		release()
		if _, err := table.acquire(t.Context(), "a"); err != nil {
			t.Errorf("it is not free after it was released: %v", err)
		}
	})
}

func TestLockFileIsOpenToAll(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "locks")
	path, err := makeLockFile(dir, "a")
	must(t, err)
	for _, want := range []struct {
		path string
		mode fs.FileMode
	}{{dir, fs.ModeDir | fs.ModeSticky | 0o777}, {path, 0o644}} {
		info, err := os.Stat(want.path)
		must(t, err)
		if info.Mode() != want.mode {
			t.Errorf("%s has mode %v, want %v", want.path, info.Mode(), want.mode)
		}
	}
	again, err := makeLockFile(dir, "a")
	if err != nil || again != path {
		t.Errorf("the second time it is %s, %v, want %s", again, err, path)
	}
	if _, err := makeLockFile(filepath.Join(dir, "none", "locks"), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a directory that is not there: %v", err)
	}
}

func TestTouches(t *testing.T) {
	t.Parallel()
	operation := func(status api.StatusCode, description string, resources map[string][]string) api.Operation {
		return api.Operation{StatusCode: status, Description: description, Resources: resources}
	}
	on := func(paths ...string) map[string][]string { return map[string][]string{"instances": paths} }
	tests := map[string]struct {
		operation api.Operation
		want      bool
	}{
		"restore":               {operation(api.Running, "Restoring snapshot", on("/1.0/instances/m")), true},
		"not begun":             {operation(api.Pending, "Restoring snapshot", on("/1.0/instances/m")), true},
		"of a project":          {operation(api.Running, "Restoring snapshot", on("/1.0/instances/m?project=p")), true},
		"of a snapshot":         {operation(api.Running, "Deleting snapshot", on("/1.0/instances/m/snapshots/s")), true},
		"copy of it":            {operation(api.Running, "Creating instance", on("/1.0/instances/new", "/1.0/instances/m")), true},
		"copy of its snapshot":  {operation(api.Running, "Creating instance", on("/1.0/instances/new", "/1.0/instances/m/s")), true},
		"by its old name":       {operation(api.Running, "Stopping container", map[string][]string{"containers": {"/1.0/containers/m"}}), true},
		"ended":                 {operation(api.Success, "Restoring snapshot", on("/1.0/instances/m")), false},
		"failed":                {operation(api.Failure, "Restoring snapshot", on("/1.0/instances/m")), false},
		"command":               {operation(api.Running, "Executing command", on("/1.0/instances/m")), false},
		"console":               {operation(api.Running, "Showing console", on("/1.0/instances/m")), false},
		"another machine":       {operation(api.Running, "Restoring snapshot", on("/1.0/instances/m2")), false},
		"another's snapshot":    {operation(api.Running, "Deleting snapshot", on("/1.0/instances/a/snapshots/m")), false},
		"an image of that name": {operation(api.Running, "Deleting image", map[string][]string{"images": {"/1.0/images/m"}}), false},
		"nothing in particular": {operation(api.Running, "Updating images", nil), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := touches(test.operation, "m"); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestLockSaysWhoHoldsTheMachine(t *testing.T) {
	t.Parallel()
	d, _ := inMemory(t)
	unlock, err := d.Lock(patient(t), "m")
	must(t, err)
	t.Cleanup(unlock)

	for name, test := range map[string]struct {
		table *lockTable
		want  string
	}{
		"this process": {d.locks, "held by another resource of this run"},
		// Another table stands for another process: only the file lock is left between them.
		"another process": {&lockTable{}, fmt.Sprintf("held by process %d (%s) of this host, through ", os.Getpid(), filepath.Base(os.Args[0]))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := *d
			other.locks = test.table
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := other.Lock(ctx, "m")
			if !errors.Is(err, ErrBusy) || !errors.Is(err, ErrTimeout) {
				t.Fatalf("got %v, want busy and a timeout", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not contain %q", err, test.want)
			}
		})
	}
}

func TestLockOfAnEndedContextBlamesNobody(t *testing.T) {
	t.Parallel()
	d, _ := inMemory(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Lock(ctx, "m"); !isOnly(err, context.Canceled) {
		t.Errorf("got %v, want an interrupt", err)
	}
}

// atWork puts a handler before the daemon that shows an operation on machine "m" for so many looks, and counts them.
func atWork(t *testing.T, looks int32, look func(number int32)) *Daemon {
	t.Helper()
	operation := api.Operation{
		ID: "4711", Description: "Restoring snapshot", StatusCode: api.Running, Status: "Running",
		Resources: map[string][]string{"instances": {"/1.0/instances/m"}},
	}
	_, server := inMemory(t)
	asked := atomic.Int32{}
	return between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path != "/1.0/operations" {
			next.ServeHTTP(w, r)
			return
		}
		number := asked.Add(1)
		look(number)
		if number > looks {
			next.ServeHTTP(w, r)
			return
		}
		answer(t, w, http.StatusOK, api.ResponseRaw{Type: api.SyncResponse, Metadata: map[string][]api.Operation{"running": {operation}}})
	})
}

func TestLockWaitsForTheDaemon(t *testing.T) {
	t.Parallel()
	looks := atomic.Int32{}
	d := atWork(t, 3, func(number int32) { looks.Store(number) })
	unlock, err := d.Lock(patient(t), "m")
	must(t, err)
	unlock()
	if looks.Load() != 4 {
		t.Errorf("the daemon was asked %d times, want 4", looks.Load())
	}
}

func TestLockOfAMachineThatTheDaemonWorksOn(t *testing.T) {
	t.Parallel()
	ctx, end := ending(t, false)
	d := atWork(t, 3, func(number int32) {
		if number == 3 {
			end()
		}
	})
	_, err := d.Lock(ctx, "m")
	want := `the daemon runs no other operation on machine "m"; last seen: operation 4711 (Restoring snapshot), Running`
	if !errors.Is(err, ErrBusy) || !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want busy with %q", err, want)
	}
	unlock, err := d.Lock(patient(t), "m")
	if err != nil {
		t.Fatalf("it stays locked by who gave up: %v", err)
	}
	unlock()
}
