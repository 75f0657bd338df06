// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var (
	_ resource.ResourceWithConfigure   = (*networkResource)(nil)
	_ resource.ResourceWithIdentity    = (*networkResource)(nil)
	_ resource.ResourceWithImportState = (*networkResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*networkResource)(nil)
)

const thingNetwork = "network"

type networkResource struct{ object }

func newNetworkResource() resource.Resource { return &networkResource{} }

func (r *networkResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_network"
}

func (r *networkResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("The name of the network.")
}

// ModifyPlan makes sure of the daemon, and settles the project.
func (r *networkResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) || r.judgedAtApply() {
		return // destroying is always allowed, and so is what changes nothing
	}
	var plan networkModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	l, diags := r.openIn(ctx, plan.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(sameDaemon(ctx, req.Private, l.Daemon())...)
	}
	if plan.Project.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project"), l.Daemon().Project())...)
	}
}

func (r *networkResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan networkModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Create, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openIn(ctx, plan.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	network, err := l.CreateNetwork(ctx, plan.spec())
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingNetwork, plan.Name.ValueString(), err))
	}
	if network == nil {
		return
	}
	plan.show(l.Daemon().Project(), network)
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *networkResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state networkModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, state.Project, state.Name)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, state.Timeouts.Read, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openFor(ctx, req.Private, state.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	network, err := l.Network(ctx, state.Name.ValueString(), stringsOf(state.Config))
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingNetwork, state.Name.ValueString(), err))
		return
	}
	if state.ID.IsNull() { // just imported
		resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	}
	state.show(l.Daemon().Project(), network)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *networkResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state networkModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Update, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openFor(ctx, req.Private, state.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	network, err := l.UpdateNetwork(ctx, state.spec(), plan.spec())
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingNetwork, plan.Name.ValueString(), err))
		return
	}
	plan.show(l.Daemon().Project(), network)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *networkResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state networkModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.delete(ctx, req, resp, deletion{
		thing: thingNetwork, project: state.Project, name: state.Name, timeout: state.Timeouts.Delete,
		remove: func(ctx context.Context, l *lab.Lab) error { return l.DeleteNetwork(ctx, state.Name.ValueString()) },
	})
}

func (r *networkResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	r.importNamed(ctx, req, resp, thingNetwork)
}
