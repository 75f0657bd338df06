// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type snapshotModel struct {
	ID        types.String   `tfsdk:"id"`
	Project   types.String   `tfsdk:"project"`
	Machine   types.String   `tfsdk:"machine"`
	Name      types.String   `tfsdk:"name"`
	Stateful  types.Bool     `tfsdk:"stateful"`
	ExpiresAt types.String   `tfsdk:"expires_at"`
	CreatedAt types.String   `tfsdk:"created_at"`
	StateSize types.Int64    `tfsdk:"state_bytes"`
	Timings   types.Object   `tfsdk:"timings"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
}

// snapshotTimings are the parts of the timings attribute.
var snapshotTimings = map[string]string{"snapshot_ms": "From the request to the daemon's answer that the snapshot is there."}

// spec is the snapshot as the verbs take it.
func (m *snapshotModel) spec() (lab.SnapshotSpec, error) {
	machine, err := lab.ParseMachineID(m.Machine.ValueString())
	if err != nil {
		return lab.SnapshotSpec{}, &lab.ArgumentError{Argument: "machine", Err: err}
	}
	return lab.SnapshotSpec{Machine: machine, Name: m.Name.ValueString(), Stateful: m.Stateful.ValueBool(), ExpiresAt: momentOf(m.ExpiresAt)}, nil
}

// momentOf reads a moment that was validated before; none is the zero time.
func momentOf(value types.String) time.Time {
	moment, err := time.Parse(time.RFC3339, value.ValueString())
	if err != nil {
		return time.Time{}
	}
	return moment
}

// show takes over what the daemon says of the snapshot.
func (m *snapshotModel) show(snapshot *lab.Snapshot) {
	m.ID = types.StringValue(snapshot.ID.String())
	m.Project = types.StringValue(snapshot.ID.Machine.Project)
	m.Machine = types.StringValue(snapshot.ID.Machine.String())
	m.Name = types.StringValue(snapshot.ID.Name)
	m.Stateful = types.BoolValue(snapshot.Stateful)
	m.CreatedAt = types.StringValue(snapshot.ID.CreatedAt.Format(time.RFC3339))
	if declared := momentOf(m.ExpiresAt); m.ExpiresAt.IsNull() || !declared.Equal(snapshot.ExpiresAt) {
		m.ExpiresAt = types.StringNull()
		if !snapshot.ExpiresAt.IsZero() {
			m.ExpiresAt = types.StringValue(snapshot.ExpiresAt.Format(time.RFC3339))
		}
	}
}
