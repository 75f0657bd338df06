// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/canonical/lxd/shared/api"
)

func TestNormalFingerprint(t *testing.T) {
	t.Parallel()
	const want = "0a1b2c3d"
	for _, form := range []string{want, "0A1B2C3D", "0A:1B:2C:3D", "0a:1b:2c:3d", " 0a1b2c3d\n"} {
		if got := normalFingerprint(form); got != want {
			t.Errorf("%q becomes %q, want %q", form, got, want)
		}
	}
}

func TestHTTPSAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://lab.example":         "https://lab.example:8443",
		"https://lab.example/":        "https://lab.example:8443",
		"https://lab.example:443":     "https://lab.example:443",
		"https://10.0.0.1":            "https://10.0.0.1:8443",
		"https://[fd00::1]":           "https://[fd00::1]:8443",
		"https://[fd00::1]:9443/1.0/": "https://[fd00::1]:9443",
		"https://":                    "",
		"https://:8443":               "",
		"http://lab.example":          "",
		"lab.example:8443":            "",
		"lab.example":                 "",
		"/var/lib/lxd/unix.socket":    "",
		"https://lab.example:port":    "",
	} {
		got, err := httpsAddress(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s becomes %q, %v, want %q", address, got, err, want)
		}
	}
}

func TestConnectRefusesUnusableArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"no scheme":           {Config{Address: "lab.example"}, `an address is "unix:///path/to/unix.socket" or "https://host:port"`},
		"empty socket":        {Config{Address: "unix://"}, `an address is "unix:///path/to/unix.socket" or "https://host:port"`},
		"certificate alone":   {Config{Address: "https://lab.example", ClientCertificate: "c"}, "only one of them is given"},
		"key alone":           {Config{Address: "https://lab.example", ClientKey: "k"}, "only one of them is given"},
		"no PEM":              {Config{Address: "https://lab.example", ClientCertificate: "c", ClientKey: "k"}, "cannot be used"},
		"socket is not there": {Config{Address: "unix:///none/unix.socket"}, "looked for /none/unix.socket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Connect(patient(t), test.config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// somebody starts an https server that is no daemon, and counts what it is asked.
func somebody(t *testing.T) (server *httptest.Server, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	server.Config.ErrorLog = silent
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, asked
}

func TestCertificateOfAnUnknownAuthority(t *testing.T) {
	t.Parallel()
	server, asked := somebody(t)
	_, err := Connect(patient(t), Config{Address: server.URL})
	if !isOnly(err, ErrRefused) || asked.Load() != 0 {
		t.Fatalf("got %v after %d requests, want it refused before the first", err, asked.Load())
	}
	if want := `set server_fingerprint = "` + certificateFingerprint(server.Certificate()) + `"`; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not contain %q", err, want)
	}
}

func TestPinHoldsWhoeverSignedTheCertificate(t *testing.T) {
	t.Parallel()
	server, _ := somebody(t)
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{server.Certificate()}}
	have := certificateFingerprint(server.Certificate())
	if err := pin(strings.ToUpper(have))(state); err != nil {
		t.Errorf("the right fingerprint is refused: %v", err)
	}
	err := pin(strings.Repeat("00", 32))(state)
	mismatch, ok := errors.AsType[*fingerprintError](err)
	if !ok || mismatch.have != have || mismatch.want != strings.Repeat("00", 32) {
		t.Errorf("got %v, want an error that names both fingerprints", err)
	}
}

func TestWrongFingerprint(t *testing.T) {
	t.Parallel()
	server, asked := somebody(t)
	want, have := strings.Repeat("00", 32), certificateFingerprint(server.Certificate())
	_, err := Connect(patient(t), Config{Address: server.URL, ServerFingerprint: want})
	if !isOnly(err, ErrRefused) || asked.Load() != 0 {
		t.Fatalf("got %v after %d requests, want it refused before the first", err, asked.Load())
	}
	if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, have) {
		t.Errorf("error %q does not name both %s and %s", text, want, have)
	}
}

func TestNoAnswerAtAnHTTPSAddress(t *testing.T) {
	t.Parallel()
	server, _ := somebody(t)
	server.Close()
	if _, err := Connect(patient(t), Config{Address: server.URL}); !isOnly(err, ErrUnreachable) {
		t.Errorf("got %v, want it unreachable", err)
	}
}

// Greeting a daemon by https costs more than most requests; on a socket, LXD answers nobody while a client is silent.
func TestConnectionsAreKeptByHTTPSOnly(t *testing.T) {
	t.Parallel()
	connections := atomic.Int32{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, http.StatusOK, api.ResponseRaw{Type: api.SyncResponse, Metadata: api.Server{ServerUntrusted: api.ServerUntrusted{Auth: trusted}}})
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	const requests = 5
	ask := func(config Config) *Daemon {
		d, err := Connect(patient(t), config)
		must(t, err)
		for range requests - 1 {
			_, _, err := d.client(patient(t)).GetServer()
			must(t, err)
		}
		return d
	}
	ask(Config{Address: server.URL, ServerFingerprint: certificateFingerprint(server.Certificate())})
	if got := connections.Load(); got != 1 {
		t.Errorf("%d requests by https took %d connections, want 1", requests, got)
	}
	transport, err := transportOf(ask(Config{Address: "unix://" + listen(t, handler)}).server)
	must(t, err)
	if !transport.DisableKeepAlives {
		t.Error("connections to the socket are kept")
	}
}
