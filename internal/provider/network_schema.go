// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

func (r *networkResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A network of the lab's own: a bridge on the host with DHCP, and DNS in which machines find each other by name. " +
			"Everything but its name changes in place.",
		Attributes: map[string]schema.Attribute{
			"id":      idAttribute("The name of the network, for references."),
			"project": projectAttribute(),
			"name": schema.StringAttribute{
				MarkdownDescription: "The name of the network, and of its bridge on the host. Changing it replaces the network.",
				Required:            true,
				Validators:          []validator.String{networkNameValidator()},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"ipv4_address": schema.StringAttribute{
				MarkdownDescription: "The bridge's own IPv4 address with the length of its prefix, such as `10.99.0.1/24`, or `none` for a network without IPv4. " +
					"Default: one that the daemon finds to be free when it makes the network.",
				Optional:      true,
				Computed:      true,
				Validators:    []validator.String{bridgeAddressValidator(4)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"ipv6_address": schema.StringAttribute{
				MarkdownDescription: "The same for IPv6, such as `fd42:99::1/64`, or `none`. Default: `none`.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(lab.NoAddress),
				Validators:          []validator.String{bridgeAddressValidator(6)},
			},
			"nat": schema.BoolAttribute{
				MarkdownDescription: "Whether machines reach beyond the host, under the host's address. Default: `true`.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(true),
			},
			"dns_domain": schema.StringAttribute{
				MarkdownDescription: "The domain of the machines' names. Default: the daemon's, which is `lxd`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(domainName, "must be a domain name, such as lab.example")},
			},
			"config": schema.MapAttribute{
				MarkdownDescription: "Further configuration in LXD's keys, such as `ipv4.dhcp.ranges`.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators: []validator.Map{ownKeysValidator("ipv4.address=ipv4_address", "ipv6.address=ipv6_address",
					"ipv4.nat=nat", "ipv6.nat=nat", "dns.domain=dns_domain")},
			},
			"description": schema.StringAttribute{MarkdownDescription: "A text for people.", Optional: true},
			"timeouts":    timeoutsAttribute(ctx),
		},
	}
}
