// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type machineModel struct {
	ID             types.String   `tfsdk:"id"`
	Project        types.String   `tfsdk:"project"`
	Name           types.String   `tfsdk:"name"`
	Type           types.String   `tfsdk:"type"`
	Image          types.String   `tfsdk:"image"`
	Pool           types.String   `tfsdk:"pool"`
	Target         types.String   `tfsdk:"target"`
	Description    types.String   `tfsdk:"description"`
	CPUs           types.Int64    `tfsdk:"cpus"`
	Memory         sizeValue      `tfsdk:"memory"`
	Disk           sizeValue      `tfsdk:"disk"`
	Networks       types.Map      `tfsdk:"networks"`
	Devices        types.Map      `tfsdk:"devices"`
	Profiles       types.List     `tfsdk:"profiles"`
	Config         types.Map      `tfsdk:"config"`
	CloudInit      types.Object   `tfsdk:"cloud_init"`
	Files          types.Map      `tfsdk:"files"`
	Setup          types.List     `tfsdk:"setup"`
	Ready          types.Object   `tfsdk:"ready"`
	Running        types.Bool     `tfsdk:"running"`
	Checkpointable types.Bool     `tfsdk:"checkpointable"`
	AllowRestart   types.Bool     `tfsdk:"allow_restart"`
	Location       types.String   `tfsdk:"location"`
	IPv4Address    types.String   `tfsdk:"ipv4_address"`
	IPv6Address    types.String   `tfsdk:"ipv6_address"`
	Timings        types.Object   `tfsdk:"timings"`
	Timeouts       timeouts.Value `tfsdk:"timeouts"`
}

type nicModel struct {
	Network     types.String `tfsdk:"network"`
	IPv4Address types.String `tfsdk:"ipv4_address"`
	IPv6Address types.String `tfsdk:"ipv6_address"`
	MACAddress  types.String `tfsdk:"mac_address"`
}

var nicTypes = map[string]attr.Type{
	"network": types.StringType, "ipv4_address": types.StringType, "ipv6_address": types.StringType, "mac_address": types.StringType,
}

type cloudInitModel struct {
	UserData          types.String `tfsdk:"user_data"`
	UserDataWO        types.String `tfsdk:"user_data_wo"`
	UserDataWOVersion types.Int64  `tfsdk:"user_data_wo_version"`
	NetworkConfig     types.String `tfsdk:"network_config"`
	VendorData        types.String `tfsdk:"vendor_data"`
}

type fileModel struct {
	Content          types.String `tfsdk:"content"`
	ContentBase64    types.String `tfsdk:"content_base64"`
	ContentWO        types.String `tfsdk:"content_wo"`
	ContentWOVersion types.Int64  `tfsdk:"content_wo_version"`
	Source           types.String `tfsdk:"source"`
	SourceSHA256     types.String `tfsdk:"source_sha256"`
	Mode             types.String `tfsdk:"mode"`
	UID              types.Int64  `tfsdk:"uid"`
	GID              types.Int64  `tfsdk:"gid"`
}

type setupModel struct {
	Command     []string          `tfsdk:"command"`
	Environment map[string]string `tfsdk:"environment"`
	Directory   types.String      `tfsdk:"directory"`
}

type readyModel struct {
	Command   []string     `tfsdk:"command"`
	Systemd   types.Bool   `tfsdk:"systemd"`
	CloudInit types.Bool   `tfsdk:"cloud_init"`
	Address   types.String `tfsdk:"address"`
	TCPPort   types.Int64  `tfsdk:"tcp_port"`
}

