// SPDX-License-Identifier: MPL-2.0

package lxdtest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func connect(t *testing.T, socket string) lxd.InstanceServer {
	t.Helper()
	c, err := lxd.ConnectLXDUnixWithContext(context.WithoutCancel(t.Context()), socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Disconnect)
	return c
}

func TestProxyRules(t *testing.T) {
	t.Parallel()
	create := func(c lxd.InstanceServer, name string) error {
		return c.CreateStoragePool(api.StoragePoolsPost{Name: name, Driver: "dir"})
	}
	for name, test := range map[string]struct {
		rule lxdtest.Rule
		// fails says of each of three requests in turn whether the client is told of a failure.
		fails [3]bool
		// made says whether the daemon has done them all the same.
		made [3]bool
	}{
		"none":              {lxdtest.Rule{Method: http.MethodDelete}, [3]bool{}, [3]bool{true, true, true}},
		"another path":      {lxdtest.Rule{Path: "/networks", Status: 500}, [3]bool{}, [3]bool{true, true, true}},
		"status":            {lxdtest.Rule{Path: "/storage-pools$", Status: 503, Error: "down"}, [3]bool{true, true, true}, [3]bool{}},
		"the first":         {lxdtest.Rule{Status: 503, Method: http.MethodPost, Times: 1}, [3]bool{true}, [3]bool{false, true, true}},
		"the second":        {lxdtest.Rule{Status: 503, Method: http.MethodPost, Skip: 1, Times: 1}, [3]bool{false, true}, [3]bool{true, false, true}},
		"dropped before":    {lxdtest.Rule{Method: http.MethodPost, DropBefore: true, Times: 2}, [3]bool{true, true}, [3]bool{false, false, true}},
		"dropped after":     {lxdtest.Rule{Method: http.MethodPost, DropAfter: true, Times: 2}, [3]bool{true, true}, [3]bool{true, true, true}},
		"delayed, that all": {lxdtest.Rule{Method: http.MethodPost, Delay: time.Millisecond}, [3]bool{}, [3]bool{true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := lxdtest.New(t)
			p := lxdtest.NewProxy(t, s.Socket())
			c := connect(t, p.Socket())
			p.Add(test.rule)
			var fails, made [3]bool
			for i, pool := range []string{"a", "b", "c"} {
				fails[i] = create(c, pool) != nil
				_, _, err := s.Client(t).GetStoragePool(pool)
				made[i] = err == nil
			}
			if fails != test.fails || made != test.made {
				t.Errorf("failed %v, want %v; made %v, want %v", fails, test.fails, made, test.made)
			}
			p.Clear()
			if err := create(c, "d"); err != nil {
				t.Errorf("after the rules were cleared: %v", err)
			}
		})
	}
}

func TestProxyAnswersWithStatus(t *testing.T) {
	t.Parallel()
	p := lxdtest.NewProxy(t, lxdtest.New(t).Socket())
	c := connect(t, p.Socket())
	p.Add(lxdtest.Rule{Path: "^/1.0/networks$", Status: http.StatusForbidden, Error: "not you"})
	if _, err := c.GetNetworks(); !api.StatusErrorCheck(err, http.StatusForbidden) || err.Error() != "not you" {
		t.Error(err)
	}
}

