// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var (
	_ resource.ResourceWithConfigure   = (*imageResource)(nil)
	_ resource.ResourceWithIdentity    = (*imageResource)(nil)
	_ resource.ResourceWithImportState = (*imageResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*imageResource)(nil)
)

const thingImage = "image"

type imageResource struct{ object }

func newImageResource() resource.Resource { return &imageResource{} }

func (r *imageResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_image"
}

func (r *imageResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan imageModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
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
	image, owned, timings, err := l.CreateImage(ctx, spec)
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingImage, plan.subject(ctx), err))
	}
	if image == nil {
		return
	}
	aliases := plan.Aliases
	plan.show(l.Daemon().Project(), image)
	if err != nil {
		plan.Aliases = aliases // those that it got must go with it
	}
	plan.Owned = types.BoolValue(owned)
	plan.Timings = timingsValue(imageTimings, map[string]int64{"obtain_ms": timings.ObtainMS, "unpack_ms": timings.UnpackMS})
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, imageIdentityModel{plan.Project, plan.Fingerprint})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *imageResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state imageModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, imageIdentityModel{state.Project, state.Fingerprint})...)
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
	image, err := l.Image(ctx, state.Fingerprint.ValueString(), stringsOf(state.Properties), elementsOf(state.Pools))
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingImage, state.Fingerprint.ValueString(), err))
		return
	}
	if state.ID.IsNull() { // just imported
		state.Aliases = setLike(state.Aliases, image.Aliases)
		state.Owned = types.BoolValue(true)
		state.Timings = timingsNull(imageTimings)
		resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	}
	state.show(l.Daemon().Project(), image)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *imageResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state imageModel
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
	fingerprint := state.Fingerprint.ValueString()
	image, unpackMS, err := l.UpdateImage(ctx, fingerprint, state.described(), plan.described())
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingImage, fingerprint, err))
		return
	}
	plan.show(l.Daemon().Project(), image)
	if !plan.Timings.Equal(state.Timings) {
		plan.Timings = timingsWith(state.Timings, imageTimings, map[string]int64{"unpack_ms": unpackMS})
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, imageIdentityModel{plan.Project, plan.Fingerprint})...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *imageResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state imageModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.delete(ctx, req, resp, deletion{
		thing: thingImage, project: state.Project, name: state.Fingerprint, timeout: state.Timeouts.Delete,
		remove: func(ctx context.Context, l *lab.Lab) error {
			return l.DeleteImage(ctx, state.Fingerprint.ValueString(), state.described(), state.Owned.ValueBool())
		},
	})
}

func (r *imageResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	asked, err := askedImage(ctx, req)
	if err != nil {
		resp.Diagnostics.AddError(fmt.Sprintf("Unable to %s %s %q", verbImport, thingImage, req.ID), sentence(err))
		return
	}
	l, diags := r.openIn(ctx, asked.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	asked.Project = types.StringValue(l.Daemon().Project())
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("project"), asked.Project)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("fingerprint"), asked.Fingerprint)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, asked)...)
}

// askedImage is the image that an import was asked for, by an id or by identity.
func askedImage(ctx context.Context, req resource.ImportStateRequest) (imageIdentityModel, error) {
	var asked imageIdentityModel
	if req.ID == "" {
		diags := req.Identity.Get(ctx, &asked)
		if diags.HasError() {
			return asked, fmt.Errorf("the identity cannot be read: %s", diags.Errors()[0].Detail())
		}
	} else {
		name, err := parseImportName(req.ID, thingImage)
		if err != nil {
			return asked, err
		}
		asked = imageIdentityModel{Project: textOrNull(name.project), Fingerprint: types.StringValue(name.name)}
	}
	if !fingerprintForm.MatchString(asked.Fingerprint.ValueString()) {
		return asked, fmt.Errorf(`%q is not the full fingerprint of an image, 64 hexadecimal digits: write "fingerprint", or "project/fingerprint" for one outside the provider's project`,
			asked.Fingerprint.ValueString())
	}
	return asked, nil
}
