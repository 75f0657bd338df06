// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var (
	_ resource.ResourceWithConfigure   = (*storagePoolResource)(nil)
	_ resource.ResourceWithIdentity    = (*storagePoolResource)(nil)
	_ resource.ResourceWithImportState = (*storagePoolResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*storagePoolResource)(nil)
)

const thingPool = "storage pool"

type storagePoolResource struct{ object }

func newStoragePoolResource() resource.Resource { return &storagePoolResource{} }

func (r *storagePoolResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_storage_pool"
}

func (r *storagePoolResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("The name of the storage pool.")
}

// ModifyPlan refuses a pool that the host cannot make copy-on-write, by the facts; the proof follows at apply.
func (r *storagePoolResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return // destroying is always allowed, and so is what changes nothing
	}
	var plan, state storagePoolModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	update := !req.State.Raw.IsNull()
	if update {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		if !plan.Config.Equal(state.Config) {
			replan(ctx, resp, state.Timings, "verify_ms")
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("verification"), types.ObjectUnknown(verificationTypes))...)
		}
	}
	if resp.Diagnostics.HasError() || r.judgedAtApply() || plan.unjudged() {
		return
	}
	l, diags := r.openIn(ctx, plan.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if update {
		resp.Diagnostics.Append(sameDaemon(ctx, req.Private, l.Daemon())...)
	}
	if plan.Project.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project"), l.Daemon().Project())...)
	}
	ask := plan.spec().Ask(update && len(resp.RequiresReplace) == 0)
	if err := l.Checker().AdmitPool(ctx, ask); err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingPool, ask.Name, err))
		return
	}
	l.Checker().PlanPool(ask)
}

// unjudged says that what the pool will be made of is not known yet.
func (m *storagePoolModel) unjudged() bool {
	_, known := membersOf(m.Members)
	return !known || m.Name.IsUnknown() || m.Driver.IsUnknown() || m.Source.IsUnknown() || m.Config.IsUnknown()
}

func (r *storagePoolResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan storagePoolModel
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
	pool, timings, err := l.CreatePool(ctx, plan.spec())
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingPool, plan.Name.ValueString(), err))
	}
	if pool == nil {
		return
	}
	plan.show(l.Daemon().Project(), pool)
	plan.prove(pool.Proof)
	plan.Timings = timingsValue(storagePoolTimings, map[string]int64{"create_ms": timings.CreateMS, "verify_ms": timings.VerifyMS})
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *storagePoolResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state storagePoolModel
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
	pool, err := l.Pool(ctx, state.Name.ValueString(), stringsOf(state.Config))
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingPool, state.Name.ValueString(), err))
		return
	}
	imported := state.ID.IsNull()
	state.show(l.Daemon().Project(), pool)
	if imported {
		state.prove(pool.Proof)
		resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *storagePoolResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state storagePoolModel
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
	pool, verifyMS, err := l.UpdatePool(ctx, state.spec(), plan.spec())
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingPool, plan.Name.ValueString(), err))
		return
	}
	plan.show(l.Daemon().Project(), pool)
	if plan.Verification.IsUnknown() {
		plan.prove(pool.Proof)
		plan.Timings = timingsWith(state.Timings, storagePoolTimings, map[string]int64{"verify_ms": verifyMS})
	}
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *storagePoolResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state storagePoolModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.delete(ctx, req, resp, deletion{
		thing: thingPool, project: state.Project, name: state.Name, timeout: state.Timeouts.Delete,
		remove: func(ctx context.Context, l *lab.Lab) error { return l.DeletePool(ctx, state.Name.ValueString()) },
	})
}

func (r *storagePoolResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	r.importNamed(ctx, req, resp, thingPool)
}