func TestProxyCountsRequests(t *testing.T) {
	t.Parallel()
	p := lxdtest.NewProxy(t, lxdtest.New(t).Socket())
	c := connect(t, p.Socket())
	p.ForgetRequests()
	if _, _, err := c.RawQuery(http.MethodGet, "/1.0/networks?recursion=1", nil, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]lxdtest.Request{{Method: http.MethodGet, Path: "/1.0/networks"}}, p.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestProxyDelayEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s := lxdtest.New(t)
	p := lxdtest.NewProxy(t, s.Socket())
	p.Add(lxdtest.Rule{Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c, err := lxd.ConnectLXDUnixWithContext(ctx, p.Socket(), &lxd.ConnectionArgs{SkipGetServer: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.RawQuery(http.MethodGet, "/1.0", nil, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that is delayed: %v", err)
	}
	if got := s.Requests(); len(got) > 0 {
		t.Errorf("the daemon was asked %v", got)
	}
}

func TestProxyCallsBack(t *testing.T) {
	t.Parallel()
	s := lxdtest.New(t)
	p := lxdtest.NewProxy(t, s.Socket())
	c := connect(t, p.Socket())
	p.Add(lxdtest.Rule{Method: http.MethodPost, Do: func() { s.Set(lxdtest.WithUsableDrivers()) }})
	if err := c.CreateStoragePool(api.StoragePoolsPost{Name: "a", Driver: "dir"}); err == nil {
		t.Error("the daemon was not changed before the request")
	}
}

// TestProxyPassesWebsockets runs a command through the proxy on a real daemon, as in memory.
func TestProxyPassesWebsockets(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := lxdtest.New(t, lxdtest.WithExec(func(context.Context, lxdtest.Exec) lxdtest.ExecResult {
			return lxdtest.ExecResult{Stdout: "hello\n", Code: 5}
		}))
		passWebsockets(t, s.Socket(), s.AddImage(nil))
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		h := acctest.Shared(t)
		passWebsockets(t, h.Socket(), h.Tiny(t).Fingerprint)
	})
}

func passWebsockets(t *testing.T, socket, image string) {
	t.Helper()
	p := lxdtest.NewProxy(t, socket)
	l := &lab{t: t, c: connect(t, p.Socket()), pool: acctest.Name(t, "pool")}
	name := acctest.Name(t, "proxy")
	l.must(l.c.CreateStoragePool(api.StoragePoolsPost{Name: l.pool, Driver: "dir"}))
	l.must(l.wait(l.c.CreateInstance(api.InstancesPost{
		Name: name, Source: api.InstanceSource{Type: "image", Fingerprint: image},
		InstancePut: api.InstancePut{Devices: map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": l.pool}}},
	})))
	t.Cleanup(func() {
		direct := connect(t, socket)
		for _, op := range []func() (lxd.Operation, error){
			func() (lxd.Operation, error) {
				return direct.UpdateInstanceState(name, api.InstanceStatePut{Action: "stop", Force: true}, "")
			},
			func() (lxd.Operation, error) { return direct.DeleteInstance(name) },
		} {
			running, err := op()
			l.must(err)
			l.must(running.Wait())
		}
		l.must(direct.DeleteStoragePool(l.pool))
	})
	l.must(l.wait(l.c.UpdateInstanceState(name, api.InstanceStatePut{Action: "start"}, "")))
	var out bytes.Buffer
	args := &lxd.InstanceExecArgs{Stdout: nopCloser{&out}, DataDone: make(chan bool)}
	op, err := l.c.ExecInstance(name, api.InstanceExecPost{Command: []string{"sh", "-c", "echo hello; exit 5"}, WaitForWS: true}, args)
	l.must(err)
	l.must(op.WaitContext(t.Context()))
	<-args.DataDone
	if code := op.Get().Metadata["return"]; code != 5.0 || out.String() != "hello\n" {
		t.Errorf("the command returned %v and printed %q", code, out.String())
	}
}

// LXD answers nobody while a client of its socket is silent, so the proxy leaves it no connection that is.
func TestProxyLeavesNoSilentConnection(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan http.ConnState, 1000)
	daemon := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.NotFoundHandler(),
		ConnState:         func(_ net.Conn, state http.ConnState) { states <- state },
	}
	go func() { _ = daemon.Serve(listener) }()
	t.Cleanup(func() { _ = daemon.Close() })
	proxy := lxdtest.NewProxy(t, socket)
	group := errgroup.Group{}
	const requests = 20
	for range requests {
		group.Go(func() error {
			_, err := lxd.ConnectLXDUnixWithContext(t.Context(), proxy.Socket(), nil)
			if err == nil || !strings.Contains(err.Error(), "404") {
				return fmt.Errorf("got %w, want the answer from behind the proxy", err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	seen := map[http.ConnState]int{}
	for seen[http.StateClosed] < requests {
		select {
		case state := <-states:
			seen[state]++
		case <-time.After(time.Minute):
			t.Fatalf("connections were left open: %v", seen)
		}
	}
	if diff := cmp.Diff(map[http.ConnState]int{http.StateNew: requests, http.StateActive: requests, http.StateClosed: requests}, seen); diff != "" {
		t.Errorf("what became of the connections (-want +got):\n%s", diff)
	}
}
