// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestOwnKeys(t *testing.T) {
	t.Parallel()
	validate := func(value types.Map) map[string]string {
		var resp validator.MapResponse
		ownKeysValidator("size", "limits.cpu=cpus").ValidateMap(t.Context(), validator.MapRequest{Path: path.Root("config"), ConfigValue: value}, &resp)
		found := map[string]string{}
		for _, one := range resp.Diagnostics {
			at, ok := one.(diag.DiagnosticWithPath)
			if !ok {
				t.Fatalf("%v is at no attribute", one)
			}
			found[at.Path().String()] = one.Detail()
		}
		return found
	}
	got := validate(types.MapValueMust(types.StringType, map[string]attr.Value{
		"size": types.StringValue("1GiB"), "limits.cpu": types.StringUnknown(), "volatile.x": types.StringValue(""),
		"user.lab.id": types.StringValue(""), "image.os": types.StringNull(), "user.mine": types.StringValue(""), "limits.cpu.allowance": types.StringValue("50%"),
	}))
	want := map[string]string{
		`config["size"]`:        "Use the argument `size` in the place of the key \"size\".",
		`config["limits.cpu"]`:  "Use the argument `cpus` in the place of the key \"limits.cpu\".",
		`config["volatile.x"]`:  `The daemon or this provider keeps the key "volatile.x".`,
		`config["user.lab.id"]`: `The daemon or this provider keeps the key "user.lab.id".`,
		`config["image.os"]`:    `The daemon or this provider keeps the key "image.os".`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, value := range []types.Map{types.MapNull(types.StringType), types.MapUnknown(types.StringType)} {
		if got := validate(value); len(got) > 0 {
			t.Errorf("%s: %v", value, got)
		}
	}
}
