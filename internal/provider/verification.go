// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// measureTypes is the shape of one measurement of a proof.
var measureTypes = map[string]attr.Type{"verdict": types.StringType, "space_ratio": types.Float64Type, "time_ms": types.Float64Type}

// verificationTypes is the shape of the verification attribute.
var verificationTypes = map[string]attr.Type{
	"date": types.StringType, "daemon_version": types.StringType, "kernel": types.StringType, "driver": types.StringType,
	"size_bytes": types.Int64Type, "write_ms": types.Int64Type, "judged_by": types.ListType{ElemType: types.StringType},
	"snapshot": types.ObjectType{AttrTypes: measureTypes}, "branch": types.ObjectType{AttrTypes: measureTypes}, "restore": types.ObjectType{AttrTypes: measureTypes},
}

func verificationAttribute() schema.SingleNestedAttribute {
	measure := func(what string) schema.SingleNestedAttribute {
		return schema.SingleNestedAttribute{
			MarkdownDescription: "What " + what + " costs.", Computed: true,
			Attributes: map[string]schema.Attribute{
				"verdict":     schema.StringAttribute{MarkdownDescription: "`proven` when it copies on write.", Computed: true},
				"space_ratio": schema.Float64Attribute{MarkdownDescription: "The space that it took, as a part of the data that it covers: near 0 when it copies on write, near 1 when it copies. Null where space says nothing.", Computed: true},
				"time_ms":     schema.Float64Attribute{MarkdownDescription: "How long it took, in milliseconds.", Computed: true},
			},
		}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How the pool was proved to copy on write, when it was created or its configuration changed. The proof is also recorded on the pool, " +
			"and holds while daemon, kernel, driver and configuration stay the same.",
		Computed:      true,
		PlanModifiers: []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
		Attributes: map[string]schema.Attribute{
			"date":           schema.StringAttribute{MarkdownDescription: "When, in RFC 3339.", Computed: true},
			"daemon_version": schema.StringAttribute{MarkdownDescription: "The daemon's version.", Computed: true},
			"kernel":         schema.StringAttribute{MarkdownDescription: "The release of the host's kernel.", Computed: true},
			"driver":         schema.StringAttribute{MarkdownDescription: "The storage driver.", Computed: true},
			"size_bytes":     schema.Int64Attribute{MarkdownDescription: "How much data it was measured with.", Computed: true},
			"write_ms":       schema.Int64Attribute{MarkdownDescription: "How long that took to write, in milliseconds.", Computed: true},
			"judged_by":      schema.ListAttribute{MarkdownDescription: "The witnesses: `space`, `time`, `lineage` (the file system's own records).", ElementType: types.StringType, Computed: true},
			"snapshot":       measure("a snapshot"),
			"branch":         measure("a branch"),
			"restore":        measure("a restore"),
		},
	}
}

// verificationValue is a proof as an attribute; none is null.
func verificationValue(proof *capability.Proof) types.Object {
	if proof == nil {
		return types.ObjectNull(verificationTypes)
	}
	judged := []attr.Value{}
	for _, witness := range proof.Judged {
		judged = append(judged, types.StringValue(witness))
	}
	return types.ObjectValueMust(verificationTypes, map[string]attr.Value{
		"date":           types.StringValue(proof.Date.UTC().Format(time.RFC3339)),
		"daemon_version": types.StringValue(proof.Version), "kernel": types.StringValue(proof.Kernel), "driver": types.StringValue(proof.Driver),
		"size_bytes": types.Int64Value(proof.SizeBytes), "write_ms": types.Int64Value(proof.WriteMS),
		"judged_by": types.ListValueMust(types.StringType, judged),
		"snapshot":  measureValue(proof.Snapshot, true), "branch": measureValue(proof.Branch, true), "restore": measureValue(proof.Restore, false),
	})
}

// measureValue is one measurement. A restore writes in place on any driver, so its space says nothing.
func measureValue(measure capability.Measure, space bool) types.Object {
	ratio := types.Float64Null()
	if space {
		ratio = types.Float64Value(measure.Space)
	}
	return types.ObjectValueMust(measureTypes, map[string]attr.Value{
		"verdict": types.StringValue(string(measure.Verdict)), "space_ratio": ratio, "time_ms": types.Float64Value(measure.FullMS),
	})
}
