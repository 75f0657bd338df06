// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// waits counts how often the daemon was asked to say when an operation ends.
func waits(server *lxdtest.Server) int {
	count := 0
	for _, r := range server.Requests() {
		if strings.HasPrefix(r.Path, "/1.0/operations/") && strings.HasSuffix(r.Path, "/wait") {
			count++
		}
	}
	return count
}

func TestChangesAreWaitedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options []lxdtest.Option
		waits   int
	}{
		"answered at once":           {},
		"answered with an operation": {[]lxdtest.Option{lxdtest.WithAsyncChanges()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := lxdtest.New(t, test.options...)
			d := connect(t, Config{Address: server.Address()})
			ctx := patient(t)
			pool := api.StoragePoolsPost{Name: "p", Driver: "dir"}
			network := api.NetworksPost{Name: "n", Type: "bridge"}
			for _, change := range []struct {
				what string
				do   func() error
				want error
			}{
				{"create a pool", func() error { return d.CreatePool(ctx, pool) }, nil},
				{"create it again", func() error { return d.CreatePool(ctx, pool) }, ErrExists},
				{"create one that cannot be", func() error { return d.CreatePool(ctx, api.StoragePoolsPost{Name: "q", Driver: "none"}) }, ErrUnsupported},
				{"create a network", func() error { return d.CreateNetwork(ctx, network) }, nil},
				{"create that again", func() error { return d.CreateNetwork(ctx, network) }, ErrExists},
				{"delete the network", func() error { return d.DeleteNetwork(ctx, "n") }, nil},
				{"delete the pool", func() error { return d.DeletePool(ctx, "p") }, nil},
			} {
				server.ForgetRequests()
				err := change.do()
				if !isOnly(err, change.want) {
					t.Errorf("%s: got %v, want the kind %v", change.what, err, change.want)
				}
				if got := waits(server); got > 1 || (change.want == nil && got != test.waits) {
					t.Errorf("%s: waited for %d operations, want %d", change.what, got, test.waits)
				}
			}
			if _, _, err := d.Pool(ctx, "p"); !isOnly(err, ErrNotFound) {
				t.Errorf("the pool that was deleted: %v", err)
			}
		})
	}
}

func TestFailedOperationOfANewerDaemon(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]lxdtest.Option{"older": nil, "newer": {lxdtest.WithWaitErrors()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := append(options, lxdtest.WithExec(func(context.Context, lxdtest.Exec) lxdtest.ExecResult {
				return lxdtest.ExecResult{Code: 127}
			}))
			d, server := inMemory(t, options...)
			start := api.InstanceStatePut{Action: "start"}
			must(t, d.SetInstanceState(patient(t), "m", start))
			if err := d.SetInstanceState(patient(t), "m", start); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "already running") {
				t.Errorf("started twice: got %v, want the daemon's own words", err)
			}
			if got, err := d.ExitCode(patient(t), "m", "none"); err != nil || got != 127 {
				t.Errorf("a command that is not there: got %d, %v", got, err)
			}
			if waits(server) == 0 {
				t.Error("nothing was waited for")
			}
		})
	}
}

func TestContactLost(t *testing.T) {
	t.Parallel()
	isDelete := func(r *http.Request) bool { return r.Method == http.MethodDelete }
	isWait := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/wait") }
	for name, test := range map[string]struct {
		when func(*http.Request) bool
		do   func(w http.ResponseWriter, r *http.Request, next http.Handler)
		want string
	}{
		"after the request was passed on": {isDelete, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			hangUp(w)
		}, "contact with the daemon was lost"},
		"during the wait": {isWait, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			hangUp(w)
		}, "contact with the daemon was lost"},
		"by something else that answers": {isDelete, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "<html>", http.StatusBadGateway)
		}, "502 Bad Gateway"},
		"for so long that it is forgotten": {isWait, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			refuse(t, w, http.StatusNotFound, "Operation not found")
		}, "does not know its operation"},
		"by a daemon that stops": {isWait, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			answer(t, w, http.StatusOK, api.ResponseRaw{Type: api.SyncResponse, Metadata: api.Operation{StatusCode: api.Running, Status: "Running"}})
		}, "gave up waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct, server := inMemory(t)
			d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if test.when(r) {
					test.do(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			err := d.DeleteInstance(patient(t), "m")
			if !isOnly(err, ErrUnknownOutcome) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an unknown outcome with %q", err, test.want)
			}
			must(t, direct.Idle(patient(t), "m"))
			if _, _, err := direct.Instance(patient(t), "m"); !isOnly(err, ErrNotFound) {
				t.Errorf("the daemon did not do it: %v", err)
			}
		})
	}
}