// show takes over what the daemon says of the machine. What only we know (how it was prepared, how long that took)
// stays.
func (m *machineModel) show(ctx context.Context, machine *lab.Machine) {
	m.ID = types.StringValue(machine.ID.String())
	m.Project = types.StringValue(machine.ID.Project)
	m.Name = types.StringValue(machine.Name)
	m.Type = types.StringValue(machine.Type)
	m.Image = textOrNull(machine.Image)
	m.Pool = textOrNull(machine.Pool)
	m.Description = textLike(m.Description, machine.Description)
	m.CPUs = types.Int64Null()
	if machine.CPUs > 0 {
		m.CPUs = types.Int64Value(machine.CPUs)
	}
	m.Memory, m.Disk = newSize(machine.Memory), newSize(machine.Disk)
	m.Networks = networksLike(m.Networks, machine.Networks)
	m.Devices = devicesLike(m.Devices, machine.Devices)
	m.Profiles, _ = types.ListValueFrom(ctx, types.StringType, machine.Profiles) // texts always convert
	m.Config = mapLike(m.Config, machine.Config)
	m.Running = types.BoolValue(machine.Running)
	m.Checkpointable = types.BoolValue(machine.Checkpointable)
	m.Location = textOrNull(machine.Location)
	m.IPv4Address = addressLike(m.IPv4Address, machine.Addresses.IPv4, machine.Addresses.All)
	m.IPv6Address = addressLike(m.IPv6Address, machine.Addresses.IPv6, machine.Addresses.All)
}

// replaces says whether a plan replaces the machine. The framework tells it to nobody before it tells Terraform.
func (m *machineModel) replaces(state *machineModel, imported bool) bool {
	for _, pair := range [][2]attr.Value{
		{m.Project, state.Project}, {m.Name, state.Name}, {m.Type, state.Type}, {m.Image, state.Image}, {m.Pool, state.Pool}, {m.Target, state.Target},
	} {
		if !pair[0].Equal(pair[1]) {
			return true
		}
	}
	return !imported && (!m.CloudInit.Equal(state.CloudInit) || !m.Files.Equal(state.Files) || !m.Setup.Equal(state.Setup))
}

// addressLike keeps an address that the machine still has, and one of a machine that has none just now. One that was
// never seen is left at that: it is recorded by the operations that make a machine usable, so that plans are quiet.
func addressLike(known types.String, first string, all []string) types.String {
	if known.IsUnknown() {
		return textOrNull(first)
	}
	if known.IsNull() || first == "" {
		return known
	}
	for _, address := range all {
		if address == known.ValueString() {
			return known
		}
	}
	return types.StringValue(first)
}

// keepAddresses keeps addresses that were planned to stay: an update must end as it was planned, and a read tells of
// one that moved.
func (m *machineModel) keepAddresses(ipv4, ipv6 types.String) {
	if !ipv4.IsUnknown() {
		m.IPv4Address = ipv4
	}
	if !ipv6.IsUnknown() {
		m.IPv6Address = ipv6
	}
}

// networksLike are network interfaces that the daemon gave. Where there are none, it is null or empty as declared.
func networksLike(declared types.Map, live map[string]lab.NIC) types.Map {
	object := types.ObjectType{AttrTypes: nicTypes}
	if len(live) == 0 && (declared.IsNull() || declared.IsUnknown()) {
		return types.MapNull(object)
	}
	values := map[string]attr.Value{}
	for name, nic := range live {
		values[name] = types.ObjectValueMust(nicTypes, map[string]attr.Value{
			"network": types.StringValue(nic.Network), "ipv4_address": textOrNull(nic.IPv4Address),
			"ipv6_address": textOrNull(nic.IPv6Address), "mac_address": textOrNull(nic.HWAddr),
		})
	}
	return types.MapValueMust(object, values)
}

// devicesLike are devices that the daemon gave. Where there are none, it is null or empty as declared.
func devicesLike(declared types.Map, live map[string]map[string]string) types.Map {
	element := types.MapType{ElemType: types.StringType}
	if len(live) == 0 && (declared.IsNull() || declared.IsUnknown()) {
		return types.MapNull(element)
	}
	values := map[string]attr.Value{}
	for name, device := range live {
		values[name] = mapLike(types.MapValueMust(types.StringType, nil), device)
	}
	return types.MapValueMust(element, values)
}
