// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// trusted is how a daemon says that it knows the client.
const trusted = "trusted"

// Config says which daemon, and as whom.
type Config struct {
	// Address is "unix:///path/to/unix.socket", "https://host:8443", or empty to discover the local daemon.
	Address string
	// Project is the LXD project to work in; empty means "default".
	Project string
	// ClientCertificate and ClientKey are the client's identity towards an https daemon, in PEM.
	ClientCertificate, ClientKey string
	// ServerFingerprint is the SHA-256 fingerprint, in hex, that the https daemon's certificate must have. Empty means
	// that the certificate must verify against the system's authorities.
	ServerFingerprint string
	// TrustToken introduces the client certificate to a daemon that does not know it yet.
	TrustToken string
	// UserAgent is sent with every request.
	UserAgent string
	// Logger receives one debug line for each call. Nil discards them.
	Logger *slog.Logger
}

// Daemon is one connected daemon, seen from one project. It is safe for concurrent use.
type Daemon struct {
	server  lxdclient.InstanceServer
	info    *api.Server
	address string
	project string
	target  string
	log     *slog.Logger
	locks   *lockTable
}

// Connect finds the daemon, connects, and reads who it is. Errors are [ErrUnreachable] when nobody answers and
// [ErrRefused] when the daemon answers but does not trust this client.
func Connect(ctx context.Context, cfg Config) (*Daemon, error) {
	address := cfg.Address
	if address == "" {
		found, err := Discover(ctx)
		if err != nil {
			return nil, err
		}
		address = found
	}
	d := &Daemon{address: address, project: cfg.Project, log: cfg.Logger, locks: processLocks}
	if d.project == "" {
		d.project = api.ProjectDefaultName
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}

	server, err := dial(ctx, address, cfg)
	if err != nil {
		return nil, err
	}
	d.server = server
	info, _, err := d.client(ctx).GetServer()
	if err != nil {
		return nil, connectError(address, err)
	}
	if info.Auth != trusted && cfg.TrustToken != "" {
		if info, err = d.introduce(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if info.Auth != trusted {
		return nil, &Error{Ask: "connect to " + address, Kind: ErrRefused, Err: fmt.Errorf(
			"the daemon does not trust this client: give client_certificate and client_key that it knows, or a trust_token")}
	}
	d.info = info
	return d, nil
}

func dial(ctx context.Context, address string, cfg Config) (lxdclient.InstanceServer, error) {
	args := &lxdclient.ConnectionArgs{UserAgent: cfg.UserAgent, SkipGetServer: true}
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if err := knock(ctx, path); err != nil {
			return nil, &DeadSocketError{Path: path, Err: err}
		}
		server, err := lxdclient.ConnectLXDUnixWithContext(ctx, path, args)
		return server, connectError(address, err)
	}
	if !strings.HasPrefix(address, "https://") {
		return nil, &Error{Ask: "connect to " + address, Kind: ErrUnsupported, Err: fmt.Errorf(
			`an address starts with "unix://" or "https://"`)}
	}
	certificate, err := serverCertificate(ctx, address, cfg.ServerFingerprint)
	if err != nil {
		return nil, err
	}
	args.TLSServerCert = certificate
	args.TLSClientCert, args.TLSClientKey = cfg.ClientCertificate, cfg.ClientKey
	server, err := lxdclient.ConnectLXDWithContext(ctx, address, args)
	return server, connectError(address, err)
}

func connectError(address string, err error) error {
	if err == nil {
		return nil
	}
	return classify("connect to "+address, err)
}

// contextual is the part of the official client that binds it to a context. It changes the client in place, so it is
// only ever used on a fresh copy.
type contextual interface {
	WithContext(ctx context.Context) lxdclient.InstanceServer
}

// client gives the official client, in this daemon's project, bound to a context. UseProject copies the client's
// struct and shares its connections, so this costs nothing.
func (d *Daemon) client(ctx context.Context) lxdclient.InstanceServer {
	return bind(ctx, d.server.UseProject(d.project))
}

func bind(ctx context.Context, fresh lxdclient.InstanceServer) lxdclient.InstanceServer {
	if c, ok := fresh.(contextual); ok {
		return c.WithContext(ctx)
	}
	return fresh
}

// InProject gives the same daemon seen from another project; empty means this one.
func (d *Daemon) InProject(name string) *Daemon {
	if name == "" || name == d.project {
		return d
	}
	other := *d
	other.project = name
	return &other
}

// OnMember gives the same daemon with requests directed to one cluster member; empty means no particular one.
func (d *Daemon) OnMember(name string) *Daemon {
	other := *d
	other.target = name
	return &other
}

// Project is the project that calls work in.
func (d *Daemon) Project() string { return d.project }

// Address is where the daemon was found: "unix://…" or "https://…".
func (d *Daemon) Address() string { return d.address }

// Local says whether the daemon is reached through a socket of this host.
func (d *Daemon) Local() bool { return strings.HasPrefix(d.address, "unix://") }

// Server is what the daemon said of itself when it was connected to.
func (d *Daemon) Server() *api.Server { return d.info }

// Fingerprint identifies the daemon (in a cluster: the cluster) by the SHA-256 fingerprint of its certificate.
func (d *Daemon) Fingerprint() string { return d.info.Environment.CertificateFingerprint }

// HasExtension says whether the daemon has an API extension.
func (d *Daemon) HasExtension(name string) bool {
	return slices.Contains(d.info.APIExtensions, name)
}

// Refresh reads anew what the daemon says of itself, such as its storage drivers.
func (d *Daemon) Refresh(ctx context.Context) (*api.Server, error) {
	info, _, err := d.client(ctx).GetServer()
	return info, classify("read the daemon's environment", err)
}
