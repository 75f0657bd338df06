// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// What the reset's arguments are, as a resource and as an action.
const (
	resetSnapshotsText   = "What to go back to: the `id`s of `lab_snapshot`s, one for each machine, by any keys."
	resetParallelismText = "How many machines are put back at once. Default: all of them."
	resetReadyText       = "When the machines count as usable again, in the place of each machine's own `ready`."
	resetVerifiedText    = "What shows that the disk went back: `lineage`, the file system's own record that it was made from the snapshot (a btrfs pool of " +
		"this host, read as root), or `proof`, the restores that were tried on the pool when it was proved."
)

func (r *resetResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	machine := map[string]schema.Attribute{}
	for name, description := range resetMachineTimings {
		machine[name] = millisecondsAttribute(description)
	}
	machine["verified_by"] = schema.StringAttribute{MarkdownDescription: resetVerifiedText, Computed: true}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Puts a scenario back: every machine to its snapshot, side by side, as one step. It does so when `triggers` change, and at no other " +
			"time: creating the reset, or adding and removing machines, rewinds nothing. All machines are looked at first, and when one cannot be put back none is " +
			"touched. Configuration, devices, profiles and description stay as they are declared; disks go back, and so does every process. " +
			"From a snapshot with memory (`stateful`) a virtual machine goes on where it was, without a boot; a machine that was changed since in what its memory depends on " +
			"(`cpus`, `memory`, devices, most of `config`) is refused. A reset that fails keeps the old `triggers` in the state, so the next apply tries again.",
		Attributes: map[string]schema.Attribute{
			"id": idAttribute("An id of this reset's own."),
			"snapshots": schema.MapAttribute{
				MarkdownDescription: resetSnapshotsText,
				ElementType:         types.StringType, Required: true, Validators: []validator.Map{mapvalidator.SizeAtLeast(1)},
			},
			"triggers": schema.MapAttribute{
				MarkdownDescription: "Any values; a change of them puts the scenario back.",
				ElementType:         types.StringType, Optional: true,
			},
			"restore_on_create": schema.BoolAttribute{
				MarkdownDescription: "Whether creating the reset puts the scenario back, too. Default: `false`.",
				Optional:            true, Computed: true, Default: booldefault.StaticBool(false),
			},
			"parallelism": schema.Int64Attribute{
				MarkdownDescription: resetParallelismText,
				Optional:            true, Validators: []validator.Int64{int64validator.AtLeast(1)},
			},
			"ready":   readyAttribute(resetReadyText),
			"timings": timingsAttribute(resetTimings),
			"machines": schema.MapNestedAttribute{
				MarkdownDescription: "How the last reset of each machine went, by the keys of `snapshots`.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: machine},
				PlanModifiers:       []planmodifier.Map{mapplanmodifier.UseStateForUnknown()},
			},
			"timeouts": timeoutsAttribute(ctx),
		},
	}
}
