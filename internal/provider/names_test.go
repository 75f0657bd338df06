// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// accepts says whether a validator takes a text.
func accepts(t *testing.T, v validator.String, text string) bool {
	t.Helper()
	var resp validator.StringResponse
	v.ValidateString(t.Context(), validator.StringRequest{Path: path.Root("x"), ConfigValue: types.StringValue(text)}, &resp)
	return !resp.Diagnostics.HasError()
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 63)
	for _, test := range []struct {
		thing     string
		validator validator.String
		good, bad []string
	}{
		{
			"machine", machineNameValidator(),
			[]string{"a", "node-a", "Node1", long},
			[]string{"", "1a", "-a", "a-", "a.b", "a_b", "a b", "ä", "a\n", long + "a"},
		},
		{
			"snapshot", snapshotNameValidator(),
			[]string{"clean", "0", "v1.2", "a_b-c", long},
			[]string{"", ".", "..", ".a", "-a", "a/b", "a%b", "a b", "ü", "a:b", "a\n", long + "a"},
		},
		{"pool", poolNameValidator(), []string{"lab", "1", "a.b"}, []string{"", "a/b", "-a", ".a", long + "a"}},
		{"network", networkNameValidator(), []string{"labnet", "ab", "a23456789012345"}, []string{"a", "a234567890123456", "a/b", "-a", "a b"}},
	} {
		for _, name := range test.good {
			if !accepts(t, test.validator, name) {
				t.Errorf("%s %q is refused", test.thing, name)
			}
		}
		for _, name := range test.bad {
			if accepts(t, test.validator, name) {
				t.Errorf("%s %q is accepted", test.thing, name)
			}
		}
	}
}

func TestBridgeAddresses(t *testing.T) {
	t.Parallel()
	for version, texts := range map[int]struct{ good, bad []string }{
		4: {
			[]string{"none", "10.99.0.1/24", "10.99.0.254/24", "192.168.1.1/30"},
			[]string{"", "auto", "10.99.0.1", "10.99.0.0/24", "10.99.0.1/31", "10.99.0.1/32", "10.99.0.1/33", "10.99.0.300/24", "fd42::1/64"},
		},
		6: {
			[]string{"none", "fd42:99::1/64", "fd42:99:0::1/64"},
			[]string{"", "auto", "fd42:99::1", "fd42:99::/64", "fd42:99::1/128", "10.99.0.1/24", "fe80::1%eth0/64"},
		},
	} {
		for _, text := range texts.good {
			if !accepts(t, bridgeAddressValidator(version), text) {
				t.Errorf("IPv%d %q is refused", version, text)
			}
		}
		for _, text := range texts.bad {
			if accepts(t, bridgeAddressValidator(version), text) {
				t.Errorf("IPv%d %q is accepted", version, text)
			}
		}
	}
}
