// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// serverCertificate asks an https daemon for its certificate and checks it against the pinned fingerprint before
// anything is sent. The result, in PEM, pins the connections that follow. Without a fingerprint the certificate must
// verify against the system's authorities and the result is empty, which makes the client do the same.
func serverCertificate(ctx context.Context, address, fingerprint string) (string, error) {
	ask := "connect to " + address
	u, err := url.Parse(address)
	if err != nil {
		return "", &Error{Ask: ask, Kind: ErrUnsupported, Err: err}
	}
	host := u.Host
	if u.Port() == "" {
		host += ":8443"
	}
	if fingerprint == "" {
		return "", verifyBySystem(ctx, ask, host)
	}

	want := normalFingerprint(fingerprint)
	var found *x509.Certificate
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The chain is not what is trusted here: the fingerprint is, and it is compared below.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(state tls.ConnectionState) error {
			found = state.PeerCertificates[0]
			if have := certificateFingerprint(found); have != want {
				return &fingerprintError{want: want, have: have}
			}
			return nil
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if mismatch, ok := errors.AsType[*fingerprintError](err); ok {
		return "", &Error{Ask: ask, Kind: ErrRefused, Err: mismatch}
	}
	if err != nil {
		return "", classify(ask, err)
	}
	if err := conn.Close(); err != nil {
		return "", classify(ask, err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: found.Raw})), nil
}

func verifyBySystem(ctx context.Context, ask, host string) error {
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if unverified, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		have := certificateFingerprint(unverified.UnverifiedCertificates[0])
		return &Error{Ask: ask, Kind: ErrRefused, Err: fmt.Errorf(
			"%w; if this is the right daemon (compare with `lxc info` there), set server_fingerprint = %q", err, have)}
	}
	if err != nil {
		return classify(ask, err)
	}
	return conn.Close()
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
