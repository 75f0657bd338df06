// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// ModifyPlan judges by the contents of the files whether the image is to be replaced, and refuses files that are not
// what they should be.
func (r *imageResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // destroying is always allowed
	}
	var plan imageModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if req.State.Raw.IsNull() {
		r.planCreate(ctx, &plan, resp)
	} else {
		var state imageModel
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		r.planUpdate(ctx, &plan, &state, resp)
	}
	unchanged := resp.Plan.Raw.Equal(req.State.Raw)
	if resp.Diagnostics.HasError() || r.judgedAtApply() || unchanged {
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

// planCreate refuses files that are there and are not what they should be. The fingerprint stays unknown even where it
// could be told: the same apply may make the files anew, and a replaced image must look changed to what stands on it.
func (r *imageResource) planCreate(ctx context.Context, plan *imageModel, resp *resource.ModifyPlanResponse) {
	file, known, diags := plan.file(ctx)
	resp.Diagnostics.Append(diags...)
	if !known || resp.Diagnostics.HasError() {
		return
	}
	if _, err := file.Fingerprint(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
		resp.Diagnostics.Append(failure(verbCreate, thingImage, file.Metadata, err))
	}
}

// planUpdate plans a replacement when the files hold another image, and says so of what is measured anew.
func (r *imageResource) planUpdate(ctx context.Context, plan, state *imageModel, resp *resource.ModifyPlanResponse) {
	other, err := plan.holdsOther(ctx, state)
	switch {
	case err != nil:
		resp.Diagnostics.Append(failure(verbUpdate, thingImage, state.Fingerprint.ValueString(), err))
	case other:
		resp.RequiresReplace.Append(path.Root("fingerprint"))
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("fingerprint"), types.StringUnknown())...)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("id"), types.StringUnknown())...)
	case !plan.Pools.Equal(state.Pools):
		replan(ctx, resp, state.Timings, "unpack_ms")
	}
}

// holdsOther says whether the declared files hold, or are said to hold, another image than the one that is there.
func (m *imageModel) holdsOther(ctx context.Context, state *imageModel) (bool, error) {
	file, known, diags := m.file(ctx)
	if diags.HasError() || !known {
		return true, nil // what is not known yet may be anything, as with any argument that forces a replacement
	}
	fingerprint := state.Fingerprint.ValueString()
	if file.SHA256 == fingerprint {
		return false, nil // whatever became of the files, the image that is wanted is there
	}
	found, err := file.Fingerprint(ctx)
	if err == nil {
		return found != fingerprint, nil
	}
	unchanged := m.File.Equal(state.File)
	gone := errors.Is(err, fs.ErrNotExist)
	switch {
	case unchanged, gone && state.File.IsNull():
		return false, nil // the daemon has the image; that its files were cleaned away, or never were here, changes nothing
	case gone && file.SHA256 != "":
		return true, nil
	case gone:
		return false, &lab.ArgumentError{Argument: argumentOf(err), Err: errors.Join(err, errUnseen)}
	default:
		return false, err
	}
}

// errUnseen is why other files are refused that are not there yet.
var errUnseen = errors.New("whether it holds the image that is there cannot be told, and that is not destroyed on a guess: " +
	"make the file first, or say in file.sha256 what it will hold")

// argumentOf is the argument that an error is about; empty when it is none in particular.
func argumentOf(err error) string {
	if at, ok := errors.AsType[*lab.ArgumentError](err); ok {
		return at.Argument
	}
	return ""
}
