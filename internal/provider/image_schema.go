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
		MarkdownDescription: "An image to make machines from. One that the daemon has already, by its fingerprint, is used as it is and stays when this is destroyed.",
		Attributes: map[string]schema.Attribute{
			"id":      idAttribute("The fingerprint of the image, for references."),
			"project": projectAttribute(),
			"file":    imageFileAttribute(),
			"aliases": schema.SetAttribute{
				MarkdownDescription: "Names for the image on the daemon. A name that another image has is refused. They go when this is destroyed, also from an image that stays.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          texts,
			},
			"properties": schema.MapAttribute{
				MarkdownDescription: "Properties to set on the image, beside those in its metadata, such as `description`.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{ownKeysValidator()},
			},
			"pools": schema.SetAttribute{
				MarkdownDescription: "Storage pools, each the `id` of a `lab_storage_pool`, to unpack the image on ahead of use, so that the first machine does not wait for it. " +
					"Where it is found not to be unpacked any more, the next apply unpacks it again.",
				ElementType: types.StringType,
				Optional:    true,
				Validators:  texts,
			},
			"fingerprint": computedText("The SHA-256 of the image's files, one after the other: what the daemon calls it."),
			"size_bytes": schema.Int64Attribute{
				MarkdownDescription: "The size of the image's files together, in bytes.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"owned": schema.BoolAttribute{
				MarkdownDescription: "Whether the image goes when this is destroyed: `true` when this uploaded or imported it, `false` when the daemon had it already.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
			},
			"timings":  timingsAttribute(imageTimings),
			"timeouts": timeoutsAttribute(ctx),
		},
	}
}

func imageFileAttribute() schema.SingleNestedAttribute {
	path := stringvalidator.LengthAtLeast(1)
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Files of the host that Terraform runs on. Other contents, also under the same path, replace the image; the same contents under " +
			"another path do not. Files that are gone are no reason to do anything while the daemon has the image.",
		Required: true,
		Attributes: map[string]schema.Attribute{
			"metadata": schema.StringAttribute{
				MarkdownDescription: "A unified image tarball, or the metadata tarball of an image in two files.",
				Required:            true,
				Validators:          []validator.String{path},
			},
			"rootfs": schema.StringAttribute{
				MarkdownDescription: "The root file system of an image in two files: squashfs or a tarball for containers, qcow2 for virtual machines.",
				Optional:            true,
				Validators:          []validator.String{path},
			},
			"sha256": schema.StringAttribute{
				MarkdownDescription: "What the files, one after the other, must hash to: the image's fingerprint. Files that do not are refused. " +
					"It also says what files will hold that the same apply makes.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.RegexMatches(fingerprintForm, "must be 64 lower-case hexadecimal digits")},
			},
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
