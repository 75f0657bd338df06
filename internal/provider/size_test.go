// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestSizesAreEqualInAnySpelling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"1GiB", "1024MiB", true},
		{"1073741824", "1GiB", true},
		{"1073741824B", "1GiB", true},
		{"1GB", "1000MB", true},
		{"1GB", "1GiB", false},
		{"1GiB", "2GiB", false},
		{"1GiB", "much", false},
		{"much", "much", false}, // nothing is known of what is no size
	} {
		got, diags := newSize(test.a).StringSemanticEquals(t.Context(), newSize(test.b))
		if got != test.want || diags.HasError() {
			t.Errorf("%s and %s: equal is %t with %v, want %t", test.a, test.b, got, diags, test.want)
		}
	}
	if equal, _ := newSize("1GiB").StringSemanticEquals(t.Context(), basetypes.NewStringValue("1GiB")); equal {
		t.Error("a size equals a text")
	}
}

func TestSizesAreValidated(t *testing.T) {
	t.Parallel()
	for size, good := range map[string]bool{
		"512MiB": true, "20GiB": true, "1GB": true, "1048576": true,
		"512 MiB": false, "512M": false, "512mib": false, "-1GiB": false, "1.5GiB": false, "0": false, "GiB": false, "9999999999GiB": false, " 1GiB": false,
	} {
		var resp xattr.ValidateAttributeResponse
		newSize(size).ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("size")}, &resp)
		if resp.Diagnostics.HasError() == good {
			t.Errorf("%q: good is %t, want %t: %v", size, !good, good, resp.Diagnostics)
		}
	}
	for _, value := range []basetypes.StringValue{basetypes.NewStringNull(), basetypes.NewStringUnknown()} {
		var resp xattr.ValidateAttributeResponse
		sizeValue{StringValue: value}.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("size")}, &resp)
		if resp.Diagnostics.HasError() {
			t.Errorf("%s: %v", value, resp.Diagnostics)
		}
	}
}

func TestSizeTypeKeepsNullAndUnknown(t *testing.T) {
	t.Parallel()
	for _, in := range []any{nil, tftypes.UnknownValue, "1GiB"} {
		value, err := sizeType{}.ValueFromTerraform(t.Context(), tftypes.NewValue(tftypes.String, in))
		if err != nil {
			t.Fatal(err)
		}
		out, err := value.ToTerraformValue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := tftypes.NewValue(tftypes.String, in); !out.Equal(want) {
			t.Errorf("%s came back as %s", want, out)
		}
		if !value.Type(t.Context()).Equal(sizeType{}) {
			t.Errorf("%s is of type %s", value, value.Type(t.Context()))
		}
	}
	if value := newSize(""); !value.IsNull() {
		t.Errorf("no size is %s, want null", value)
	}
}
