// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// defaultTimeout is for what has no reason to take longer on any host; the timeouts argument changes it.
const defaultTimeout = 10 * time.Minute

// idAttribute is the id that references to an object carry. It is unknown while the object is being replaced, so that
// what stands on it is replaced in the same apply.
func idAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: description,
		Computed:            true,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

// projectAttribute is the LXD project of an object.
func projectAttribute() schema.StringAttribute {
	return schema.StringAttribute{
		MarkdownDescription: "The LXD project that it is in. Default: that of the provider block. Changing it replaces the object.",
		Optional:            true,
		Computed:            true,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()},
	}
}

// timeoutsAttribute bounds the work on an object.
func timeoutsAttribute(ctx context.Context) schema.Attribute {
	return timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, CreateDescription: timeoutText("create"),
		Read: true, ReadDescription: timeoutText("read"),
		Update: true, UpdateDescription: timeoutText("update"),
		Delete: true, DeleteDescription: timeoutText("delete"),
	})
}

func timeoutText(verb string) string {
	return fmt.Sprintf("How long to %s may take, such as `90s` or `15m`. Every wait inside obeys it. Default: `%s`.", verb, shortDuration(defaultTimeout))
}

func shortDuration(d time.Duration) string { return fmt.Sprintf("%.0fm", d.Minutes()) }

// deadline bounds a context by a timeout of the configuration.
func deadline(ctx context.Context, of func(context.Context, time.Duration) (time.Duration, diag.Diagnostics), diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	limit, problems := of(ctx, defaultTimeout)
	diags.Append(problems...)
	if limit <= 0 {
		limit = defaultTimeout
	}
	return context.WithTimeout(ctx, limit)
}

// millisecondsAttribute is one duration or moment of a timings attribute.
func millisecondsAttribute(description string) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description + " In milliseconds.", Computed: true}
}

// timingsAttribute holds durations. Only the operation that measured them writes them, so a plan never changes them.
func timingsAttribute(parts map[string]string) schema.SingleNestedAttribute {
	attributes := map[string]schema.Attribute{}
	for name, description := range parts {
		attributes[name] = millisecondsAttribute(description)
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How long the steps took, as measured by the operation that did them.",
		Computed:            true,
		Attributes:          attributes,
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
	}
}

// timingsValue is the value of a timings attribute: what was measured, and null for what did not happen.
func timingsValue(parts map[string]string, measured map[string]int64) types.Object {
	attributeTypes, values := map[string]attr.Type{}, map[string]attr.Value{}
	for name := range parts {
		attributeTypes[name] = types.Int64Type
		values[name] = types.Int64Null()
		if ms, ok := measured[name]; ok && ms > 0 {
			values[name] = types.Int64Value(ms)
		}
	}
	return types.ObjectValueMust(attributeTypes, values)
}

// timingsNull is the value where nothing was measured, as after an import.
func timingsNull(parts map[string]string) types.Object {
	attributeTypes := map[string]attr.Type{}
	for name := range parts {
		attributeTypes[name] = types.Int64Type
	}
	return types.ObjectNull(attributeTypes)
}

// timingsWith is a timings attribute in which an update measured some parts anew.
func timingsWith(before types.Object, parts map[string]string, measured map[string]int64) types.Object {
	known := map[string]int64{}
	for name, value := range before.Attributes() {
		if ms, ok := value.(types.Int64); ok && !ms.IsNull() && !ms.IsUnknown() {
			known[name] = ms.ValueInt64()
		}
	}
	maps.Copy(known, measured)
	return timingsValue(parts, known)
}

// replan makes some parts of a timings attribute unknown, since the planned update measures them anew.
func replan(ctx context.Context, resp *resource.ModifyPlanResponse, timings types.Object, parts ...string) {
	if timings.IsNull() || timings.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("timings"), types.ObjectUnknown(timings.AttributeTypes(ctx)))...)
		return
	}
	values := maps.Clone(timings.Attributes())
	for _, part := range parts {
		values[part] = types.Int64Unknown()
	}
	changed, diags := types.ObjectValue(timings.AttributeTypes(ctx), values)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("timings"), changed)...)
}

// identityModel is what identifies an object on its daemon.
type identityModel struct {
	Project types.String `tfsdk:"project"`
	Name    types.String `tfsdk:"name"`
}

func identitySchema(name string) identityschema.Schema {
	return identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"project": identityschema.StringAttribute{OptionalForImport: true, Description: "The LXD project; the provider's by default."},
		"name":    identityschema.StringAttribute{RequiredForImport: true, Description: name},
	}}
}

// setIdentity keeps what identifies an object. Read does so before anything else: a read that finds the object gone
// must have set it, too.
func setIdentity(ctx context.Context, identity *tfsdk.ResourceIdentity, project, name types.String) diag.Diagnostics {
	if identity == nil {
		return nil
	}
	return identity.Set(ctx, identityModel{Project: project, Name: name})
}

// importNamed starts the import of an object that a name in a project identifies: by an id or by identity. Read does
// the rest.
func (o *object) importNamed(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse, thing string) {
	var asked importName
	if req.ID != "" {
		parsed, err := parseImportName(req.ID, thing)
		if err != nil {
			resp.Diagnostics.AddError(fmt.Sprintf("Unable to %s %s %q", verbImport, thing, req.ID), sentence(err))
			return
		}
		asked = parsed
	} else {
		var identity identityModel
		resp.Diagnostics.Append(req.Identity.Get(ctx, &identity)...)
		asked = importName{project: identity.Project.ValueString(), name: identity.Name.ValueString()}
	}
	l, diags := o.openIn(ctx, asked.project)
	resp.Diagnostics.Append(diags...)
	if l == nil || resp.Diagnostics.HasError() {
		return
	}
	project, name := types.StringValue(l.Daemon().Project()), types.StringValue(asked.name)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("project"), project)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), name)...)
	resp.Diagnostics.Append(setIdentity(ctx, resp.Identity, project, name)...)
}

// textOrNull is a text that the daemon gave; empty is null.
func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// textLike is a text that the daemon gave. Where it is empty, it is null or empty as it was declared.
func textLike(declared types.String, live string) types.String {
	if live == "" && (declared.IsNull() || declared.IsUnknown()) {
		return types.StringNull()
	}
	return types.StringValue(live)
}

// mapLike is a map that the daemon gave. Where it is empty, it is null or empty as it was declared.
func mapLike(declared types.Map, live map[string]string) types.Map {
	if len(live) == 0 && (declared.IsNull() || declared.IsUnknown()) {
		return types.MapNull(types.StringType)
	}
	values := map[string]attr.Value{}
	for key, value := range live {
		values[key] = types.StringValue(value)
	}
	return types.MapValueMust(types.StringType, values)
}

// stringsOf reads a map of texts; null and unknown values are left out.
func stringsOf(value types.Map) map[string]string {
	out := map[string]string{}
	for key, element := range value.Elements() {
		if text, ok := element.(types.String); ok && !text.IsNull() && !text.IsUnknown() {
			out[key] = text.ValueString()
		}
	}
	return out
}
