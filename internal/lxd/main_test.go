// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// patience bounds waits that end at once when all is well.
const patience = time.Minute

func TestMain(m *testing.M) {
	if run := os.Getenv(childVariable); run != "" {
		os.Exit(child(run))
	}
	acctest.Main(m)
}

// patient is the test's context, with a bound.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// silent is for servers whose clients fail by intent.
var silent = log.New(io.Discard, "", 0)

// connect connects to a daemon, which must succeed.
func connect(t *testing.T, cfg Config) *Daemon {
	t.Helper()
	d, err := Connect(patient(t), cfg)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	return d
}

// inMemory starts a daemon in memory with a stopped machine "m" in it, and connects to it.
func inMemory(t *testing.T, options ...lxdtest.Option) (*Daemon, *lxdtest.Server) {
	t.Helper()
	server := lxdtest.New(t, options...)
	d := connect(t, Config{Address: server.Address()})
	addMachine(t, d, "m")
	return d, server
}

// addMachine makes an empty machine, and the pool that it is on.
func addMachine(t *testing.T, d *Daemon, name string) {
	t.Helper()
	must(t, d.CreatePool(patient(t), api.StoragePoolsPost{Name: "pool-of-" + name, Driver: "dir"}))
	must(t, d.CreateInstance(patient(t), emptyMachine(name, "pool-of-"+name)))
}

func emptyMachine(name, pool string) api.InstancesPost {
	machine := api.InstancesPost{Name: name, Source: api.InstanceSource{Type: "none"}}
	machine.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": pool}}
	machine.Profiles = []string{}
	return machine
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen serves on a unix socket and returns its path.
func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lxd-*") //nolint:usetesting // t.TempDir can be longer than what the kernel takes for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "unix.socket")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	must(t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return path
}

// between puts a handler before a daemon; what the handler does not want it passes on to next.
func between(t *testing.T, socket string, handler func(w http.ResponseWriter, r *http.Request, next http.Handler)) *Daemon {
	t.Helper()
	next := &httputil.ReverseProxy{
		ErrorLog: silent,
		Rewrite:  func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "daemon" },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}},
	}
	path := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r, next) }))
	return connect(t, Config{Address: "unix://" + path})
}

// hangUp closes the connection that a request came through without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.Close()
}

// answer writes an answer of the API.
func answer(t *testing.T, w http.ResponseWriter, status int, body any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		t.Error(err)
	}
}

// refuse answers with an error in the daemon's words.
func refuse(t *testing.T, w http.ResponseWriter, status int, text string) {
	t.Helper()
	answer(t, w, status, api.ResponseRaw{Type: api.ErrorResponse, Code: status, Error: text})
}

// expiring is a context whose deadline comes when the test says so.
type expiring struct {
	context.Context //nolint:containedctx // it is one itself
	done            chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// ending makes a context, and what ends it: by an interrupt, or else as by its deadline.
func ending(t *testing.T, interrupt bool) (context.Context, func()) {
	t.Helper()
	if interrupt {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		return ctx, cancel
	}
	ctx := expiring{t.Context(), make(chan struct{})}
	end := sync.OnceFunc(func() { close(ctx.done) })
	t.Cleanup(end)
	return ctx, end
}
