// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// Proxy passes requests on to a daemon's socket, except where a rule makes them fail. Commands with websockets and
// events pass too. It is safe for concurrent use.
type Proxy struct {
	socket  string
	forward *httputil.ReverseProxy
	ended   chan struct{} // closed when the proxy ends

	mu       sync.Mutex
	rules    []*Rule
	requests []Request
}

// Rule makes requests fail. Of several that match the first one counts.
type Rule struct {
	// Method that a request must have; empty for any.
	Method string
	// Path is a regular expression that must match the request's path, without query; empty for any.
	Path string
	// Skip is how many requests that match are passed on before the rule applies.
	Skip int
	// Times is how many requests it applies to; 0 for all.
	Times int

	// Delay is waited before anything else.
	Delay time.Duration
	// Status, if not 0, is answered with Error as text, and the daemon is not asked.
	Status int
	Error  string
	// DropBefore closes the client's connection, and the daemon is not asked. Go's client then repeats a GET by itself.
	DropBefore bool
	// DropAfter closes it when the daemon has answered: the client cannot know the outcome.
	DropAfter bool
	// Do is called after the delay and, with DropAfter, when the daemon has answered. It may change the daemon.
	Do func()

	path *regexp.Regexp
}

// NewProxy starts a proxy for the daemon at socket, which is stopped when the test ends.
func NewProxy(t testing.TB, socket string) *Proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "lxdtest-*") //nolint:usetesting // t.TempDir can be too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	// A connection that is kept, or was opened for a request that then went by another one, says nothing; LXD answers
	// nobody else until it does (listeners.StarttlsListener.Accept).
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	p := &Proxy{socket: filepath.Join(dir, "unix.socket"), ended: make(chan struct{}), forward: &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w) },
	}}
	stop, err := serve(p.socket, http.HandlerFunc(p.pass))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(p.ended)
		stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Socket returns the path of the proxy's socket.
func (p *Proxy) Socket() string { return p.socket }

// Address returns the proxy's address, as the provider takes it.
func (p *Proxy) Address() string { return "unix://" + p.socket }

// Add adds rules behind those that are there.
func (p *Proxy) Add(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range rules {
		r.path = regexp.MustCompile(r.Path)
		p.rules = append(p.rules, &r)
	}
}

// Clear removes all rules.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Requests returns what the proxy was asked since it started or since ForgetRequests.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// ForgetRequests empties what Requests returns.
func (p *Proxy) ForgetRequests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = nil
}

// match notes the request and returns what is to happen to it.
func (p *Proxy) match(r *http.Request) Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, Request{Method: r.Method, Path: r.URL.Path})
	for i, rule := range p.rules {
		if rule.Method != "" && rule.Method != r.Method || !rule.path.MatchString(r.URL.Path) {
			continue
		}
		if rule.Skip > 0 {
			rule.Skip--
			return Rule{}
		}
		if rule.Times == 1 {
			p.rules = slices.Delete(slices.Clone(p.rules), i, i+1)
		}
		rule.Times--
		return *rule
	}
	return Rule{}
}

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) {
	rule := p.match(r)
	if !p.wait(r.Context(), rule.Delay) {
		return
	}
	if rule.DropAfter {
		// The daemon does its work whether or not the client is still there.
		p.forward.ServeHTTP(discard{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
	}
	if rule.Do != nil {
		rule.Do()
	}
	switch {
	case rule.DropAfter, rule.DropBefore:
		hangUp(w)
	case rule.Status != 0:
		failed(api.NewStatusError(rule.Status, rule.Error)).send(w)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// wait tells whether the request is still wanted after the delay.
func (p *Proxy) wait(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-p.ended:
	}
	return false
}

// hangUp closes a client's connection without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		return // There is no client.
	}
	if err == nil {
		_ = conn.Close()
	}
}

// discard takes an answer that no client gets.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d discard) WriteHeader(int)             {}
