// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

type imageModel struct {
	ID          types.String   `tfsdk:"id"`
	Project     types.String   `tfsdk:"project"`
	File        types.Object   `tfsdk:"file"`
	Remote      types.Object   `tfsdk:"remote"`
	Publish     types.Object   `tfsdk:"publish"`
	Aliases     types.Set      `tfsdk:"aliases"`
	Properties  types.Map      `tfsdk:"properties"`
	Public      types.Bool     `tfsdk:"public"`
	ExpiresAt   types.String   `tfsdk:"expires_at"`
	Pools       types.Set      `tfsdk:"pools"`
	Fingerprint types.String   `tfsdk:"fingerprint"`
	SizeBytes   types.Int64    `tfsdk:"size_bytes"`
	Owned       types.Bool     `tfsdk:"owned"`
	Timings     types.Object   `tfsdk:"timings"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

// imageTimings are the parts of the timings attribute.
var imageTimings = map[string]string{
	"obtain_ms": "From the start of the work, reading files or copying a machine included, until the daemon had the image.",
	"unpack_ms": "From there until it was unpacked on all `pools`; null when there are none.",
}

// described is what an image has beside its contents, as the verbs take it.
func (m *imageModel) described() lab.ImageSpec {
	return lab.ImageSpec{
		Aliases: elementsOf(m.Aliases), Properties: stringsOf(m.Properties), Pools: elementsOf(m.Pools),
		Public: m.Public.ValueBoolPointer(), ExpiresAt: momentOf(m.ExpiresAt),
	}
}

// spec is the image as the verbs take it.
func (m *imageModel) spec(ctx context.Context) (lab.ImageSpec, diag.Diagnostics) {
	spec := m.described()
	switch {
	case !m.File.IsNull():
		file, _, diags := m.file(ctx)
		spec.File = &file
		return spec, diags
	case !m.Remote.IsNull():
		remote, _, diags := m.remote(ctx)
		spec.Remote = &remote
		return spec, diags
	default:
		publish, _, diags := m.publish(ctx)
		spec.Publish = publish
		return spec, diags
	}
}

// show takes over what the daemon says of the image. Aliases and properties that were not declared are somebody
// else's. Whose the image is and how long things took stay as they were found and measured.
func (m *imageModel) show(project string, image *lab.Image) {
	m.ID = types.StringValue(image.Fingerprint)
	m.Project = types.StringValue(project)
	m.Fingerprint = types.StringValue(image.Fingerprint)
	m.SizeBytes = types.Int64Value(image.SizeBytes)
	declared := elementsOf(m.Aliases)
	m.Aliases = setLike(m.Aliases, slices.DeleteFunc(slices.Clone(image.Aliases), func(alias string) bool { return !slices.Contains(declared, alias) }))
	m.Properties = mapLike(m.Properties, image.Properties)
	m.Pools = setLike(m.Pools, image.Pools)
	if !m.Public.IsNull() {
		m.Public = types.BoolValue(image.Public)
	}
	if !m.ExpiresAt.IsNull() && !momentOf(m.ExpiresAt).Equal(image.ExpiresAt) {
		m.ExpiresAt = types.StringNull()
		if !image.ExpiresAt.IsZero() {
			m.ExpiresAt = types.StringValue(image.ExpiresAt.Format(time.RFC3339))
		}
	}
}

// elementsOf reads a set of texts; null and unknown values are left out.
func elementsOf(value types.Set) []string {
	var out []string
	for _, element := range value.Elements() {
		if text, ok := element.(types.String); ok && !text.IsNull() && !text.IsUnknown() {
			out = append(out, text.ValueString())
		}
	}
	return out
}

// setLike is a set that the daemon gave. Where it is empty, it is null or empty as it was declared.
func setLike(declared types.Set, live []string) types.Set {
	if len(live) == 0 && (declared.IsNull() || declared.IsUnknown()) {
		return types.SetNull(types.StringType)
	}
	values := make([]attr.Value, 0, len(live))
	for _, text := range live {
		values = append(values, types.StringValue(text))
	}
	return types.SetValueMust(types.StringType, values)
}
