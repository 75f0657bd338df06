// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ModifyPlan judges whether the image is to be replaced, and refuses what can be known not to work.
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

// planCreate refuses what is there and is not what it should be. The fingerprint stays unknown even where it could be
// told: the same apply may make the files anew, and a replaced image must look changed to what stands on it.
func (r *imageResource) planCreate(ctx context.Context, plan *imageModel, resp *resource.ModifyPlanResponse) {
	var err error
	switch {
	case !plan.File.IsNull():
		file, known, diags := plan.file(ctx)
		resp.Diagnostics.Append(diags...)
		if known {
			_, err = file.Fingerprint(ctx)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return // the same apply may make it
		}
	case !plan.Remote.IsNull():
		err = r.admitRemote(ctx, plan, &resp.Diagnostics)
	case !plan.Publish.IsNull():
		err = r.admitPublish(ctx, plan, &resp.Diagnostics)
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingImage, plan.subject(ctx), err))
	}
}

// labAtPlan gives the verbs where something can be judged at plan; nil where it is at apply, or where an error was added.
func (r *imageResource) labAtPlan(ctx context.Context, m *imageModel, diags *diag.Diagnostics) *lab.Lab {
	if r.judgedAtApply() || diags.HasError() {
		return nil
	}
	l, problems := r.openIn(ctx, m.Project.ValueString())
	diags.Append(problems...)
	return l
}

// admitRemote refuses an alias that a server of images does not have. A server that does not answer yet may do so at apply,
// and another daemon may get the image in the same one.
func (r *imageResource) admitRemote(ctx context.Context, plan *imageModel, diags *diag.Diagnostics) error {
	remote, known, problems := plan.remote(ctx)
	diags.Append(problems...)
	l := r.labAtPlan(ctx, plan, diags)
	if !known || l == nil || remote.Server.Protocol != lxd.ProtocolSimpleStreams {
		return nil
	}
	if _, err := l.FindImage(ctx, remote); errors.Is(err, lxd.ErrNotFound) {
		return err
	}
	return nil
}

// admitPublish refuses a source that no image can be made of.
func (r *imageResource) admitPublish(ctx context.Context, plan *imageModel, diags *diag.Diagnostics) error {
	publish, known, problems := plan.publish(ctx)
	diags.Append(problems...)
	l := r.labAtPlan(ctx, plan, diags)
	if !known || l == nil {
		return nil
	}
	return l.AdmitPublish(ctx, publish)
}

// planUpdate plans a replacement when the arguments name another image, and says so of what is measured anew.
func (r *imageResource) planUpdate(ctx context.Context, plan, state *imageModel, resp *resource.ModifyPlanResponse) {
	other, err := r.isOther(ctx, plan, state, &resp.Diagnostics)
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

// isOther says whether the arguments name, or may come to name, another image than the one that is there. An image that
// was imported is taken over as what is declared, unless that can be seen to be another one.
func (r *imageResource) isOther(ctx context.Context, plan, state *imageModel, diags *diag.Diagnostics) (bool, error) {
	imported := state.File.IsNull() && state.Remote.IsNull() && state.Publish.IsNull()
	switch {
	case !plan.File.IsNull():
		return plan.holdsOther(ctx, state)
	case !plan.Remote.IsNull():
		return r.offersOther(ctx, plan, state, imported, diags)
	case plan.Publish.IsUnknown() || plan.source().IsUnknown():
		return true, nil // the machine is made, or made anew, in the same apply
	case plan.source().IsNull() || imported:
		return false, nil
	default:
		return !plan.source().Equal(state.source()), nil
	}
}

// offersOther says whether a server is declared to have, or has come to have, another image than the one that is there.
func (r *imageResource) offersOther(ctx context.Context, plan, state *imageModel, imported bool, diags *diag.Diagnostics) (bool, error) {
	remote, known, problems := plan.remote(ctx)
	before, _, beforeProblems := state.remote(ctx)
	diags.Append(append(problems, beforeProblems...)...)
	if !known || diags.HasError() {
		return true, nil
	}
	fingerprint := state.Fingerprint.ValueString()
	if remote.Fingerprint != "" {
		return remote.Fingerprint != fingerprint, nil
	}
	before.Server.Certificate = remote.Server.Certificate // how the server is known says nothing about the image
	same := imported || remote == before
	if same && !plan.follows() {
		return false, nil
	}
	l := r.labAtPlan(ctx, state, diags)
	if l == nil {
		return !same, nil
	}
	found, err := l.FindImage(ctx, remote)
	if err != nil && same {
		diags.Append(unfollowed(remote.Alias, err))
		return false, nil
	}
	return found != fingerprint, err
}

// unfollowed says that an alias could not be followed. That is no reason to keep a lab from being used whose image is there.
func unfollowed(alias string, err error) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(path.Root("remote").AtName("follow"), fmt.Sprintf("Unable to follow alias %q", alias),
		sentence(err)+"\n\nThe image that is there stays.")
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
