// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

var (
	_ resource.ResourceWithConfigure   = (*machineResource)(nil)
	_ resource.ResourceWithIdentity    = (*machineResource)(nil)
	_ resource.ResourceWithImportState = (*machineResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*machineResource)(nil)
)

const thingMachine = "machine"

type machineResource struct{ object }

func newMachineResource() resource.Resource { return &machineResource{} }

func (r *machineResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_machine"
}

func (r *machineResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema("The name of the machine.")
}

// ModifyPlan refuses a machine that the host cannot run, or not on that pool, and a change that needs a restart which
// is not allowed.
func (r *machineResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || req.Plan.Raw.Equal(req.State.Raw) {
		return // destroying is always allowed, and so is what changes nothing
	}
	var plan machineModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	update := !req.State.Raw.IsNull()
	if update {
		r.planUpdate(ctx, req, resp, &plan, spec)
	}
	if resp.Diagnostics.HasError() || r.judgedAtApply() {
		return
	}
	l, diags := r.openIn(ctx, plan.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if update {
		resp.Diagnostics.Append(sameDaemon(ctx, req.Private, l.Daemon())...)
	}
	if plan.Project.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("project"), l.Daemon().Project())...)
	}
	if !plan.ID.IsNull() && !plan.ID.IsUnknown() {
		l.Checker().PlanMachine(plan.ID.ValueString(), capability.PlannedMachine{Checkpointable: spec.Checkpointable, Running: spec.Running})
	}
	if err := l.Checker().AdmitMachine(ctx, spec.Ask(false)); err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingMachine, spec.Name, err))
	}
}

// planUpdate judges a change in place by itself, without the host.
func (r *machineResource) planUpdate(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan *machineModel, now lab.MachineSpec) {
	var state machineModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	before, diags := state.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() || plan.replaces(&state, justImported(ctx, req.Private)) {
		return
	}
	resp.Diagnostics.Append(planInPlace(ctx, resp, before, now)...)
}

// planInPlace plans the addresses that new networks bring, and refuses a restart that is not allowed.
func planInPlace(ctx context.Context, resp *resource.ModifyPlanResponse, before, now lab.MachineSpec) diag.Diagnostics {
	var diags diag.Diagnostics
	if !maps.Equal(before.Networks, now.Networks) {
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("ipv4_address"), types.StringUnknown())...)
		diags.Append(resp.Plan.SetAttribute(ctx, path.Root("ipv6_address"), types.StringUnknown())...)
	}
	restart := lab.NeedsRestart(before, now)
	if before.Running && now.Running && len(restart) > 0 && !now.AllowRestart {
		diags.AddAttributeError(path.Root("allow_restart"), fmt.Sprintf("Machine %q would have to be restarted", now.Name), fmt.Sprintf(
			"The change of %s takes effect only when the machine starts anew. Set allow_restart = true to have the machine restarted, or stop it with running = false.",
			strings.Join(restart, ", ")))
	}
	return diags
}

func (r *machineResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config machineModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	spec, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(config.prepareFrom(ctx, &spec)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Create, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openIn(ctx, plan.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	machine, timings, err := l.CreateMachine(ctx, spec)
	if err != nil {
		resp.Diagnostics.Append(failure(verbCreate, thingMachine, spec.Name, err))
	}
	if machine == nil {
		return
	}
	plan.show(ctx, machine)
	plan.Timings = timingsValue(machineTimings, map[string]int64{
		"create_ms": timings.CreateMS, "launch_ms": timings.LaunchMS, "usable_ms": timings.UsableMS, "setup_ms": timings.SetupMS,
	})
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *machineResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state machineModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, state.Project, state.Name)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, state.Timeouts.Read, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openFor(ctx, req.Private, state.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	if state.ID.IsNull() {
		r.readImported(ctx, l, &state, resp)
		return
	}
	id, err := lab.ParseMachineID(state.ID.ValueString())
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingMachine, state.Name.ValueString(), err))
		return
	}
	machine, err := l.RefreshMachine(ctx, id, stringsOf(state.Config))
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbRead, thingMachine, state.Name.ValueString(), err))
		return
	}
	state.show(ctx, machine)
	resp.Diagnostics.Append(state.showReady(ctx, machine)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// readImported reads a machine for the first time after an import, when only its name is known.
func (r *machineResource) readImported(ctx context.Context, l *lab.Lab, state *machineModel, resp *resource.ReadResponse) {
	machine, err := l.MachineByName(ctx, state.Name.ValueString())
	if errors.Is(err, lxd.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.Append(failure(verbImport, thingMachine, state.Name.ValueString(), err))
		return
	}
	state.IPv4Address, state.IPv6Address = types.StringUnknown(), types.StringUnknown()
	state.show(ctx, machine)
	state.AllowRestart = types.BoolValue(false)
	state.Timings = timingsNull(machineTimings)
	resp.Diagnostics.Append(remember(ctx, resp.Private, l.Daemon())...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("true"))...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, state.Project, state.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
}

func (r *machineResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state machineModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	now, diags := plan.spec(ctx)
	resp.Diagnostics.Append(diags...)
	before, diags := state.spec(ctx)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := deadline(ctx, plan.Timeouts.Update, &resp.Diagnostics)
	defer cancel()
	l, diags := r.openFor(ctx, req.Private, state.Project.ValueString())
	resp.Diagnostics.Append(diags...)
	if l == nil {
		return
	}
	id, err := lab.ParseMachineID(state.ID.ValueString())
	if err != nil {
		resp.Diagnostics.Append(failure(verbUpdate, thingMachine, now.Name, err))
		return
	}
	machine, err := l.UpdateMachine(ctx, id, before, now)
	failed := updateFailure(thingMachine, now.Name, err)
	resp.Diagnostics.Append(failed...)
	if machine == nil {
		return
	}
	ipv4, ipv6 := plan.IPv4Address, plan.IPv6Address
	plan.show(ctx, machine)
	plan.keepAddresses(ipv4, ipv6)
	if len(failed) > 0 && !failed.HasError() {
		plan.Running = types.BoolValue(true) // as it was planned; the next read tells what became of it
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, importedKey, []byte("false"))...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, plan.Project, plan.Name)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *machineResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state machineModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.deleteMachine(ctx, req, resp, thingMachine, &state)
}

// deleteMachine removes a machine, or what is one.
func (o *object) deleteMachine(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse, thing string, state *machineModel) {
	o.delete(ctx, req, resp, deletion{
		thing: thing, project: state.Project, name: state.Name, timeout: state.Timeouts.Delete,
		remove: func(ctx context.Context, l *lab.Lab) error {
			id, err := lab.ParseMachineID(state.ID.ValueString())
			if err != nil {
				return err
			}
			return l.DeleteMachine(ctx, id)
		},
	})
}

// updateFailure tells of an update that went wrong. A machine that could not be started is a warning: a reset of the same
// apply may be what it needs.
func updateFailure(thing, name string, err error) diag.Diagnostics {
	var diags diag.Diagnostics
	stopped, isStopped := errors.AsType[*lab.NotStartedError](err)
	switch {
	case isStopped:
		diags.AddWarning(fmt.Sprintf("Machine %q could not be started", name), sentence(stopped)+"\n\n"+
			"It is stopped. A reset in this apply may put it back to a state that boots; otherwise the next plan shows it as stopped. "+
			fmt.Sprintf("The daemon's log of it: lxc info --show-log %s", name))
	case err != nil:
		diags.Append(failure(verbUpdate, thing, name, err))
	}
	return diags
}

func (r *machineResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	r.importNamed(ctx, req, resp, thingMachine)
}
