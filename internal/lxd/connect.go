// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

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
	// Logger receives one debug line for each call that changes something. Nil discards them.
	Logger *slog.Logger
	// AnswerTimeout bounds the wait for the first answer; 0 means a minute.
	AnswerTimeout time.Duration
}

// usualAnswerTimeout leaves time for a daemon that a socket of systemd has yet to start.
const usualAnswerTimeout = time.Minute

// Daemon is one connected daemon, seen from one project. It is safe for concurrent use.
type Daemon struct {
	server  lxdclient.InstanceServer
	info    *api.Server
	address string
	project string
	target  string
	// userAgent is repeated here for what does not go through the official client.
	userAgent string
	log       *slog.Logger
	locks     *lockTable
	listings  *listings
}

// Connect finds the daemon, connects, and reads who it is. Errors are [ErrUnreachable] when nobody answers and
// [ErrRefused] when the daemon answers but does not trust this client, or is not the one that is meant.
func Connect(ctx context.Context, cfg Config) (*Daemon, error) {
	d := &Daemon{project: cfg.Project, userAgent: cfg.UserAgent, log: cfg.Logger, locks: processLocks, listings: newListings()}
	if d.project == "" {
		d.project = api.ProjectDefaultName
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}

	var err error
	if d.address, d.server, err = dial(ctx, cfg); err != nil {
		return nil, err
	}
	info, err := d.firstAnswer(ctx, cmp.Or(cfg.AnswerTimeout, usualAnswerTimeout))
	if err != nil {
		return nil, err
	}
	if info.Auth != trusted && cfg.TrustToken != "" {
		if info, err = d.introduce(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if info.Auth != trusted {
		return nil, &Error{Ask: "connect to " + d.address, Kind: ErrRefused, Err: errNotTrusted}
	}
	d.info = info
	return d, nil
}

// firstAnswer asks the daemon who it is. A busy host may take seconds over that; a daemon that takes more will not do
// better later, and a person should hear of it before the time for the whole step is up.
func (d *Daemon) firstAnswer(ctx context.Context, timeout time.Duration) (*api.Server, error) {
	ask, started := "connect to "+d.address, time.Now()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info, _, err := d.client(limited).GetServer()
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, &Error{Ask: ask, Kind: ErrUnreachable, Err: &TimeoutError{
			Condition: "the daemon has said who it is",
			LastSeen: "it takes connections but does not answer. LXD waits for each client of its socket to say something before " +
				"it turns to the next, so one that connected and is silent (ss -xp shows them) holds up all; its log may say more, " +
				"and a restart may help",
			Waited: time.Since(started), Cause: limited.Err(),
		}}
	}
	return info, classify(ask, err)
}

// errNotTrusted is a daemon that does not know the client.
var errNotTrusted = errors.New("the daemon does not trust this client: " +
	"give client_certificate and client_key that it knows, or a trust_token")

// errAddressForm is an address of no form that is known.
var errAddressForm = errors.New(`an address is "unix:///path/to/unix.socket" or "https://host:port"`)

// dial gives the full address of the daemon and the official client for it.
func dial(ctx context.Context, cfg Config) (address string, server lxdclient.InstanceServer, err error) {
	args := &lxdclient.ConnectionArgs{UserAgent: cfg.UserAgent, SkipGetServer: true}
	address = cfg.Address
	if address == "" {
		if address, err = Discover(ctx); err != nil {
			return "", nil, err
		}
	}
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if path == "" {
			return "", nil, &Error{Ask: "connect to " + address, Kind: ErrUnsupported, Err: errAddressForm}
		}
		if err := reach(ctx, path); err != nil {
			return "", nil, err
		}
		server, err = lxdclient.ConnectLXDUnixWithContext(ctx, path, args)
	} else {
		address, server, err = dialHTTPS(ctx, address, cfg, args)
	}
	if err != nil {
		return "", nil, err
	}
	return address, server, waitForAnswers(server)
}

// waitForAnswers lifts the official client's limit of an hour on the wait for an answer: the context is the only one.
func waitForAnswers(server lxdclient.InstanceServer) error {
	transport, err := transportOf(server)
	if err != nil {
		return err
	}
	transport.ResponseHeaderTimeout = 0
	return nil
}

// transportOf is what the official client sends its requests through.
func transportOf(server lxdclient.InstanceServer) (*http.Transport, error) {
	client, err := server.GetHTTPClient()
	if err != nil {
		return nil, err
	}
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return nil, fmt.Errorf("the LXD client sends its requests through a %T", client.Transport)
	}
	return transport, nil
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

// memberClient is the same, directed to the member that [Daemon.OnMember] named.
func (d *Daemon) memberClient(ctx context.Context) lxdclient.InstanceServer {
	return bind(ctx, d.server.UseProject(d.project).UseTarget(d.target))
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

// Refresh reads anew what the daemon says of itself, such as its storage drivers. Through [Daemon.OnMember] it is that
// member of the cluster who says so.
func (d *Daemon) Refresh(ctx context.Context) (*api.Server, error) {
	server := d.server.UseProject(d.project)
	if d.target != "" {
		server = server.UseTarget(d.target)
	}
	info, _, err := bind(ctx, server).GetServer()
	return info, classify("read the daemon's environment", err)
}
