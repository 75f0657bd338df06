// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// countOf wants a number of an object's attributes to be set.
type countOf struct {
	names       []string
	exactlyOne  bool
	description string
}

// atLeastOneOf wants one or more of an object's attributes to be set.
func atLeastOneOf(names ...string) validator.Object {
	return countOf{names: names, description: "at least one of " + strings.Join(names, ", ") + " must be set"}
}

// exactlyOneOf wants one of an object's attributes to be set.
func exactlyOneOf(names ...string) validator.Object {
	return countOf{names: names, exactlyOne: true, description: "exactly one of " + strings.Join(names, ", ") + " must be set"}
}

func (v countOf) Description(context.Context) string             { return v.description }
func (v countOf) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v countOf) ValidateObject(_ context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	set, unknown := 0, false
	for _, name := range v.names {
		value, ok := req.ConfigValue.Attributes()[name]
		switch {
		case !ok || value.IsNull():
		case value.IsUnknown():
			unknown = true
		default:
			set++
		}
	}
	if (set == 0 && !unknown) || (v.exactlyOne && set > 1) {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid combination of arguments", strings.ToUpper(v.description[:1])+v.description[1:]+".")
	}
}

// ipFamily wants an IP address of a family.
type ipFamily struct{ version int }

func ipValidator(version int) validator.String { return ipFamily{version} }

func (v ipFamily) Description(context.Context) string {
	return fmt.Sprintf("must be an IPv%d address", v.version)
}

func (v ipFamily) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v ipFamily) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	address, err := netip.ParseAddr(req.ConfigValue.ValueString())
	if err != nil || address.Is4() != (v.version == 4) {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid address", fmt.Sprintf("%q %s.", req.ConfigValue.ValueString(), v.Description(ctx)))
	}
}
