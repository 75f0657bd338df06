// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// machinePreparationAttributes are how a machine is prepared. They change by replacing it, but for a machine that was
// imported: what the daemon cannot tell is then taken over as it is declared.
func machinePreparationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cloud_init": cloudInitAttribute(),
		"files":      filesAttribute(),
		"setup": schema.ListNestedAttribute{
			MarkdownDescription: "Commands that prepare it when it has booted for the first time (with systemd: has settled), in order, each to its end. One that returns anything but 0 fails the machine and shows its output. What a command leaves running must have its output redirected, or the command does not end. A virtual machine needs LXD's agent for them. Changing them replaces the machine.",
			Optional:            true,
			Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
			PlanModifiers:       []planmodifier.List{listplanmodifier.RequiresReplaceIf(preparedList, preparedText, preparedText)},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"command": schema.ListAttribute{
					MarkdownDescription: "The words of the command; no shell is involved.",
					ElementType:         types.StringType, Required: true, Validators: []validator.List{listvalidator.SizeAtLeast(1)},
				},
				"environment": schema.MapAttribute{MarkdownDescription: "Variables to set for it.", ElementType: types.StringType, Optional: true},
				"directory":   schema.StringAttribute{MarkdownDescription: "Where it runs. Default: root's home.", Optional: true},
			}},
		},
	}
}

func cloudInitAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "What cloud-init does at the first boot, in an image that has it. Changing it replaces the machine.",
		Optional:            true,
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.RequiresReplaceIf(preparedObject, preparedText, preparedText)},
		Validators:          []validator.Object{atLeastOneOf("user_data", "user_data_wo", "network_config", "vendor_data")},
		Attributes: map[string]schema.Attribute{
			"user_data": schema.StringAttribute{MarkdownDescription: "User data. It is kept in the state.", Optional: true},
			"user_data_wo": schema.StringAttribute{
				MarkdownDescription: "User data that is kept in no state and no plan, for secrets. The daemon keeps it in the machine's configuration. Terraform cannot see a change of it: change `user_data_wo_version`, too.",
				Optional:            true, WriteOnly: true,
				Validators: []validator.String{stringvalidator.ConflictsWith(path.MatchRoot("cloud_init").AtName("user_data"))},
			},
			"user_data_wo_version": schema.Int64Attribute{MarkdownDescription: "Change it when `user_data_wo` changed.", Optional: true},
			"network_config":       schema.StringAttribute{MarkdownDescription: "Network configuration.", Optional: true},
			"vendor_data":          schema.StringAttribute{MarkdownDescription: "Vendor data.", Optional: true},
		},
	}
}

func filesAttribute() schema.MapNestedAttribute {
	content := []string{"content", "content_base64", "content_wo", "source"}
	return schema.MapNestedAttribute{
		MarkdownDescription: "Files to put into it before its first start, by their path in the machine; into a virtual machine when its agent answers, before `setup`. Directories that are missing are made. Changing them replaces the machine.",
		Optional:            true,
		PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplaceIf(preparedMap, preparedText, preparedText)},
		Validators: []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.KeysAre(
			stringvalidator.RegexMatches(filePathForm, "must be the absolute path of a file in the machine"))},
		NestedObject: schema.NestedAttributeObject{
			Validators: []validator.Object{exactlyOneOf(content...)},
			Attributes: map[string]schema.Attribute{
				"content":            schema.StringAttribute{MarkdownDescription: "What it holds. It is kept in the state.", Optional: true},
				"content_base64":     schema.StringAttribute{MarkdownDescription: "What it holds, in base64, for what is not text. It is kept in the state.", Optional: true},
				"content_wo":         schema.StringAttribute{MarkdownDescription: "What it holds, kept in no state and no plan, for secrets. Terraform cannot see a change of it: change `content_wo_version`, too.", Optional: true, WriteOnly: true},
				"content_wo_version": schema.Int64Attribute{MarkdownDescription: "Change it when `content_wo` changed.", Optional: true},
				"source":             schema.StringAttribute{MarkdownDescription: "A file of the host that Terraform runs on, to copy.", Optional: true},
				"source_sha256":      schema.StringAttribute{MarkdownDescription: "Its hash, so that a change of the file replaces the machine: `filesha256(\"…\")`.", Optional: true},
				"mode":               schema.StringAttribute{MarkdownDescription: "Its permissions, in octal. Default: `0644`.", Optional: true, Validators: []validator.String{stringvalidator.RegexMatches(modeForm, "must be three octal digits, such as 0755")}},
				"uid":                schema.Int64Attribute{MarkdownDescription: "The user that owns it. Default: 0, root.", Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)}},
				"gid":                schema.Int64Attribute{MarkdownDescription: "The group that owns it. Default: 0, root.", Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)}},
			},
		},
	}
}
