// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type storagePoolModel struct {
	ID           types.String   `tfsdk:"id"`
	Project      types.String   `tfsdk:"project"`
	Name         types.String   `tfsdk:"name"`
	Driver       types.String   `tfsdk:"driver"`
	Size         sizeValue      `tfsdk:"size"`
	Source       types.String   `tfsdk:"source"`
	Config       types.Map      `tfsdk:"config"`
	Description  types.String   `tfsdk:"description"`
	Members      types.Map      `tfsdk:"members"`
	Verification types.Object   `tfsdk:"verification"`
	Timings      types.Object   `tfsdk:"timings"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`
}

// membersOf reads what a pool has of its own on each member; known is false while any of it is not known yet.
func membersOf(value types.Map) (members map[string]lab.PoolMember, known bool) {
	members, known = map[string]lab.PoolMember{}, !value.IsUnknown()
	for name, element := range value.Elements() {
		object, _ := element.(types.Object)
		size, _ := object.Attributes()["size"].(sizeValue)
		source, _ := object.Attributes()["source"].(types.String)
		known = known && !object.IsUnknown() && !size.IsUnknown() && !source.IsUnknown()
		members[name] = lab.PoolMember{Source: source.ValueString(), Size: size.ValueString()}
	}
	return members, known
}

// otherMembers says that what a pool has on each member really differs, and not only in how a size is spelt. After an
// import nothing is known of it, and what is declared is taken over.
func otherMembers(ctx context.Context, req planmodifier.MapRequest, resp *mapplanmodifier.RequiresReplaceIfFuncResponse) {
	if req.StateValue.IsNull() {
		return
	}
	before, _ := membersOf(req.StateValue)
	now, known := membersOf(req.PlanValue)
	resp.RequiresReplace = !known || !maps.EqualFunc(before, now, func(a, b lab.PoolMember) bool {
		same, diags := newSize(a.Size).StringSemanticEquals(ctx, newSize(b.Size))
		resp.Diagnostics.Append(diags...)
		return a.Source == b.Source && same
	})
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
	spec.Members, _ = membersOf(m.Members)
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
	if !m.Members.IsNull() {
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
