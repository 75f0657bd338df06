// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// lenient reads values that may be null or unknown where they are of no use yet, at plan.
var lenient = basetypes.ObjectAsOptions{UnhandledNullAsEmpty: true, UnhandledUnknownAsEmpty: true}

// spec is the machine as the verbs take it. Values that are not known yet are left out, which is good enough to judge
// a plan; at apply there are none.
func (m *machineModel) spec(ctx context.Context) (lab.MachineSpec, diag.Diagnostics) {
	var diags diag.Diagnostics
	spec := lab.MachineSpec{
		Name: m.Name.ValueString(), Type: m.Type.ValueString(), Description: m.Description.ValueString(),
		Image: m.Image.ValueString(), Pool: m.Pool.ValueString(), Target: m.Target.ValueString(),
		CPUs: m.CPUs.ValueInt64(), Memory: m.Memory.ValueString(), Disk: m.Disk.ValueString(),
		Config: stringsOf(m.Config), Devices: devicesOf(m.Devices), Networks: map[string]lab.NIC{},
		Running: m.Running.ValueBool(), Checkpointable: m.Checkpointable.ValueBool(), AllowRestart: m.AllowRestart.ValueBool(),
	}
	for _, profile := range m.Profiles.Elements() {
		if text, ok := profile.(types.String); ok {
			spec.Profiles = append(spec.Profiles, text.ValueString())
		}
	}
	for name, value := range m.Networks.Elements() {
		object, ok := value.(types.Object)
		if !ok {
			continue
		}
		var nic nicModel
		diags.Append(object.As(ctx, &nic, lenient)...)
		spec.Networks[name] = lab.NIC{
			Network: nic.Network.ValueString(), IPv4Address: nic.IPv4Address.ValueString(),
			IPv6Address: nic.IPv6Address.ValueString(), HWAddr: nic.MACAddress.ValueString(),
		}
	}
	ready, problems := readyOf(ctx, m.Ready)
	diags.Append(problems...)
	spec.Ready = ready
	return spec, diags
}

// prepareFrom adds how the machine is to be prepared. It is read from the configuration, since what is write-only is
// in no plan and no state.
func (m *machineModel) prepareFrom(ctx context.Context, spec *lab.MachineSpec) diag.Diagnostics {
	var diags diag.Diagnostics
	if !m.CloudInit.IsNull() {
		var cloudInit cloudInitModel
		diags.Append(m.CloudInit.As(ctx, &cloudInit, basetypes.ObjectAsOptions{})...)
		spec.CloudInit = lab.CloudInit{
			UserData:      cloudInit.UserData.ValueString() + cloudInit.UserDataWO.ValueString(), // one of them is null
			NetworkConfig: cloudInit.NetworkConfig.ValueString(), VendorData: cloudInit.VendorData.ValueString(),
		}
	}
	files := map[string]fileModel{}
	diags.Append(m.Files.ElementsAs(ctx, &files, true)...)
	spec.Files = map[string]lab.File{}
	for name, file := range files {
		spec.Files[name] = file.file()
	}
	var setup []setupModel
	diags.Append(m.Setup.ElementsAs(ctx, &setup, true)...)
	for _, command := range setup {
		spec.Setup = append(spec.Setup, lab.Setup{Command: command.Command, Environment: command.Environment, Directory: command.Directory.ValueString()})
	}
	return diags
}

func (f *fileModel) file() lab.File {
	file := lab.File{
		Content: f.Content.ValueString() + f.ContentWO.ValueString(), // one of them is null
		Source:  f.Source.ValueString(), Mode: f.Mode.ValueString(), UID: f.UID.ValueInt64(), GID: f.GID.ValueInt64(),
	}
	if !f.ContentBase64.IsNull() {
		file.Content, file.Base64 = f.ContentBase64.ValueString(), true
	}
	return file
}

// readyOf reads a ready condition; null is the default one.
func readyOf(ctx context.Context, value types.Object) (lab.Ready, diag.Diagnostics) {
	if value.IsNull() || value.IsUnknown() {
		return lab.Ready{}, nil
	}
	var model readyModel
	diags := value.As(ctx, &model, lenient)
	return lab.Ready{
		Command: model.Command, Systemd: model.Systemd.ValueBool(), CloudInit: model.CloudInit.ValueBool(),
		Address: model.Address.ValueString(), TCPPort: model.TCPPort.ValueInt64(),
	}, diags
}

// showReady shows the ready condition that is recorded on a machine where it is not the one of the state: a reset that
// was killed half-way leaves that of the snapshot, and the next apply must know.
func (m *machineModel) showReady(ctx context.Context, machine *lab.Machine) diag.Diagnostics {
	known, diags := readyOf(ctx, m.Ready)
	if m.Ready.IsNull() || !machine.ReadyRecorded || reflect.DeepEqual(known, machine.Ready) {
		return diags
	}
	recorded := machine.Ready
	shown := readyModel{Command: recorded.Command, Address: textOrNull(recorded.Address)}
	if recorded.Systemd {
		shown.Systemd = types.BoolValue(true)
	}
	if recorded.CloudInit {
		shown.CloudInit = types.BoolValue(true)
	}
	if recorded.TCPPort != 0 {
		shown.TCPPort = types.Int64Value(recorded.TCPPort)
	}
	ready, problems := types.ObjectValueFrom(ctx, m.Ready.AttributeTypes(ctx), shown)
	m.Ready = ready
	return append(diags, problems...)
}

// devicesOf reads devices in LXD's form.
func devicesOf(value types.Map) map[string]map[string]string {
	devices := map[string]map[string]string{}
	for name, element := range value.Elements() {
		if device, ok := element.(types.Map); ok {
			devices[name] = stringsOf(device)
		}
	}
	return devices
}
