// SPDX-License-Identifier: MPL-2.0

package bootstrap_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// startAptProxy serves as the http proxy of a guest's apt and gives its address. So a guest needs no network, and
// apt's sources are reached the way that this host reaches them.
func startAptProxy(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: upstream(t)}
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: transport}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			tunnel(w, r)
			return
		}
		forward.ServeHTTP(w, r)
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends with an error when it is closed
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
		transport.CloseIdleConnections()
	})
	return listener.Addr().String()
}

// upstream gives the proxy that this host's apt uses, or that of the environment.
func upstream(t *testing.T) func(*http.Request) (*url.URL, error) {
	t.Helper()
	got := runCommand(t.Context(), t, nil, "apt-config", "shell", "P", "Acquire::http::Proxy")
	_, value, _ := strings.Cut(strings.TrimSpace(got.out), "=")
	proxy, err := url.Parse(strings.Trim(value, "'"))
	if err != nil || proxy.Host == "" {
		return http.ProxyFromEnvironment
	}
	return http.ProxyURL(proxy)
}

// tunnel connects a client to where it wants, for https.
func tunnel(w http.ResponseWriter, r *http.Request) {
	there, err := (&net.Dialer{Timeout: time.Minute}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = there.Close() }()
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = here.Close() }()
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(there, here); _ = there.Close() })
	_, _ = io.Copy(here, there)
	_ = here.Close()
	copying.Wait()
}
