// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func (r *storagePoolResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A storage pool that copies on write, and is proved to: after it is created, a probe writes 64 MiB and measures what " +
			"snapshots, branches and restores cost in space and time. A pool that fails the proof is refused; one on a loop file is removed again, " +
			"one on a `source` of yours stays as it is.",
		Attributes: map[string]schema.Attribute{
			"id":      idAttribute("The name of the pool, for references."),
			"project": projectAttribute(),
			"name": schema.StringAttribute{
				MarkdownDescription: "The name of the pool. Changing it replaces the pool.",
				Required:            true,
				Validators:          []validator.String{poolNameValidator()},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"driver": schema.StringAttribute{
				MarkdownDescription: "The storage driver: `btrfs`, `zfs`, `lvm` with a thin pool, or `ceph`. `dir` copies everything and is refused. Default: `btrfs`. Changing it replaces the pool.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString("btrfs"),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"size": schema.StringAttribute{
				CustomType: sizeType{},
				MarkdownDescription: "The size of the loop file, such as `20GiB`. Default: the daemon's choice, a fifth of the disk. It can grow where the daemon can " +
					"really do it, which is checked; it is never a reason to replace the pool.",
				Optional:      true,
				Computed:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown(), keepSize{}},
			},
			"source": schema.StringAttribute{
				MarkdownDescription: "A block device, directory, dataset or volume group to make the pool on, which must hold nothing: **deleting a pool deletes what is on its " +
					"source**. Default: a loop file of the daemon's. Changing it replaces the pool.",
				Optional:      true,
				Validators:    []validator.String{stringvalidator.LengthAtLeast(1)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"config": schema.MapAttribute{
				MarkdownDescription: "Further configuration in LXD's keys, such as `btrfs.mount_options`.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Map{ownKeysValidator("size", "source")},
			},
			"description":  schema.StringAttribute{MarkdownDescription: "A text for people.", Optional: true},
			"members":      poolMembersAttribute(),
			"verification": verificationAttribute(),
			"timings":      timingsAttribute(storagePoolTimings),
			"timeouts":     timeoutsAttribute(ctx),
		},
	}
}

// poolMembersAttribute is what a pool has of its own on each member of a cluster.
func poolMembersAttribute() schema.MapNestedAttribute {
	const differs = "Another member, source or size replaces the pool."
	return schema.MapNestedAttribute{
		MarkdownDescription: "On a cluster: what the pool has of its own on each member, by the member's name. Every member must be named. Changing it replaces the pool.",
		Optional:            true,
		Validators:          []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.ConflictsWith(path.MatchRoot("size"), path.MatchRoot("source"))},
		PlanModifiers: []planmodifier.Map{
			mapplanmodifier.RequiresReplaceIf(otherMembers, differs, differs),
		},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"source": schema.StringAttribute{MarkdownDescription: "As the pool's `source`, on this member.", Optional: true},
			"size": schema.StringAttribute{
				CustomType: sizeType{}, MarkdownDescription: "As the pool's `size`, on this member.", Optional: true,
				PlanModifiers: []planmodifier.String{keepSize{}},
			},
		}},
	}
}
