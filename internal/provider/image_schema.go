// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func (r *imageResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	texts := []validator.Set{setvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))}
	resp.Schema = schema.Schema{
		MarkdownDescription: "An image to make machines from: of files, from an image server or another daemon, or made of a machine that was prepared. " +
			"One that the daemon has already, by its fingerprint, is used as it is and stays when this is destroyed.",
		Attributes: map[string]schema.Attribute{
			"id":      idAttribute("The fingerprint of the image, for references."),
			"project": projectAttribute(),
			"file":    imageFileAttribute(),
			"remote":  imageRemoteAttribute(),
			"publish": imagePublishAttribute(),
			"aliases": schema.SetAttribute{
				MarkdownDescription: "Names for the image on the daemon. A name that another image has is refused. They go when this is destroyed, also from an image that stays.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          texts,
			},
			"properties": schema.MapAttribute{
				MarkdownDescription: "Properties to set on the image, such as `description`, beside those that it brings along.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{ownKeysValidator()},
			},
			"public": schema.BoolAttribute{
				MarkdownDescription: "Whether everybody who reaches the daemon's https address may fetch it, as another daemon does with `remote`. Default: as it is, and a new image is not public.",
				Optional:            true,
			},
			"expires_at": schema.StringAttribute{
				MarkdownDescription: "When the image becomes obsolete, in RFC 3339, such as `2027-01-31T12:00:00Z`. The daemon shows it, and does not delete an image for it. Default: as it is.",
				Optional:            true,
				Validators:          []validator.String{momentValidator{}},
			},
			"pools": schema.SetAttribute{
				MarkdownDescription: "Storage pools, each the `id` of a `lab_storage_pool`, to unpack the image on ahead of use, so that the first machine does not wait for it. " +
					"Where it is found not to be unpacked any more, the next apply unpacks it again.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  texts,
			},
			"fingerprint": computedText("The SHA-256 of the image's files, one after the other: what the daemon calls it. It stays the same until the image is replaced."),
			"size_bytes": schema.Int64Attribute{
				MarkdownDescription: "The size of the image's files together, in bytes.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"owned": schema.BoolAttribute{
				MarkdownDescription: "Whether the image goes when this is destroyed: `true` when the daemon has it from this, or it was imported; `false` when the daemon had it already.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			},
			"timings":  timingsAttribute(imageTimings),
			"timeouts": timeoutsAttribute(ctx),
		},
	}
}

// imageIdentityModel is what identifies an image on its daemon.
type imageIdentityModel struct {
	Project     types.String `tfsdk:"project"`
	Fingerprint types.String `tfsdk:"fingerprint"`
}

func (r *imageResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"project":     identityschema.StringAttribute{OptionalForImport: true, Description: "The LXD project; the provider's by default."},
		"fingerprint": identityschema.StringAttribute{RequiredForImport: true, Description: "The fingerprint of the image."},
	}}
}
