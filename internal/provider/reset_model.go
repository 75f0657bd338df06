// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type resetModel struct {
	ID              types.String   `tfsdk:"id"`
	Snapshots       types.Map      `tfsdk:"snapshots"`
	Triggers        types.Map      `tfsdk:"triggers"`
	RestoreOnCreate types.Bool     `tfsdk:"restore_on_create"`
	Parallelism     types.Int64    `tfsdk:"parallelism"`
	Ready           types.Object   `tfsdk:"ready"`
	Timings         types.Object   `tfsdk:"timings"`
	Machines        types.Map      `tfsdk:"machines"`
	Timeouts        timeouts.Value `tfsdk:"timeouts"`
}

// resetTimings are the parts of the timings attribute.
var resetTimings = map[string]string{
	"restore_ms": "From the request until the last machine was restored.",
	"usable_ms":  "From the request until the last machine was usable.",
}

// resetMachineTimings are the parts of each of the machines.
var resetMachineTimings = map[string]string{
	"stop_ms":    "From the request until the machine was stopped; null when it was stopped before.",
	"restore_ms": "From the request until its disk was back and, from a checkpoint, its memory too.",
	"start_ms":   "From the request until the daemon's call to start it returned; null when it went on from its memory.",
	"usable_ms":  "From the request until it was usable; null for a machine that is declared to be stopped.",
}

// resetMachineTypes is the shape of each of the machines.
var resetMachineTypes = func() map[string]attr.Type {
	shape := timingsNull(resetMachineTimings).AttributeTypes(context.Background())
	shape["verified_by"] = types.StringType
	return shape
}()

// spec is the reset as the verbs take it. Snapshots that are not known yet are left out; at apply there are none.
func (m *resetModel) spec(ctx context.Context) (lab.ResetSpec, diag.Diagnostics) {
	var diags diag.Diagnostics
	spec := lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{}, Parallelism: int(m.Parallelism.ValueInt64())}
	for key, text := range stringsOf(m.Snapshots) {
		id, err := lab.ParseSnapshotID(text)
		if err != nil {
			diags.AddAttributeError(path.Root("snapshots").AtMapKey(key), "Not a snapshot", sentence(err))
			continue
		}
		spec.Snapshots[key] = id
	}
	if !m.Ready.IsNull() {
		ready, problems := readyOf(ctx, m.Ready)
		diags.Append(problems...)
		spec.Ready = &ready
	}
	return spec, diags
}

// show takes over how long a reset took.
func (m *resetModel) show(result *lab.ResetResult) {
	m.Timings = timingsValue(resetTimings, map[string]int64{"restore_ms": result.RestoreMS, "usable_ms": result.UsableMS})
	machines := map[string]attr.Value{}
	for key, took := range result.Machines {
		values := timingsValue(resetMachineTimings, map[string]int64{
			"stop_ms": took.StoppedMS, "restore_ms": took.RestoredMS, "start_ms": took.StartedMS, "usable_ms": took.UsableMS,
		}).Attributes()
		values["verified_by"] = types.StringValue(took.VerifiedBy)
		machines[key] = types.ObjectValueMust(resetMachineTypes, values)
	}
	m.Machines = types.MapValueMust(types.ObjectType{AttrTypes: resetMachineTypes}, machines)
}

// showNone says that nothing was reset yet.
func (m *resetModel) showNone() {
	m.Timings = timingsNull(resetTimings)
	m.Machines = types.MapNull(types.ObjectType{AttrTypes: resetMachineTypes})
}
