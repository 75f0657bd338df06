// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

var _ datasource.DataSourceWithConfigure = (*capabilityDataSource)(nil)

type capabilityDataSource struct{ session *session }

func newCapabilityDataSource() datasource.DataSource { return &capabilityDataSource{} }

func (d *capabilityDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_capability"
}

// Configure takes over the session. It is called once without one, before the provider is configured.
func (d *capabilityDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	if req.ProviderData == nil {
		return
	}
	s, ok := req.ProviderData.(*session)
	if !ok {
		resp.Diagnostics.AddError("Unexpected provider data", fmt.Sprintf("This is a bug in the provider: it got %T.", req.ProviderData))
		return
	}
	d.session = s
}

// Read assesses the host. It fails only when it is interrupted: an error here would also keep people from destroying
// the lab that they have.
func (d *capabilityDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model capabilityModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if d.session == nil || d.session.unknown {
		model.Summary = types.StringValue("The provider's configuration is not known yet, so the host is judged at apply.")
		resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
		return
	}
	ctx, cancel := deadline(ctx, model.Timeouts.Read, &resp.Diagnostics)
	defer cancel()
	report, err := d.assess(ctx, model.request())
	if errors.Is(err, context.Canceled) {
		resp.Diagnostics.Append(failure(verbRead, "capability", model.Pool.ValueString(), err))
		return
	}
	if err != nil {
		report = capability.Unassessed(err)
	}
	model.show(report)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// assess judges the host as it is now, and not as the plan at hand will make it.
func (d *capabilityDataSource) assess(ctx context.Context, request capability.Request) (*capability.Report, error) {
	l, err := d.session.open(ctx)
	if err != nil {
		return nil, err
	}
	return capability.New(l.Daemon()).Assess(ctx, request)
}
