// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var (
	_ resource.ResourceWithConfigure   = (*snapshotResource)(nil)
	_ resource.ResourceWithIdentity    = (*snapshotResource)(nil)
	_ resource.ResourceWithImportState = (*snapshotResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*snapshotResource)(nil)
)

const thingSnapshot = "snapshot"

type snapshotResource struct{ object }

func newSnapshotResource() resource.Resource { return &snapshotResource{} }

func (r *snapshotResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_snapshot"
}

// identify keeps what identifies the snapshot.
func (m *snapshotModel) identify(ctx context.Context, identity *tfsdk.ResourceIdentity) diag.Diagnostics {
	if identity == nil {
		return nil
	}
	machine := m.Machine.ValueString()
	if id, err := lab.ParseMachineID(machine); err == nil {
		machine = id.Name
	}
	return identity.Set(ctx, snapshotIdentityModel{Project: m.Project, Machine: types.StringValue(machine), Name: m.Name})
}

// ModifyPlan refuses a snapshot that the machine's pool or type does not allow. A machine that is not there yet is
// judged when it is.
func (r *snapshotResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return // destroying is always allowed, and so is what changes nothing
	}
	var plan snapshotModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || r.judgedAtApply() || plan.Machine.IsUnknown() || plan.Name.IsUnknown() {
		return
	}
	spec, err := plan.spec()
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingSnapshot, plan.Name.ValueString(), err))
		return
	}
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project"), spec.Machine.Project)...)
	if !req.State.Raw.IsNull() && len(resp.RequiresReplace) == 0 {
		return // only its expiry changes
	}
	l, diags := r.openIn(ctx, spec.Machine.Project)
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if err := l.AdmitSnapshot(ctx, spec); err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingSnapshot, spec.Name, err))
	}
}

func (r *snapshotResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan snapshotModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Create, &resp.Diagnostics)
	defer cancel()
	spec, err := plan.spec()
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingSnapshot, plan.Name.ValueString(), err))
		return
	}
	l, diags := r.openIn(ctx, spec.Machine.Project)
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	snapshot, snapshotMS, err := l.CreateSnapshot(ctx, spec)
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingSnapshot, spec.Name, err))
	}
	if snapshot == nil {
		return
	}
	plan.show(snapshot)
	plan.StateSize = types.Int64Null()
	if snapshot.StateBytes > 0 {
		plan.StateSize = types.Int64Value(snapshot.StateBytes)
	}
	plan.Timings = timingsValue(snapshotTimings, map[string]int64{"snapshot_ms": snapshotMS})
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(plan.identify(ctx, resp.Identity)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *snapshotResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state snapshotModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(state.identify(ctx, resp.Identity)...)
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
	snapshot, err := r.find(ctx, l, &state)
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingSnapshot, state.Name.ValueString(), err))
		return
	}
	if state.ID.IsNull() {
		state.Timings = timingsNull(snapshotTimings)
		resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	}
	state.show(snapshot)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// find reads the very snapshot of the state or, just after an import, the one of that name.
func (r *snapshotResource) find(ctx context.Context, l *lab.Lab, state *snapshotModel) (*lab.Snapshot, error) {
	if state.ID.IsNull() {
		return l.SnapshotByName(ctx, state.Machine.ValueString(), state.Name.ValueString())
	}
	id, err := lab.ParseSnapshotID(state.ID.ValueString())
	if err != nil {
		return nil, err
	}
	return l.RefreshSnapshot(ctx, id)
}

func (r *snapshotResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state snapshotModel
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
	id, err := lab.ParseSnapshotID(state.ID.ValueString())
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingSnapshot, plan.Name.ValueString(), err))
		return
	}
	snapshot, err := l.UpdateSnapshot(ctx, id, momentOf(plan.ExpiresAt))
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingSnapshot, plan.Name.ValueString(), err))
		return
	}
	plan.show(snapshot)
	resp.Diagnostics.Append(plan.identify(ctx, resp.Identity)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *snapshotResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state snapshotModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.delete(ctx, req, resp, deletion{
		thing: thingSnapshot, project: state.Project, name: state.Name, timeout: state.Timeouts.Delete,
		remove: func(ctx context.Context, l *lab.Lab) error {
			id, err := lab.ParseSnapshotID(state.ID.ValueString())
			if err != nil {
				return err
			}
			return l.DeleteSnapshot(ctx, id)
		},
	})
}

func (r *snapshotResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	var asked importName
	if req.ID != "" {
		parsed, err := parseSnapshotImportName(req.ID)
		if err != nil {
			resp.Diagnostics.AddError(fmt.Sprintf("Unable to %s %s %q", verbImport, thingSnapshot, req.ID), sentence(err))
			return
		}
		asked = parsed
	} else {
		var identity snapshotIdentityModel
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
		asked = importName{project: identity.Project.ValueString(), name: identity.Machine.ValueString(), snapshot: identity.Name.ValueString()}
	}
	l, diags := r.openIn(ctx, asked.project)
	resp.Diagnostics.Append(diags...)
	if l == nil || resp.Diagnostics.HasError() {
		return
	}
	state := snapshotModel{Project: types.StringValue(l.Daemon().Project()), Machine: types.StringValue(asked.name), Name: types.StringValue(asked.snapshot)}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("project"), state.Project)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("machine"), state.Machine)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), state.Name)...)
	resp.Diagnostics.Append(state.identify(ctx, resp.Identity)...)
}
