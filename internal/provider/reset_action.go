// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

var (
	_ action.ActionWithConfigure  = (*resetAction)(nil)
	_ action.ActionWithModifyPlan = (*resetAction)(nil)
)

// resetAction is the reset as an action, for Terraform 1.14 and later: it keeps nothing in the state.
type resetAction struct{ object }

func newResetAction() action.Action { return &resetAction{} }

type resetActionModel struct {
	Snapshots   types.Map      `tfsdk:"snapshots"`
	Parallelism types.Int64    `tfsdk:"parallelism"`
	Ready       types.Object   `tfsdk:"ready"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

func (a *resetAction) Metadata(_ context.Context, req action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_reset"
}

func (a *resetAction) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Puts a scenario back: every machine to its snapshot, side by side, as one step, whenever it is invoked. It does what the resource " +
			"`lab_reset` does when its triggers change, and keeps nothing in the state. It needs Terraform 1.14.",
		Attributes: map[string]schema.Attribute{
			"snapshots": schema.MapAttribute{
				MarkdownDescription: resetSnapshotsText, ElementType: types.StringType, Required: true,
				Validators: []validator.Map{mapvalidator.SizeAtLeast(1)},
			},
			"parallelism": schema.Int64Attribute{MarkdownDescription: resetParallelismText, Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)}},
			"ready": schema.SingleNestedAttribute{
				MarkdownDescription: resetReadyText, Optional: true,
				Attributes: map[string]schema.Attribute{
					"command": schema.ListAttribute{
						MarkdownDescription: readyTexts["command"], ElementType: types.StringType, Optional: true,
						Validators: []validator.List{listvalidator.SizeAtLeast(1)},
					},
					"systemd":    schema.BoolAttribute{MarkdownDescription: readyTexts["systemd"], Optional: true},
					"cloud_init": schema.BoolAttribute{MarkdownDescription: readyTexts["cloud_init"], Optional: true},
					"address": schema.StringAttribute{
						MarkdownDescription: readyTexts["address"], Optional: true,
						Validators: []validator.String{stringvalidator.OneOf("ipv4", "ipv6")},
					},
					"tcp_port": schema.Int64Attribute{
						MarkdownDescription: readyTexts["tcp_port"], Optional: true,
						Validators: []validator.Int64{int64validator.Between(1, 65535)},
					},
				},
				Validators: []validator.Object{someCondition()},
			},
			"timeouts": timeouts.AttributesWithOpts(ctx, timeouts.Opts{InvokeDescription: timeoutText("invoke")}),
		},
	}
}

// Configure takes over the session, as every resource does.
func (a *resetAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.take(req.ProviderData, &resp.Diagnostics)
}

// resource gives the arguments as those of the resource, which are the same.
func (m *resetActionModel) resource() *resetModel {
	return &resetModel{Snapshots: m.Snapshots, Parallelism: m.Parallelism, Ready: m.Ready}
}

// ModifyPlan refuses a reset when it is known that it cannot be done.
func (a *resetAction) ModifyPlan(ctx context.Context, req action.ModifyPlanRequest, resp *action.ModifyPlanResponse) {
	var config resetActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	spec, diags := config.resource().spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || a.judgedAtApply() || len(spec.Snapshots) == 0 {
		return
	}
	l, diags := a.openIn(ctx, "")
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if err := l.AdmitReset(ctx, spec); err != nil {
		resp.Diagnostics.Append(resetFailure(verbInvoke, thingReset, err)...)
	}
}

func (a *resetAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var config resetActionModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	spec, diags := config.resource().spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, config.Timeouts.Invoke, &resp.Diagnostics)
	defer cancel()
	l, diags := a.openIn(ctx, "")
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	result, err := l.Reset(ctx, spec, tell(resp.SendProgress))
	if err != nil {
		resp.Diagnostics.Append(resetFailure(verbInvoke, thingReset, err)...)
		return
	}
	resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf(
		"all %d machines restored after %d ms, usable after %d ms", len(result.Machines), result.RestoreMS, result.UsableMS)})
}

// tell sends every step of every machine to Terraform, one at a time.
func tell(send func(action.InvokeProgressEvent)) lab.Progress {
	var mu sync.Mutex
	return func(key, step string) {
		mu.Lock()
		defer mu.Unlock()
		send(action.InvokeProgressEvent{Message: key + ": " + step})
	}
}
