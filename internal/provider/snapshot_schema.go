// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func (r *snapshotResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A snapshot of a machine, which takes no time and no space beyond what changes afterwards. A `lab_reset` puts machines back to theirs.",
		Attributes: map[string]schema.Attribute{
			"id":      idAttribute("`project/machine/uuid/snapshot/created-at`: this very snapshot, for references."),
			"project": computedText("The LXD project that it is in: its machine's."),
			"machine": schema.StringAttribute{
				MarkdownDescription: "The machine: the `id` of a `lab_machine`. Changing it replaces the snapshot, so a machine that is replaced gets a new one in the same apply.",
				Required:            true, PlanModifiers: replace,
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "The name of the snapshot. Changing it replaces the snapshot.",
				Required:            true, Validators: []validator.String{snapshotNameValidator()}, PlanModifiers: replace,
			},
			"stateful": schema.BoolAttribute{
				MarkdownDescription: "Whether the memory of a virtual machine is captured, too, so that a reset brings the guest back as it was, without a boot. " +
					"The machine must be `checkpointable` and run; it is paused meanwhile. Default: `false`. Changing it replaces the snapshot.",
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				PlanModifiers: []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
			},
			"expires_at": schema.StringAttribute{
				MarkdownDescription: "When the daemon deletes it, in RFC 3339, such as `2027-01-31T12:00:00Z`. Default: never, whatever the machine's `snapshots.expiry` says.",
				Optional:            true, Validators: []validator.String{momentValidator{}},
			},
			"created_at": computedText("When it was taken, in RFC 3339."),
			"state_bytes": schema.Int64Attribute{
				MarkdownDescription: "How much the snapshot alone held, in bytes, when the memory had been captured: the memory in compressed form, and next to nothing else. " +
					"Null without memory, and where the pool does not count what each volume holds: `lvm`, and `btrfs` until a container with a `disk` has been on it.",
				Computed: true, PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"timings":  timingsAttribute(snapshotTimings),
			"timeouts": timeoutsAttribute(ctx),
		},
	}
}

// snapshotIdentityModel is what identifies a snapshot on its daemon.
type snapshotIdentityModel struct {
	Project types.String `tfsdk:"project"`
	Machine types.String `tfsdk:"machine"`
	Name    types.String `tfsdk:"name"`
}

func (r *snapshotResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"project": identityschema.StringAttribute{OptionalForImport: true, Description: "The LXD project; the provider's by default."},
		"machine": identityschema.StringAttribute{RequiredForImport: true, Description: "The name of the machine."},
		"name":    identityschema.StringAttribute{RequiredForImport: true, Description: "The name of the snapshot."},
	}}
}

// momentValidator wants a moment in RFC 3339.
type momentValidator struct{}

func (momentValidator) Description(context.Context) string {
	return "must be a moment in RFC 3339, such as 2027-01-31T12:00:00Z"
}

func (v momentValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v momentValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := time.Parse(time.RFC3339, req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid moment", "It "+v.Description(ctx)+": "+err.Error()+".")
	}
}
