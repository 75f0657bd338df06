// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// deletion is the removal of an object, whatever it is.
type deletion struct {
	thing         string
	project, name types.String
	timeout       func(context.Context, time.Duration) (time.Duration, diag.Diagnostics)
	remove        func(context.Context, *lab.Lab) error
}

// delete removes an object from the daemon that it is on, which is always allowed: also on a degraded host.
func (o *object) delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, d deletion) {
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, d.timeout, &resp.Diagnostics)
	defer cancel()
	l, diags := o.openFor(ctx, req.Private, d.project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if err := d.remove(ctx, l); err != nil {
		resp.Diagnostics.Append(failure(verbDelete, d.thing, d.name.ValueString(), err))
	}
}
