// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// The protocols that image servers speak.
const (
	ProtocolSimpleStreams = "simplestreams"
	ProtocolLXD           = "lxd"
)

// ImageServer is a server that offers images to everybody.
type ImageServer struct {
	// URL is its https address.
	URL string
	// Protocol is [ProtocolSimpleStreams], or [ProtocolLXD] for another daemon, LXD or Incus.
	Protocol string
	// Certificate is the server's, in PEM, if no authority of the system vouches for it.
	Certificate string
}

// FindImage looks up where an alias points, for a type of instance ("container", "virtual-machine") and the first of the
// daemon's architectures that the server has. It asks the server itself: a daemon has no call for that. The error is
// [ErrNotFound] when the server was asked and has no such image.
func (d *Daemon) FindImage(ctx context.Context, server ImageServer, alias, instanceType string) (fingerprint string, err error) {
	ask := fmt.Sprintf("look up image %q on %s", alias, server.URL)
	remote, err := server.connect(ctx, d.userAgent)
	if err != nil {
		return "", classifyServer(ctx, ask, err)
	}
	defer remote.Disconnect()
	if server.Protocol == ProtocolSimpleStreams {
		// It reads the list of images, which the client keeps: what fails from now on is not there.
		if _, err := remote.GetImageAliasNames(); err != nil {
			return "", classifyServer(ctx, ask, err)
		}
	}
	entries, err := remote.GetImageAliasArchitectures(instanceType, alias)
	switch {
	case err != nil && server.Protocol == ProtocolSimpleStreams:
		return "", &Error{Ask: ask, Kind: ErrNotFound, Err: err}
	case err != nil:
		return "", classifyServer(ctx, ask, err)
	}
	architectures := d.info.Environment.Architectures
	for _, architecture := range architectures {
		if entry, ok := entries[architecture]; ok {
			return entry.Target, nil
		}
	}
	return "", &Error{Ask: ask, Kind: ErrNotFound, Err: fmt.Errorf("it is there for %s only, and the daemon runs %s",
		strings.Join(slices.Sorted(maps.Keys(entries)), ", "), strings.Join(architectures, ", "))}
}

// classifyServer gives a failed question to an image server its kind. That it cannot be reached says nothing about the
// daemon, so it has none.
func classifyServer(ctx context.Context, ask string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return &Error{Ask: ask, Kind: timeoutKind(cause), Err: err}
	}
	if unverified, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Error{Ask: ask, Err: fmt.Errorf("%w; if this is the right server, give its certificate", unverified)}
	}
	if api.StatusErrorCheck(err, http.StatusNotFound) {
		return &Error{Ask: ask, Kind: ErrNotFound, Err: fmt.Errorf("%w: it is not there, or not public", err)}
	}
	return &Error{Ask: ask, Err: err}
}

// connect makes a client that obeys the context.
func (s ImageServer) connect(ctx context.Context, userAgent string) (lxdclient.ImageServer, error) {
	args := &lxdclient.ConnectionArgs{
		UserAgent: userAgent, TLSServerCert: s.Certificate,
		TransportWrapper: func(t *http.Transport) lxdclient.HTTPTransporter { return boundTransport{ctx, t} },
	}
	switch s.Protocol {
	case ProtocolSimpleStreams:
		return lxdclient.ConnectSimpleStreams(s.URL, args)
	case ProtocolLXD:
		return lxdclient.ConnectPublicLXDWithContext(ctx, s.URL, args)
	default:
		return nil, fmt.Errorf("image servers speak %s or %s, not %q", ProtocolSimpleStreams, ProtocolLXD, s.Protocol)
	}
}

// boundTransport binds requests to a context: the official client of simplestreams takes none.
type boundTransport struct {
	ctx       context.Context //nolint:containedctx // it lives for one lookup
	transport *http.Transport
}

func (t boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.transport.RoundTrip(request.WithContext(t.ctx))
}

func (t boundTransport) Transport() *http.Transport { return t.transport }

// imageFrom is the source of an image that the daemon is to fetch from a server.
func (s ImageServer) imageFrom(fingerprint string) *api.ImagesPostSource {
	return &api.ImagesPostSource{
		ImageSource: api.ImageSource{Server: s.URL, Protocol: s.Protocol, Certificate: s.Certificate},
		Type:        api.SourceTypeImage, Mode: "pull", Fingerprint: fingerprint,
	}
}

// unread is the same server under a URL that the daemon has not used yet for this image. A daemon keeps what it read of a
// simplestreams server for an hour, by the URL, and does not know images that are newer.
func (s ImageServer) unread(fingerprint string) ImageServer {
	s.URL = strings.TrimSuffix(s.URL, "/") + "/" + fingerprint[:min(12, len(fingerprint))] + "/.."
	return s
}

// imageUnknown is how a daemon says that the server does not have an image.
func imageUnknown(err error) bool {
	return errors.Is(err, ErrNotFound) || strings.Contains(err.Error(), "couldn't be found") || strings.Contains(err.Error(), "not found")
}

// FetchImage makes the daemon fetch an image from a server, with properties to set on it. See [Daemon.ImportImage].
func (d *Daemon) FetchImage(ctx context.Context, server ImageServer, fingerprint string, properties map[string]string) (string, error) {
	post := api.ImagesPost{Source: server.imageFrom(fingerprint)}
	post.Properties = properties
	made, err := d.ImportImage(ctx, post)
	if err != nil && ctx.Err() == nil && server.Protocol == ProtocolSimpleStreams && imageUnknown(err) {
		post.Source = server.unread(fingerprint).imageFrom(fingerprint)
		return d.ImportImage(ctx, post)
	}
	return made, err
}
