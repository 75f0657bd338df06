// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type storagePoolModel struct {
	ID           types.String                      `tfsdk:"id"`
	Project      types.String                      `tfsdk:"project"`
	Name         types.String                      `tfsdk:"name"`
	Driver       types.String                      `tfsdk:"driver"`
	Size         sizeValue                         `tfsdk:"size"`
	Source       types.String                      `tfsdk:"source"`
	Config       types.Map                         `tfsdk:"config"`
	Description  types.String                      `tfsdk:"description"`
	Members      map[string]storagePoolMemberModel `tfsdk:"members"`
	Verification types.Object                      `tfsdk:"verification"`
	Timings      types.Object                      `tfsdk:"timings"`
	Timeouts     timeouts.Value                    `tfsdk:"timeouts"`
}

type storagePoolMemberModel struct {
	Source types.String `tfsdk:"source"`
	Size   sizeValue    `tfsdk:"size"`
}

// storagePoolTimings are the parts of the timings attribute.
var storagePoolTimings = map[string]string{
	"create_ms": "From the request to the daemon's answer that the pool is there.",
	"verify_ms": "From there until the pool was proved to copy on write; null when a proof of before was still valid.",
}

// spec is the pool as the verbs take it.
func (m *storagePoolModel) spec() lab.PoolSpec {
	spec := lab.PoolSpec{
		Name: m.Name.ValueString(), Driver: m.Driver.ValueString(), Description: m.Description.ValueString(),
		Size: m.Size.ValueString(), Source: m.Source.ValueString(), Config: stringsOf(m.Config),
	}
	if len(m.Members) > 0 {
		spec.Members = map[string]lab.PoolMember{}
		for name, member := range m.Members {
			spec.Members[name] = lab.PoolMember{Source: member.Source.ValueString(), Size: member.Size.ValueString()}
		}
	}
	return spec
}

// show takes over what the daemon says of the pool. How it was proved and how long things took stay as they were
// measured.
func (m *storagePoolModel) show(project string, pool *lab.Pool) {
	m.ID = types.StringValue(pool.Name)
	m.Project = types.StringValue(project)
	m.Name = types.StringValue(pool.Name)
	m.Driver = types.StringValue(pool.Driver)
	m.Description = textLike(m.Description, pool.Description)
	m.Config = mapLike(m.Config, pool.Config)
	if len(m.Members) > 0 {
		m.Size, m.Source = newSize(""), types.StringNull()
		return
	}
	m.Size = newSize(pool.Size)
	if m.Source.IsNull() || m.Source.IsUnknown() {
		// The daemon rewrites a source that was given (to a uuid, or a path); one that was not is its own business.
		m.Source = textOrNull(pool.Source)
	}
}

// prove takes over a proof.
func (m *storagePoolModel) prove(proof *capability.Proof) { m.Verification = verificationValue(proof) }
