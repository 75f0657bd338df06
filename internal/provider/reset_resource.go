// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

var (
	_ resource.ResourceWithConfigure   = (*resetResource)(nil)
	_ resource.ResourceWithImportState = (*resetResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*resetResource)(nil)
)

const (
	thingScenario = "scenario"
	thingReset    = "reset"
	verbReset     = "reset"
	verbInvoke    = "invoke"
)

type resetResource struct{ object }

func newResetResource() resource.Resource { return &resetResource{} }

func (r *resetResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_reset"
}

// ModifyPlan says whether this apply puts the scenario back, and refuses it when it is known that that cannot be done.
func (r *resetResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return // destroying is always allowed, and so is what changes nothing
	}
	var plan, state resetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	restores := plan.RestoreOnCreate.ValueBool()
	if !req.State.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		restores = !plan.Triggers.Equal(state.Triggers)
	}
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || !restores {
		return
	}
	if !req.State.Raw.IsNull() {
		replan(ctx, resp, state.Timings, "restore_ms", "usable_ms")
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("machines"), types.MapUnknown(types.ObjectType{AttrTypes: resetMachineTypes}))...)
	}
	if r.judgedAtApply() || plan.Triggers.IsUnknown() || len(spec.Snapshots) == 0 {
		return
	}
	l, diags := r.openIn(ctx, "")
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if err := l.AdmitReset(ctx, spec); err != nil {
		resp.Diagnostics.Append(resetFailure(verbReset, thingScenario, err)...)
	}
}

func (r *resetResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan resetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Create, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openIn(ctx, "")
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	plan.showNone()
	if plan.RestoreOnCreate.ValueBool() {
		result, err := l.Reset(ctx, spec, logProgress(ctx))
		if err != nil {
			resp.Diagnostics.Append(resetFailure(verbCreate, thingReset, err)...)
			return
		}
		plan.show(result)
	}
	plan.ID = types.StringValue(uuid.NewString())
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Read has nothing to look at: a reset is something that is done, not something that is there.
func (r *resetResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (r *resetResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state resetModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan.Triggers.Equal(state.Triggers) {
		plan.Timings, plan.Machines = state.Timings, state.Machines
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Update, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openFor(ctx, req.Private, "")
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	result, err := l.Reset(ctx, spec, logProgress(ctx))
	if err != nil {
		// The state keeps the old triggers, so that the next apply tries again.
		resp.Diagnostics.Append(resetFailure(verbReset, thingScenario, err)...)
		return
	}
	plan.show(result)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// logProgress tells Terraform's log of every step of every machine.
func logProgress(ctx context.Context) lab.Progress {
	return func(key, step string) { tflog.Info(ctx, "reset", map[string]any{"machine": key, "step": step}) }
}

// Delete forgets the reset; the machines and their snapshots stay.
func (r *resetResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}

func (r *resetResource) ImportState(_ context.Context, _ resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resp.Diagnostics.AddError("A lab_reset cannot be imported",
		"It is something that is done, not something that is there: the daemon holds nothing of it. Declare it; creating it rewinds nothing.")
}
