// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
)

// importedKey is where private state keeps that an object was imported and has not been applied since: the daemon does
// not know how it was prepared, so what is declared then is taken over without replacing it.
const importedKey = "imported"

// preparedText describes when a change of the preparation replaces a machine.
const preparedText = "replaces the machine, unless it was just imported"

// justImported says whether an object was imported and not applied since.
func justImported(ctx context.Context, private privateReader) bool {
	mark, diags := private.GetKey(ctx, importedKey)
	return !diags.HasError() && string(mark) == "true"
}

func preparedList(ctx context.Context, req planmodifier.ListRequest, resp *listplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !justImported(ctx, req.Private)
}

func preparedMap(ctx context.Context, req planmodifier.MapRequest, resp *mapplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !justImported(ctx, req.Private)
}

func preparedObject(ctx context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !justImported(ctx, req.Private)
}

func preparedString(ctx context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
	resp.RequiresReplace = !justImported(ctx, req.Private)
}
