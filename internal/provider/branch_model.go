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

// keepUndeclared leaves null what was null: what is not declared is inherited, and shown by nobody.
func (m *branchModel) keepUndeclared(before *branchModel) {
	for _, argument := range []struct {
		declared interface{ IsNull() bool }
		clear    func()
	}{
		{before.Description, func() { m.Description = before.Description }},
		{before.CPUs, func() { m.CPUs = before.CPUs }},
		{before.Memory, func() { m.Memory = before.Memory }},
		{before.Disk, func() { m.Disk = before.Disk }},
		{before.Networks, func() { m.Networks = before.Networks }},
		{before.Devices, func() { m.Devices = before.Devices }},
		{before.Profiles, func() { m.Profiles = before.Profiles }},
		{before.Config, func() { m.Config = before.Config }},
	} {
		if argument.declared.IsNull() {
			argument.clear()
		}
	}
	if before.keepsMemory() {
		m.Memory = before.Memory // how it was made; the daemon does not know
	}
}

// withMemory is the value of memory with which a branch goes on from the memory of its source. Terraform makes a text of it.
const withMemory = "true"

func (m *branchModel) keepsMemory() bool { return m.Memory.ValueString() == withMemory }

// spec is what is asked of the branch, as the verbs take it. Values that are not known yet are left out.
func (m *branchModel) spec(ctx context.Context) (lab.BranchSpec, diag.Diagnostics) {
	machine, diags := m.machineModel.spec(ctx)
	if m.Networks.IsNull() {
		machine.Networks = nil
	}
	if m.Devices.IsNull() {
		machine.Devices = nil
	}
	if !m.Profiles.IsNull() && machine.Profiles == nil {
		machine.Profiles = []string{}
	}
	machine.Checkpointable = false // as the source's, and not asked for
	spec := lab.BranchSpec{MachineSpec: machine, WithMemory: m.keepsMemory()}
	if spec.WithMemory {
		spec.Memory = "" // as the source's
	}
	if !m.Source.IsUnknown() && !m.Source.IsNull() {
		source, err := lab.ParseSourceID(m.Source.ValueString())
		if err != nil {
			diags.Append(failure(verbCreate, thingBranch, machine.Name, &lab.ArgumentError{Argument: "source", Err: err}))
		}
		spec.Source = source
	}
	return spec, diags
}

// show takes over what the daemon says of the branch, of what was declared: the rest is inherited, and nobody's to
// manage. Of the configuration these are single keys.
func (m *branchModel) show(ctx context.Context, machine *lab.Machine) {
	before := *m
	m.machineModel.show(ctx, machine)
	shown := map[string]string{}
	for key, value := range stringsOf(before.Config) {
		live, ok := machine.Config[key]
		if ok || value == "" { // an empty value removes a key
			shown[key] = live
		}
	}
	m.Config = mapLike(before.Config, shown)
	m.keepUndeclared(&before)
}

// changes gives the specifications between which an update goes.
func (m *branchModel) changes(ctx context.Context, state *branchModel) (before, now lab.MachineSpec, diags diag.Diagnostics) {
	is, diags := state.spec(ctx)
	will, problems := m.spec(ctx)
	diags.Append(problems...)
	for key := range is.Config {
		if _, still := will.Config[key]; !still {
			delete(is.Config, key) // what is no longer declared stays as it is
		}
	}
	if will.WithMemory {
		is.Memory = "" // whether it was kept is about how the branch was made
	}
	return is.MachineSpec, will.MachineSpec, diags
}

// replaces says whether a plan replaces the branch.
func (m *branchModel) replaces(state *branchModel, imported bool) bool {
	return m.machineModel.replaces(&state.machineModel, imported) ||
		!imported && (!m.Source.Equal(state.Source) || m.keepsMemory() && !state.keepsMemory())
}
