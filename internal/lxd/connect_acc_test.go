// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"errors"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// shareDaemon connects to the daemon that the tests of this package share.
func shareDaemon(t *testing.T) (*Daemon, *acctest.Host) {
	t.Helper()
	h := acctest.Shared(t)
	return connect(t, Config{Address: h.Address(), Project: h.Project()}), h
}

func TestAccConnect(t *testing.T) {
	t.Parallel()
	d, h := shareDaemon(t)
	server, _, err := h.Client(t).GetServer()
	must(t, err)
	if d.Fingerprint() == "" || d.Fingerprint() != server.Environment.CertificateFingerprint {
		t.Errorf("fingerprint is %q, want %q", d.Fingerprint(), server.Environment.CertificateFingerprint)
	}
	if !d.Local() || d.Address() != h.Address() || d.Project() != h.Project() {
		t.Errorf("it is %s, local %v, project %s", d.Address(), d.Local(), d.Project())
	}
	if !d.HasExtension("snapshot_disk_usage") || d.HasExtension("no_such_thing") {
		t.Error("the extensions are not the daemon's")
	}
	if now, err := d.Refresh(patient(t)); err != nil || now.Environment.ServerVersion != d.Server().Environment.ServerVersion {
		t.Errorf("read anew it is %v, %v", now, err)
	}
}

// identity makes a client certificate.
func identity(t *testing.T) (certificate, key string) {
	t.Helper()
	c, k, err := shared.GenerateMemCert(true, shared.CertOptions{})
	must(t, err)
	return string(c), string(k)
}

// colons writes a fingerprint as openssl does.
func colons(fingerprint string) string {
	var pairs []string
	for i := 0; i < len(fingerprint); i += 2 {
		pairs = append(pairs, strings.ToUpper(fingerprint[i:i+2]))
	}
	return strings.Join(pairs, ":")
}

// secure is a daemon that listens on https.
type secure struct {
	*acctest.Host
	local *Daemon // the same, over its socket
}

// config is that of a client that the daemon does not know.
func (s secure) config(t *testing.T) Config {
	t.Helper()
	certificate, key := identity(t)
	return Config{Address: s.HTTPSAddress(), ClientCertificate: certificate, ClientKey: key, ServerFingerprint: colons(s.local.Fingerprint())}
}

func (s secure) token(t *testing.T) string {
	t.Helper()
	op, err := s.Client(t).CreateCertificateToken(api.CertificatesPost{Name: acctest.Name(t, "client"), Type: "client", Token: true})
	must(t, err)
	operation := op.Get()
	token, err := operation.ToCertificateAddToken()
	must(t, err)
	return token.String()
}

func TestAccConnectHTTPS(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{HTTPS: true})
	s := secure{h, connect(t, Config{Address: h.Address()})}
	for name, test := range map[string]func(*testing.T){
		"a client that the daemon knows":         s.knownClient,
		"another daemon":                         s.otherDaemon,
		"a certificate of its own making":        s.ownCertificate,
		"a client that the daemon does not know": s.unknownClient,
		"a client with a trust token":            s.trustToken,
		"a trust token without a client":         s.trustTokenAlone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (s secure) knownClient(t *testing.T) {
	t.Helper()
	c := s.config(t)
	must(t, s.Client(t).CreateCertificate(api.CertificatesPost{Name: "known", Type: "client", Certificate: pemBody(c.ClientCertificate)}))
	d := connect(t, c)
	if d.Local() || d.Fingerprint() != s.local.Fingerprint() {
		t.Errorf("local %v, fingerprint %s, want %s", d.Local(), d.Fingerprint(), s.local.Fingerprint())
	}
	must(t, d.CreatePool(patient(t), api.StoragePoolsPost{Name: "p", Driver: "dir"}))
	if _, _, err := s.local.Pool(patient(t), "p"); err != nil {
		t.Errorf("what was made over https is not there: %v", err)
	}
	machine := launch(t, d, s.Host)
	must(t, d.PushFile(patient(t), machine, File{Path: "/root/greeting", Content: []byte("hello\n"), Mode: 0o600}))
	if got := shell(t, d, machine, "cat greeting"); got != "hello" {
		t.Errorf("a command over https printed %q", got)
	}
}

func (s secure) otherDaemon(t *testing.T) {
	t.Helper()
	c := s.config(t)
	c.ServerFingerprint = strings.Repeat("00", 32)
	_, err := Connect(patient(t), c)
	if !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), c.ServerFingerprint) || !strings.Contains(err.Error(), s.local.Fingerprint()) {
		t.Errorf("got %v, want it refused with both fingerprints", err)
	}
}

func (s secure) ownCertificate(t *testing.T) {
	t.Helper()
	c := s.config(t)
	c.ServerFingerprint = ""
	if _, err := Connect(patient(t), c); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), `set server_fingerprint = "`+s.local.Fingerprint()) {
		t.Errorf("got %v, want it refused with the fingerprint to set", err)
	}
}

func (s secure) unknownClient(t *testing.T) {
	t.Helper()
	c := s.config(t)
	if _, err := Connect(patient(t), c); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "or a trust_token") {
		t.Errorf("got %v, want it refused with a hint", err)
	}
	c.ClientCertificate, c.ClientKey = "", ""
	if _, err := Connect(patient(t), c); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "give client_certificate") {
		t.Errorf("without a certificate: got %v, want it refused with a hint", err)
	}
}

func (s secure) trustToken(t *testing.T) {
	t.Helper()
	c, stranger := s.config(t), s.config(t)
	token := s.token(t)
	c.TrustToken, stranger.TrustToken = token, token
	connect(t, c)
	c.TrustToken = ""
	connect(t, c) // it is known from now on
	_, err := Connect(patient(t), stranger)
	if !isOnly(err, ErrRefused) {
		t.Fatalf("a token that was used: got %v, want it refused", err)
	}
	if strings.Contains(err.Error(), token) {
		t.Errorf("error %q tells the token", err)
	}
}

func (s secure) trustTokenAlone(t *testing.T) {
	t.Helper()
	c := s.config(t)
	c.TrustToken, c.ClientCertificate, c.ClientKey = s.token(t), "", ""
	if _, err := Connect(patient(t), c); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "give client_certificate and client_key too") {
		t.Errorf("got %v, want it refused with a hint", err)
	}
}

func TestAccDaemonThatDied(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{HTTPS: true})
	s := secure{h, connect(t, Config{Address: h.Address()})}
	must(t, s.local.CreatePool(patient(t), api.StoragePoolsPost{Name: "p", Driver: "dir"}))
	h.Kill(t)
	if _, err := Connect(patient(t), s.config(t)); !isOnly(err, ErrUnreachable) {
		t.Errorf("over https: got %v, want it unreachable", err)
	}
	_, err := Connect(patient(t), Config{Address: h.Address()})
	if _, dead := errors.AsType[*DeadSocketError](err); !dead {
		t.Errorf("over its socket: got %v, want a dead socket", err)
	}
	if err := s.local.DeletePool(patient(t), "p"); !isOnly(err, ErrUnreachable) {
		t.Errorf("over an earlier connection: got %v, want it unreachable", err)
	}
}

// pemBody is what the API takes for a certificate: its PEM without the frame.
func pemBody(certificate string) string {
	lines := strings.Split(strings.TrimSpace(certificate), "\n")
	return strings.Join(lines[1:len(lines)-1], "")
}