func TestContactNeverMade(t *testing.T) {
	t.Parallel()
	d, server := inMemory(t)
	must(t, os.Remove(server.Socket()))
	if err := d.DeleteInstance(patient(t), "m"); !isOnly(err, ErrUnreachable) {
		t.Errorf("got %v, want it unreachable", err)
	}
}

func TestOperationThatWasCancelled(t *testing.T) {
	t.Parallel()
	_, server := inMemory(t)
	d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/wait") {
			answer(t, w, http.StatusOK, api.ResponseRaw{Type: api.SyncResponse, Metadata: api.Operation{StatusCode: api.Cancelled, Status: "Cancelled"}})
			return
		}
		next.ServeHTTP(w, r)
	})
	if err := d.DeleteInstance(patient(t), "m"); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "Cancelled") {
		t.Errorf("got %v, want an operation that was cancelled", err)
	}
}

// TestContextEndsAWait has operations that take an hour: what does not end with its context does not end at all.
func TestContextEndsAWait(t *testing.T) {
	t.Parallel()
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
			_, server := inMemory(t, lxdtest.WithLatency(func(lxdtest.Work) time.Duration { return time.Hour }))
			d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.HasSuffix(r.URL.Path, "/wait") {
					end()
				}
				next.ServeHTTP(w, r)
			})
			err := d.CreateSnapshot(ctx, "m", api.InstanceSnapshotsPost{Name: "s"})
			timeout, ok := errors.AsType[*TimeoutError](err)
			if !ok || !isOnly(err, test.want) {
				t.Fatalf("got %v, want a wait that ended by %v", err, test.want)
			}
			if !strings.HasPrefix(timeout.Condition, "the daemon's operation ") || !strings.Contains(timeout.Condition, "(Snapshotting instance)") {
				t.Errorf("condition %q does not name the operation", timeout.Condition)
			}
			if want := `take snapshot "s" of machine "m": `; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error %q does not begin with %q", err, want)
			}
		})
	}
}

func TestContextEndsARequest(t *testing.T) {
	t.Parallel()
	_, server := inMemory(t)
	ctx, end := ending(t, false)
	d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
			end()
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	})
	err := d.CreatePool(ctx, api.StoragePoolsPost{Name: "p", Driver: "dir"})
	timeout, ok := errors.AsType[*TimeoutError](err)
	if !ok || !isOnly(err, ErrTimeout) || !strings.Contains(timeout.LastSeen, "the request was sent") {
		t.Errorf("got %v, want a timeout that says that the request was sent", err)
	}
}

func TestBusyInstanceIsAskedAgain(t *testing.T) {
	t.Parallel()
	const text = `Failed to create instance start operation: Instance is busy running a "restore" operation`
	for name, test := range map[string]struct {
		refusals int32
		text     string
		asked    int32
		want     error
	}{
		"until it is free":         {3, text, 4, nil},
		"but only if it says busy": {3, "Instance is running", 1, ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := atomic.Int32{}
			_, server := inMemory(t)
			d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if r.Method == http.MethodDelete && asked.Add(1) <= test.refusals {
					refuse(t, w, http.StatusInternalServerError, test.text)
					return
				}
				next.ServeHTTP(w, r)
			})
			if err := d.DeleteInstance(patient(t), "m"); !isOnly(err, test.want) {
				t.Errorf("got %v, want the kind %v", err, test.want)
			}
			if asked.Load() != test.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), test.asked)
			}
		})
	}
}

func TestBusyInstanceThatStaysSo(t *testing.T) {
	t.Parallel()
	_, server := inMemory(t)
	d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodDelete {
			refuse(t, w, http.StatusInternalServerError, `Instance is busy running a "restore" operation`)
			return
		}
		next.ServeHTTP(w, r)
	})
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := d.DeleteInstance(ctx, "m")
		cancel()
		if isOnly(err, ErrTimeout) {
			continue // the deadline fell into a request, not into the pause between two
		}
		if !errors.Is(err, ErrBusy) || !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), `busy running a "restore" operation`) {
			t.Errorf("got %v, want busy, a timeout, and what the daemon is busy with", err)
		}
		return
	}
	t.Error("the daemon was never found busy")
}
