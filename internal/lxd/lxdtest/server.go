// SPDX-License-Identifier: MPL-2.0

// Package lxdtest gives tests an LXD daemon in memory, for hosts and drivers that cannot be had, and a proxy that makes
// a real daemon fail.
//
// [Server] speaks LXD's REST API on a unix socket, so that the official client and the code above it run unchanged. What
// it answers follows LXD 5.0 to the word where tests depend on it; a conformance test compares it with a real daemon.
// What it does not know it refuses with status 501.
package lxdtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	lxd "github.com/canonical/lxd/client"
)

// Request is one that a server or proxy has received.
type Request struct {
	Method string
	// Path is without query, such as "/1.0/instances/a".
	Path string
}

// Server is an LXD daemon in memory. It is safe for concurrent use.
type Server struct {
	socket string
	ended  chan struct{}  // closed when the server ends
	tasks  sync.WaitGroup // what runs in the background

	mu         sync.Mutex // guards everything below
	settings   settings
	requests   []Request
	projects   map[string]*project
	pools      map[string]*pool
	networks   map[string]*network
	operations map[string]*operation
	listeners  map[*listener]struct{}
}

// New starts a daemon, which is stopped when the test ends.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "lxdtest-*") //nolint:usetesting // t.TempDir can be too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		socket:     filepath.Join(dir, "unix.socket"),
		ended:      make(chan struct{}),
		settings:   defaults(),
		projects:   map[string]*project{},
		pools:      map[string]*pool{},
		networks:   map[string]*network{},
		operations: map[string]*operation{},
		listeners:  map[*listener]struct{}{},
	}
	s.projects["default"] = newProject("default")
	s.Set(options...)
	stop, err := serve(s.socket, s.handler())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(s.ended)
		stop()
		s.tasks.Wait()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

// serve answers on a unix socket until stop is called.
func serve(socket string, handler http.Handler) (stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", socket)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // Nothing but Close ends it.
		}
	}()
	return func() { _ = server.Close(); <-done }, nil
}

// Socket returns the path of the daemon's socket.
func (s *Server) Socket() string { return s.socket }

// Address returns the daemon's address, as the provider takes it.
func (s *Server) Address() string { return "unix://" + s.socket }

// Client returns the official client, connected to the daemon.
func (s *Server) Client(t testing.TB) lxd.InstanceServer {
	t.Helper()
	c, err := lxd.ConnectLXDUnixWithContext(context.WithoutCancel(t.Context()), s.socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Disconnect)
	return c
}

// Set changes how the daemon behaves from now on.
func (s *Server) Set(options ...Option) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range options {
		o(&s.settings)
	}
}

// Requests returns what the daemon was asked since it started or since ForgetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ForgetRequests empties what Requests returns.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// spend lets the time pass that the work takes. The caller holds the lock, which is given up meanwhile.
func (s *Server) spend(w Work) {
	if s.settings.latency == nil {
		return
	}
	d := s.settings.latency(w)
	if d <= 0 {
		return
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ended:
	}
}
