// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

func (d *capabilityDataSource) Schema(ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"pool": schema.StringAttribute{
			MarkdownDescription: "The storage pool that the verdict is about. Default: the host as a whole, and whether a pool that copies on write can be made on it.",
			Optional:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
		"prove": schema.SetAttribute{
			MarkdownDescription: "What to prove by doing it, with throw-away objects. `copy_on_write` probes the `pool`, or all pools; a proof that still holds is not repeated. " +
				"`containers` starts a container and runs a command on it, and `virtual_machines` starts a virtual machine as far as its firmware: both do so at every plan, " +
				"in about a second. Without this argument nothing on the host changes.",
			ElementType: types.StringType,
			Optional:    true,
			Validators:  []validator.Set{setvalidator.ValueStringsAre(stringvalidator.OneOf(capability.Provable()...))},
		},
		"timeouts": timeouts.Attributes(ctx),
	}
	maps.Copy(attributes, capabilityReportAttributes())
	resp.Schema = schema.Schema{
		MarkdownDescription: "What a host can do, by facts and proofs: to gate a lab with preconditions on `adequate`. A degraded host is reported and is no error, " +
			"and so is one without any daemon.\n\n" +
			"While the provider's own configuration is not known, as when the same apply makes the host, nothing can be judged and all results are null. " +
			"Give the data source a `depends_on` then, so that it is read when the host is there.",
		Attributes: attributes,
	}
}

// capabilityReportAttributes are what was found.
func capabilityReportAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"adequate": schema.BoolAttribute{MarkdownDescription: "Whether a lab can rely on the host, or on the `pool`.", Computed: true},
		"summary":  schema.StringAttribute{MarkdownDescription: "The same in words: what is missing, the evidence, and what helps.", Computed: true},
		"capabilities": schema.ListNestedAttribute{
			MarkdownDescription: "The verdicts, the host's before the pools'.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"capability": schema.StringAttribute{MarkdownDescription: "What was judged, such as `containers` or `copy_on_write_snapshot`.", Computed: true},
				"subject":    schema.StringAttribute{MarkdownDescription: "The pool that it is about; null for the host.", Computed: true},
				"verdict": schema.StringAttribute{
					MarkdownDescription: "`proven` (it was done here), `reported` (the daemon says so, and nothing speaks against it), `degraded`, `absent`, or `unproven` (it could not be found out).",
					Computed:            true,
				},
				"evidence": schema.ListAttribute{MarkdownDescription: "What the verdict rests on: figures, and the daemon's own words.", ElementType: types.StringType, Computed: true},
				"reason":   schema.StringAttribute{MarkdownDescription: "Why the verdict is not better; null when it is good.", Computed: true},
				"remedy":   schema.StringAttribute{MarkdownDescription: "What helps; null when nothing is needed.", Computed: true},
				"judged":   schema.StringAttribute{MarkdownDescription: "How it was judged.", Computed: true},
			}},
		},
		"pools": schema.MapNestedAttribute{
			MarkdownDescription: "The storage pools, by name. The free space changes all the time: an output made of it makes every plan show a change.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"driver":        schema.StringAttribute{MarkdownDescription: "The storage driver.", Computed: true},
				"copy_on_write": schema.StringAttribute{MarkdownDescription: "The worst of the verdicts on snapshot, branch and restore.", Computed: true},
				"total_bytes":   schema.Int64Attribute{MarkdownDescription: "The size of the file system below it, in bytes; null when unknown.", Computed: true},
				"free_bytes":    schema.Int64Attribute{MarkdownDescription: "What is free there, in bytes; null when unknown.", Computed: true},
				"proved_at":     schema.StringAttribute{MarkdownDescription: "When it was proved to copy on write, in RFC 3339; null when no proof holds.", Computed: true},
			}},
		},
		"server": schema.SingleNestedAttribute{
			MarkdownDescription: "The daemon; null when there is none.",
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"product":         schema.StringAttribute{MarkdownDescription: "`LXD` or `Incus`.", Computed: true},
				"version":         schema.StringAttribute{MarkdownDescription: "Its version.", Computed: true},
				"address":         schema.StringAttribute{MarkdownDescription: "Where it was found.", Computed: true},
				"project":         schema.StringAttribute{MarkdownDescription: "The project of the provider block.", Computed: true},
				"fingerprint":     schema.StringAttribute{MarkdownDescription: "The SHA-256 fingerprint of its certificate.", Computed: true},
				"kernel":          schema.StringAttribute{MarkdownDescription: "The release of the host's kernel.", Computed: true},
				"os":              schema.StringAttribute{MarkdownDescription: "The host's operating system.", Computed: true},
				"storage_drivers": schema.ListAttribute{MarkdownDescription: "The storage drivers that it offers.", ElementType: types.StringType, Computed: true},
				"clustered":       schema.BoolAttribute{MarkdownDescription: "Whether it is part of a cluster.", Computed: true},
			},
		},
		"members": schema.MapNestedAttribute{
			MarkdownDescription: "The members of the cluster, by name; empty for a daemon that stands alone.",
			Computed:            true,
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"address": schema.StringAttribute{MarkdownDescription: "Its address.", Computed: true},
				"status":  schema.StringAttribute{MarkdownDescription: "The daemon's word for its state, such as `Online`.", Computed: true},
			}},
		},
	}
}
