// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// branchModel is a branch: a machine, and what it was made from.
type branchModel struct {
	machineModel
	Source types.String `tfsdk:"source"`
}

// declaredBy is a plan or a state without what the configuration leaves to be inherited.
func (m branchModel) declaredBy(config *branchModel) branchModel {
	for _, argument := range []struct {
		declared interface{ IsNull() bool }
		clear    func()
	}{
		{config.Description, func() { m.Description = types.StringNull() }},
		{config.Pool, func() { m.Pool = types.StringNull() }},
		{config.CPUs, func() { m.CPUs = types.Int64Null() }},
		{config.Memory, func() { m.Memory = newSize("") }},
		{config.Disk, func() { m.Disk = newSize("") }},
		{config.Networks, func() { m.Networks = types.MapNull(m.Networks.ElementType(context.Background())) }},
		{config.Devices, func() { m.Devices = types.MapNull(m.Devices.ElementType(context.Background())) }},
		{config.Profiles, func() { m.Profiles = types.ListNull(types.StringType) }},
		{config.Config, func() { m.Config = types.MapNull(types.StringType) }},
	} {
		if argument.declared.IsNull() {
			argument.clear()
		}
	}
	m.Checkpointable = types.BoolNull()
	return m
}

// spec is what is asked of the branch, as the verbs take it. Values that are not known yet are left out.
func (m *branchModel) spec(ctx context.Context) (lab.BranchSpec, diag.Diagnostics) {
	machine, diags := m.machineModel.spec(ctx)
	// What is not declared is null, or unknown when the branch is being made.
	if m.Networks.IsNull() || m.Networks.IsUnknown() {
		machine.Networks = nil
	}
	if m.Devices.IsNull() || m.Devices.IsUnknown() {
		machine.Devices = nil
	}
	if !m.Profiles.IsNull() && !m.Profiles.IsUnknown() && machine.Profiles == nil {
		machine.Profiles = []string{}
	}
	spec := lab.BranchSpec{MachineSpec: machine}
	if !m.Source.IsUnknown() && !m.Source.IsNull() {
		source, err := lab.ParseSourceID(m.Source.ValueString())
		if err != nil {
			diags.Append(failure(verbCreate, thingBranch, machine.Name, &lab.ArgumentError{Argument: "source", Err: err}))
		}
		spec.Source = source
	}
	return spec, diags
}

// show takes over what the daemon says of the branch. Of its configuration only what was declared is shown: the rest
// is inherited, and nobody's to manage.
func (m *branchModel) show(ctx context.Context, machine *lab.Machine) {
	declared := m.Config
	m.machineModel.show(ctx, machine)
	if declared.IsNull() || declared.IsUnknown() {
		m.Config = types.MapNull(types.StringType)
		return
	}
	shown := map[string]string{}
	for key, value := range stringsOf(declared) {
		live, ok := machine.Config[key]
		if ok || value == "" { // an empty value removes a key
			shown[key] = live
		}
	}
	m.Config = mapLike(declared, shown)
}

// changes gives the specifications between which an update goes: of what is declared now, as it was and as it will be.
func (m *branchModel) changes(ctx context.Context, state, config *branchModel) (before, now lab.BranchSpec, diags diag.Diagnostics) {
	declared, was := m.declaredBy(config), state.declaredBy(config)
	now, diags = declared.spec(ctx)
	before, problems := was.spec(ctx)
	diags.Append(problems...)
	for key := range before.Config {
		if _, still := now.Config[key]; !still {
			delete(before.Config, key) // what is no longer declared stays as it is
		}
	}
	return before, now, diags
}
