// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// session is what one provider block was configured with, and its connection, which is made when it is first needed.
type session struct {
	config lxd.Config
	// unknown says that some of the configuration is not known yet, so that nothing can be judged at plan.
	unknown bool

	// opening is held while connecting; a channel, so that those who wait for it still obey their contexts.
	opening chan struct{}
	opened  *lab.Lab
}

func newSession(config lxd.Config, unknown bool) *session {
	return &session{config: config, unknown: unknown, opening: make(chan struct{}, 1)}
}

// open connects to the daemon, once for the process. A failure is not kept: the daemon may come to be within this run.
func (s *session) open(ctx context.Context) (*lab.Lab, error) {
	select {
	case s.opening <- struct{}{}:
		defer func() { <-s.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.opened != nil {
		return s.opened, nil
	}
	config := s.config
	config.Logger = slog.New(tflogHandler{})
	daemon, err := lxd.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	s.opened = lab.New(daemon, capability.New(daemon))
	return s.opened, nil
}

// object is what all resources have in common: the session of their provider block.
type object struct{ session *session }

// Configure takes over the session. It is called once without one, before the provider is configured.
func (o *object) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	o.take(req.ProviderData, &resp.Diagnostics)
}

func (o *object) take(data any, diags *diag.Diagnostics) {
	if data == nil {
		return
	}
	s, ok := data.(*session)
	if !ok {
		diags.AddError("Unexpected provider data", fmt.Sprintf("This is a bug in the provider: it got %T.", data))
		return
	}
	o.session = s
}

// daemonKey is where private state keeps which daemon an object is on.
const daemonKey = "daemon"

// daemonRecord is what is kept there.
type daemonRecord struct {
	Fingerprint string `json:"fingerprint"`
	Address     string `json:"address"`
}

// The parts of the framework's private state that are used here; its own type is internal to it.
type (
	privateReader interface {
		GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	}
	privateWriter interface {
		SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
	}
)

// remember keeps which daemon the object is on.
func remember(ctx context.Context, private privateWriter, daemon *lxd.Daemon) diag.Diagnostics {
	record, err := json.Marshal(daemonRecord{Fingerprint: daemon.Fingerprint(), Address: daemon.Address()})
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("Unable to record the daemon", err.Error())}
	}
	return private.SetKey(ctx, daemonKey, record)
}

// sameDaemon makes sure that the daemon is the one that the object is on. An object of another daemon is not gone from
// this one: it was never here.
func sameDaemon(ctx context.Context, private privateReader, daemon *lxd.Daemon) diag.Diagnostics {
	text, diags := private.GetKey(ctx, daemonKey)
	if diags.HasError() || len(text) == 0 {
		return diags
	}
	var record daemonRecord
	if err := json.Unmarshal(text, &record); err != nil {
		diags.AddError("Unable to read which daemon the object is on", err.Error())
		return diags
	}
	if record.Fingerprint != daemon.Fingerprint() {
		diags.AddError("Another daemon", fmt.Sprintf(
			"This object is on the daemon with certificate fingerprint %s, reached at %s when it was last seen. "+
				"The provider is configured for another one: %s, with fingerprint %s.\n\n"+
				"Nothing was read or changed. Point the provider at the daemon that holds the object; if that daemon is gone for good, "+
				"remove the object from the state with `terraform state rm`.",
			record.Fingerprint, record.Address, daemon.Address(), daemon.Fingerprint()))
	}
	return diags
}

// openFor connects on behalf of an object that is on a daemon already, and makes sure that this is the one.
func (o *object) openFor(ctx context.Context, private privateReader, project string) (*lab.Lab, diag.Diagnostics) {
	l, diags := o.openIn(ctx, project)
	if l == nil {
		return nil, diags
	}
	diags.Append(sameDaemon(ctx, private, l.Daemon())...)
	if diags.HasError() {
		return nil, diags
	}
	return l, diags
}

// openIn connects, and gives the verbs in a project; empty means the provider block's.
func (o *object) openIn(ctx context.Context, project string) (*lab.Lab, diag.Diagnostics) {
	var diags diag.Diagnostics
	l, err := o.session.open(ctx)
	if err != nil {
		diags.Append(failure(verbConnect, "daemon", o.session.config.Address, err))
		return nil, diags
	}
	if project != "" {
		l = l.InProject(project)
	}
	return l, diags
}

// judgedAtApply says that nothing can be refused at plan, since it is not known which daemon it will be.
func (o *object) judgedAtApply() bool { return o.session == nil || o.session.unknown }
