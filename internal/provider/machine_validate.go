// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

var _ resource.ResourceWithValidateConfig = (*machineResource)(nil)

// ValidateConfig refuses arguments that do not go together.
func (r *machineResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config machineModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(config.validateNames()...)
	if config.Checkpointable.ValueBool() && !config.Type.IsUnknown() && config.Type.ValueString() != lab.TypeVirtualMachine {
		resp.Diagnostics.AddAttributeError(path.Root("checkpointable"), "Only virtual machines can be checkpointed",
			`The memory of a container cannot be captured. Set type = "virtual-machine", or leave checkpointable out.`)
	}
	if config.Checkpointable.ValueBool() {
		resp.Diagnostics.Append(config.validateCapturable()...)
	}
	resp.Diagnostics.Append(config.validateReady(ctx)...)
}

// validateCapturable refuses devices with which the memory of a virtual machine cannot be captured on any host.
func (m *machineModel) validateCapturable() diag.Diagnostics {
	var diags diag.Diagnostics
	for name, device := range devicesOf(m.Devices) {
		if reason := capability.Uncapturable(device, ""); reason != "" {
			diags.AddAttributeError(path.Root("devices").AtMapKey(name), "Device cannot be captured", fmt.Sprintf(
				"The memory of a machine with the device %q cannot be captured: %s. Remove the device, or leave checkpointable out.", name, reason))
		}
	}
	return diags
}

// validateNames refuses a device of the name of a network interface.
func (m *machineModel) validateNames() diag.Diagnostics {
	var diags diag.Diagnostics
	for name := range m.Networks.Elements() {
		if _, twice := m.Devices.Elements()[name]; twice {
			diags.AddAttributeError(path.Root("devices").AtMapKey(name), "Name used twice",
				fmt.Sprintf("%q is the name of one of the networks, too. LXD keeps both among the machine's devices, so each needs a name of its own.", name))
		}
	}
	return diags
}

// validateReady refuses conditions that can never hold.
func (m *machineModel) validateReady(ctx context.Context) diag.Diagnostics {
	ready, diags := readyOf(ctx, m.Ready)
	noNetwork := m.Networks.IsNull() && m.Devices.IsNull() && len(m.Profiles.Elements()) == 0 && !m.Profiles.IsUnknown()
	for name, asked := range map[string]bool{"address": ready.Address != "", "tcp_port": ready.TCPPort != 0} {
		if asked && noNetwork {
			diags.AddAttributeError(path.Root("ready").AtName(name), "Condition can never hold",
				"The machine has no network: it will have no address. Give it one in networks, or leave the condition out.")
		}
	}
	return diags
}

// replaceWithNetwork replaces a machine one of whose interfaces is on a network that is not known yet: the network may
// be about to be replaced, which it cannot be while the machine is on it. A new interface is no reason.
func replaceWithNetwork(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !req.StateValue.IsNull() && req.PlanValue.IsUnknown()
}
