// SPDX-License-Identifier: MPL-2.0

// Package provider maps the objects of a laboratory to Terraform: schemas, plans and state. The work itself is done by
// package lab, and what a host can do is judged by package capability.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var _ provider.ProviderWithActions = (*labProvider)(nil)

type labProvider struct{ version string }

// New makes the provider of a version, which is sent to the daemon as part of the user agent.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &labProvider{version: version} }
}

type providerModel struct {
	Address           types.String `tfsdk:"address"`
	Project           types.String `tfsdk:"project"`
	ClientCertificate types.String `tfsdk:"client_certificate"`
	ClientKey         types.String `tfsdk:"client_key"`
	ServerFingerprint types.String `tfsdk:"server_fingerprint"`
	TrustToken        types.String `tfsdk:"trust_token"`
}

func (p *labProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "lab"
	resp.Version = p.version
}

func (p *labProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Throw-away laboratories of several machines on an LXD daemon: storage pools, networks, images, machines, " +
			"snapshots, and the reset that puts a whole scenario back. With no arguments the local daemon is found by itself: `LXD_SOCKET`, " +
			"`LXD_DIR`, the snap's, the distribution's, then that of Incus. A socket that exists but does not answer is an error. " +
			"The `LAB_*` variables fill in only a block that names no `address` of its own.",
		Attributes: map[string]schema.Attribute{
			"address": schema.StringAttribute{
				MarkdownDescription: "The daemon: `unix:///path/to/unix.socket` or `https://host:8443`. Default: the local daemon. Environment: `LAB_ADDRESS`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(addressForm, "must start with unix:// or https://")},
			},
			"project": schema.StringAttribute{
				MarkdownDescription: "The LXD project that objects are in unless they name another. Default: `default`. Environment: `LAB_PROJECT`.",
				Optional:            true,
			},
			"client_certificate": schema.StringAttribute{
				MarkdownDescription: "The client's certificate for an https daemon, in PEM. Environment: `LAB_CLIENT_CERTIFICATE`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("client_key"))},
			},
			"client_key": schema.StringAttribute{
				MarkdownDescription: "The client's key for an https daemon, in PEM. Environment: `LAB_CLIENT_KEY`.",
				Optional:            true,
				Sensitive:           true,
				Validators:          []validator.String{stringvalidator.AlsoRequires(path.MatchRoot("client_certificate"))},
			},
			"server_fingerprint": schema.StringAttribute{
				MarkdownDescription: "The SHA-256 fingerprint, in hex, that an https daemon's certificate must have. Without it the certificate must " +
					"verify against the system's authorities. Environment: `LAB_SERVER_FINGERPRINT`.",
				Optional: true,
			},
			"trust_token": schema.StringAttribute{
				MarkdownDescription: "A trust token that introduces the client certificate to an https daemon that does not know it yet. Environment: `LAB_TRUST_TOKEN`.",
				Optional:            true,
				Sensitive:           true,
			},
		},
	}
}

// Configure keeps what was configured. It connects to nothing: the first object that needs the daemon does, so that a
// daemon which this same run makes may be absent until then, and the data source can report that there is none.
func (p *labProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var model providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	config := model.config(os.Getenv)
	config.UserAgent = "terraform-provider-lab/" + p.version
	s := newSession(config, model.anyUnknown())
	resp.ResourceData, resp.DataSourceData, resp.ActionData = s, s, s
}

func (m *providerModel) values() []types.String {
	return []types.String{m.Address, m.Project, m.ClientCertificate, m.ClientKey, m.ServerFingerprint, m.TrustToken}
}

func (m *providerModel) anyUnknown() bool {
	for _, value := range m.values() {
		if value.IsUnknown() {
			return true
		}
	}
	return false
}

// config turns the block into a connection. The environment fills it in only when the block names no address: a block
// that does is about one daemon, and a variable about another must not reach into it.
func (m *providerModel) config(getenv func(string) string) lxd.Config {
	value := func(v types.String, variable string) string {
		if m.Address.IsNull() && v.IsNull() {
			return getenv(variable)
		}
		return v.ValueString()
	}
	return lxd.Config{
		Address:           value(m.Address, "LAB_ADDRESS"),
		Project:           value(m.Project, "LAB_PROJECT"),
		ClientCertificate: value(m.ClientCertificate, "LAB_CLIENT_CERTIFICATE"),
		ClientKey:         value(m.ClientKey, "LAB_CLIENT_KEY"),
		ServerFingerprint: value(m.ServerFingerprint, "LAB_SERVER_FINGERPRINT"),
		TrustToken:        value(m.TrustToken, "LAB_TRUST_TOKEN"),
	}
}

func (p *labProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newStoragePoolResource,
		newNetworkResource,
		newImageResource,
		newMachineResource,
		newSnapshotResource,
		newBranchResource,
		newResetResource,
	}
}

// Actions gives what Terraform 1.14 can invoke; older ones, and OpenTofu, never ask.
func (p *labProvider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{newResetAction}
}

func (p *labProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newCapabilityDataSource}
}
