// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// defaultPort is the one that LXD and Incus listen on.
const defaultPort = "8443"

// idleTimeout is how long a connection to an https daemon is kept for the next request.
const idleTimeout = 30 * time.Second

// dialHTTPS prepares the connection to an https daemon, and gives the full form of its address. Nothing is sent yet:
// the daemon's certificate is checked on every connection, the first one as well, before a request goes through it.
func dialHTTPS(ctx context.Context, address string, cfg Config, args *lxdclient.ConnectionArgs) (string, lxdclient.InstanceServer, error) {
	full, err := httpsAddress(address)
	if err != nil {
		return "", nil, &Error{Ask: "connect to " + address, Kind: ErrUnsupported, Err: err}
	}
	ask := "connect to " + full
	if (cfg.ClientCertificate == "") != (cfg.ClientKey == "") {
		return "", nil, &Error{Ask: ask, Err: errors.New("client_certificate and client_key belong together: only one of them is given")}
	}
	args.TLSClientCert, args.TLSClientKey = cfg.ClientCertificate, cfg.ClientKey
	// With a fingerprint the chain is not what is trusted.
	args.InsecureSkipVerify = cfg.ServerFingerprint != ""
	server, err := lxdclient.ConnectLXDWithContext(ctx, full, args)
	if err != nil {
		return "", nil, &Error{Ask: ask, Err: fmt.Errorf("client_certificate and client_key cannot be used: %w", err)}
	}
	transport, err := transportOf(server)
	if err != nil {
		return "", nil, &Error{Ask: ask, Err: err}
	}
	if cfg.ServerFingerprint != "" {
		transport.TLSClientConfig.VerifyConnection = pin(cfg.ServerFingerprint)
	}
	// The official client greets the daemon anew for each request, which costs more than most requests do. On the socket it
	// must: LXD answers nobody else there while a client that is connected says nothing.
	transport.DisableKeepAlives, transport.IdleConnTimeout = false, idleTimeout
	return full, server, nil
}

// httpsAddress gives the full form of an https address: with its port, without anything after it.
func httpsAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if u.Scheme != "https" || u.Hostname() == "" {
		return "", errAddressForm
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	return "https://" + net.JoinHostPort(u.Hostname(), port), nil
}

// pin makes a check that refuses every daemon but the one whose certificate has the fingerprint.
func pin(fingerprint string) func(tls.ConnectionState) error {
	want := normalFingerprint(fingerprint)
	return func(state tls.ConnectionState) error {
		if have := certificateFingerprint(state.PeerCertificates[0]); have != want {
			return &fingerprintError{want: want, have: have}
		}
		return nil
	}
}

// certificateRefused says why the daemon's certificate was not accepted; it is nil if that is not what failed.
func certificateRefused(err error) error {
	if mismatch, ok := errors.AsType[*fingerprintError](err); ok {
		return mismatch
	}
	if unverified, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		have := certificateFingerprint(unverified.UnverifiedCertificates[0])
		return fmt.Errorf("%w; if this is the right daemon (compare with `lxc info` there), set server_fingerprint = %q", unverified, have)
	}
	return nil
}

// fingerprintError is a daemon that is not the one whose fingerprint was given.
type fingerprintError struct{ want, have string }

func (e *fingerprintError) Error() string {
	return fmt.Sprintf("this is another daemon: its certificate has fingerprint %s, server_fingerprint is %s", e.have, e.want)
}

func certificateFingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// normalFingerprint accepts the forms that tools print: upper case, with colons.
func normalFingerprint(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), ":", ""))
}

// introduce makes the client certificate known to the daemon by a trust token, and reads again what it says then.
func (d *Daemon) introduce(ctx context.Context, cfg Config) (*api.Server, error) {
	ask := "introduce this client to " + d.address
	if cfg.ClientCertificate == "" {
		return nil, &Error{Ask: ask, Kind: ErrRefused, Err: errors.New("a trust_token introduces a client certificate: give client_certificate and client_key too")}
	}
	request := api.CertificatesPost{Name: "terraform-provider-lab", Type: api.CertificateTypeClient, TrustToken: cfg.TrustToken}
	info, _, err := d.client(ctx).GetServer()
	if err != nil {
		return nil, classify(ask, err)
	}
	if !slices.Contains(info.APIExtensions, "explicit_trust_token") {
		// Daemons before 5.21 take the token in the place of the trust password.
		request.Password, request.TrustToken = cfg.TrustToken, ""
	}
	if err := d.client(ctx).CreateCertificate(request); err != nil {
		return nil, classify(ask, err)
	}
	info, _, err = d.client(ctx).GetServer()
	return info, classify(ask, err)
}
