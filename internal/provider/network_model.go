// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type networkModel struct {
	ID          types.String   `tfsdk:"id"`
	Project     types.String   `tfsdk:"project"`
	Name        types.String   `tfsdk:"name"`
	IPv4Address types.String   `tfsdk:"ipv4_address"`
	IPv6Address types.String   `tfsdk:"ipv6_address"`
	NAT         types.Bool     `tfsdk:"nat"`
	DNSDomain   types.String   `tfsdk:"dns_domain"`
	Config      types.Map      `tfsdk:"config"`
	Description types.String   `tfsdk:"description"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

// spec is the network as the verbs take it.
func (m *networkModel) spec() lab.NetworkSpec {
	return lab.NetworkSpec{
		Name: m.Name.ValueString(), Description: m.Description.ValueString(),
		IPv4Address: m.IPv4Address.ValueString(), IPv6Address: m.IPv6Address.ValueString(),
		NAT: m.NAT.ValueBool(), DNSDomain: m.DNSDomain.ValueString(), Config: stringsOf(m.Config),
	}
}

// show takes over what the daemon says of the network.
func (m *networkModel) show(project string, network *lab.Network) {
	m.ID = types.StringValue(network.Name)
	m.Project = types.StringValue(project)
	m.Name = types.StringValue(network.Name)
	m.IPv4Address = types.StringValue(network.IPv4Address)
	m.IPv6Address = types.StringValue(network.IPv6Address)
	if network.HasAddress() || m.NAT.IsNull() {
		m.NAT = types.BoolValue(network.NAT)
	} // else there is nothing to translate, and the daemon keeps no record of what was declared
	m.DNSDomain = textLike(m.DNSDomain, network.DNSDomain)
	m.Config = mapLike(m.Config, network.Config)
	m.Description = textLike(m.Description, network.Description)
}
