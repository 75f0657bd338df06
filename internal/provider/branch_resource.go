// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var (
	_ resource.ResourceWithConfigure      = (*branchResource)(nil)
	_ resource.ResourceWithIdentity       = (*branchResource)(nil)
	_ resource.ResourceWithImportState    = (*branchResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*branchResource)(nil)
	_ resource.ResourceWithValidateConfig = (*branchResource)(nil)
)

const thingBranch = "branch"

type branchResource struct{ object }

func newBranchResource() resource.Resource { return &branchResource{} }

func (r *branchResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_branch"
}

func (r *branchResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("The name of the branch.")
}

// ValidateConfig refuses arguments that do not go together.
func (r *branchResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config branchModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(config.validateNames()...)
	_, diags := config.spec(ctx) // reads the source's id
	resp.Diagnostics.Append(diags...)
	if config.keepsMemory() && !config.CloudInit.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("cloud_init"), "A branch with memory does not boot",
			"cloud-init works at a boot, and with memory = true the guest goes on without one. Leave cloud_init out and use setup, or leave memory out.")
	}
}

// ModifyPlan refuses a branch that its source does not allow, as far as the source is there already, and a change that
// needs a restart which is not allowed.
func (r *branchResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return // destroying is always allowed, and so is what changes nothing
	}
	var plan branchModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !req.State.Raw.IsNull() {
		r.planUpdate(ctx, req, resp, &plan)
		return
	}
	if r.judgedAtApply() || plan.Source.IsUnknown() {
		return
	}
	if plan.Project.IsUnknown() {
		plan.Project = types.StringValue(spec.Source.Machine.Project)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project"), plan.Project)...)
	}
	l, diags := r.openIn(ctx, plan.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if err := l.AdmitBranch(ctx, spec); err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingBranch, spec.Name, err))
	}
}

// planUpdate judges a change in place. What is replaced is planned once more, as a new branch.
func (r *branchResource) planUpdate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan *branchModel) {
	var state branchModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	before, now, diags := plan.changes(ctx, &state)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || plan.replaces(&state, justImported(ctx, req.Private)) {
		return
	}
	resp.Diagnostics.Append(planInPlace(ctx, resp, before, now)...)
	if err := lab.GrowsOnly(before, now); err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingBranch, now.Name, err))
	}
	if resp.Diagnostics.HasError() || r.judgedAtApply() {
		return
	}
	l, diags := r.openFor(ctx, req.Private, state.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if err := l.Checker().AdmitMachine(ctx, now.Ask(false)); err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingBranch, now.Name, err))
	}
}

func (r *branchResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config branchModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(config.prepareFrom(ctx, &spec.MachineSpec)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Create, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openIn(ctx, cmp.Or(plan.Project.ValueString(), spec.Source.Machine.Project))
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	branch, timings, err := l.CreateBranch(ctx, spec)
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingBranch, spec.Name, err))
	}
	if branch == nil {
		return
	}
	plan.show(ctx, branch)
	plan.Timings = timingsValue(branchTimings, map[string]int64{
		"branch_ms": timings.BranchMS, "launch_ms": timings.LaunchMS, "usable_ms": timings.UsableMS,
	})
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *branchResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state branchModel
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
	imported := state.ID.IsNull()
	branch, err := r.find(ctx, l, &state)
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingBranch, state.Name.ValueString(), err))
		return
	}
	if !imported {
		state.show(ctx, branch)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		return
	}
	state.IPv4Address, state.IPv6Address = types.StringUnknown(), types.StringUnknown()
	state.machineModel.show(ctx, branch) // all of it: what is declared is not known yet
	state.Source = textOrNull(branch.Source)
	state.AllowRestart = types.BoolValue(false)
	state.Timings = timingsNull(branchTimings)
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("true"))...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// find reads the very branch of the state or, just after an import, the one of that name.
func (r *branchResource) find(ctx context.Context, l *lab.Lab, state *branchModel) (*lab.Machine, error) {
	if state.ID.IsNull() {
		return l.MachineByName(ctx, state.Name.ValueString())
	}
	id, err := lab.ParseMachineID(state.ID.ValueString())
	if err != nil {
		return nil, err
	}
	return l.RefreshMachine(ctx, id, stringsOf(state.Config))
}

func (r *branchResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state branchModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	before, now, diags := plan.changes(ctx, &state)
	resp.Diagnostics.Append(diags...)
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
	id, err := lab.ParseMachineID(state.ID.ValueString())
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingBranch, now.Name, err))
		return
	}
	branch, err := l.UpdateBranch(ctx, id, before, now)
	failed := updateFailure(thingBranch, now.Name, err)
	resp.Diagnostics.Append(failed...)
	if branch == nil {
		return
	}
	live := plan
	live.show(ctx, branch)
	live.keepAddresses(plan.IPv4Address, plan.IPv6Address)
	if !failed.HasError() {
		// It ends as it was planned, also in what is inherited and was changed by others meanwhile; a read tells of that.
		plan.IPv4Address, plan.IPv6Address = live.IPv4Address, live.IPv6Address
		live = plan
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("false"))...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &live)...)
}

func (r *branchResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state branchModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.deleteMachine(ctx, req, resp, thingBranch, &state.machineModel)
}

func (r *branchResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	r.importNamed(ctx, req, resp, thingBranch)
}
