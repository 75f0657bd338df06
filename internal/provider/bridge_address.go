// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// bridgeAddress wants the address of a bridge: one host's within a subnet, with the length of its prefix, or "none".
type bridgeAddress struct{ version int }

func bridgeAddressValidator(version int) validator.String { return bridgeAddress{version} }

func (v bridgeAddress) example() string {
	if v.version == 4 {
		return "10.99.0.1/24"
	}
	return "fd42:99::1/64"
}

func (v bridgeAddress) Description(context.Context) string {
	return fmt.Sprintf("must be an IPv%d address with the length of its prefix, such as %s, or %q", v.version, v.example(), lab.NoAddress)
}

func (v bridgeAddress) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v bridgeAddress) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || req.ConfigValue.ValueString() == lab.NoAddress {
		return
	}
	refuse := func(text string) { resp.Diagnostics.AddAttributeError(req.Path, "Invalid address", text+".") }
	prefix, err := netip.ParsePrefix(req.ConfigValue.ValueString())
	switch {
	case err != nil || prefix.Addr().Is4() != (v.version == 4):
		refuse(fmt.Sprintf("%q %s", req.ConfigValue.ValueString(), v.Description(ctx)))
	case !v.roomFor(prefix):
		refuse(fmt.Sprintf("%s has no room for machines beside the bridge", prefix.Masked()))
	case prefix.Addr() == prefix.Masked().Addr():
		refuse(fmt.Sprintf("%s names the subnet itself: give the bridge's own address in it, such as %s/%d", prefix, prefix.Addr().Next(), prefix.Bits()))
	}
}

// roomFor says whether a subnet holds the bridge and at least one machine.
func (v bridgeAddress) roomFor(prefix netip.Prefix) bool {
	return prefix.Bits() <= prefix.Addr().BitLen()-2
}
