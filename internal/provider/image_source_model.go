// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"cmp"
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

type imageFileModel struct {
	Metadata types.String `tfsdk:"metadata"`
	Rootfs   types.String `tfsdk:"rootfs"`
	SHA256   types.String `tfsdk:"sha256"`
}

type imageRemoteModel struct {
	Server      types.String `tfsdk:"server"`
	Protocol    types.String `tfsdk:"protocol"`
	Alias       types.String `tfsdk:"alias"`
	Fingerprint types.String `tfsdk:"fingerprint"`
	Follow      types.Bool   `tfsdk:"follow"`
	Type        types.String `tfsdk:"type"`
	Certificate types.String `tfsdk:"certificate"`
}

type imagePublishModel struct {
	Source      types.String `tfsdk:"source"`
	Stop        types.Bool   `tfsdk:"stop"`
	Compression types.String `tfsdk:"compression"`
}

// allKnown says that an object and all that is in it are known.
func allKnown(object types.Object) bool {
	if object.IsUnknown() {
		return false
	}
	for _, value := range object.Attributes() {
		if value.IsUnknown() {
			return false
		}
	}
	return true
}

// file is the image's files as the verbs take them. Known says that all of it is known yet.
func (m *imageModel) file(ctx context.Context) (file lab.ImageFile, known bool, diags diag.Diagnostics) {
	var model imageFileModel
	diags = m.File.As(ctx, &model, lenient)
	file = lab.ImageFile{Metadata: model.Metadata.ValueString(), Rootfs: model.Rootfs.ValueString(), SHA256: model.SHA256.ValueString()}
	return file, allKnown(m.File), diags
}

// remote is the image's server as the verbs take it. Known says that all of it is known yet.
func (m *imageModel) remote(ctx context.Context) (remote lab.ImageRemote, known bool, diags diag.Diagnostics) {
	var model imageRemoteModel
	diags = m.Remote.As(ctx, &model, lenient)
	remote = lab.ImageRemote{
		Server: lxd.ImageServer{
			URL: model.Server.ValueString(), Protocol: cmp.Or(model.Protocol.ValueString(), defaultProtocol), Certificate: model.Certificate.ValueString(),
		},
		Fingerprint: model.Fingerprint.ValueString(), Alias: model.Alias.ValueString(), Type: cmp.Or(model.Type.ValueString(), defaultType),
	}
	return remote, allKnown(m.Remote), diags
}

// follows says whether a moved alias is to replace the image.
func (m *imageModel) follows() bool {
	follow, ok := m.Remote.Attributes()["follow"].(types.Bool)
	return ok && follow.ValueBool()
}

// source is what the image is made of; null where it is not made of a machine, or of one that is not needed any more.
func (m *imageModel) source() types.String {
	source, ok := m.Publish.Attributes()["source"].(types.String)
	if !ok {
		return types.StringNull()
	}
	return source
}

// errNoSource is an image that is to be made of nothing.
var errNoSource = errors.New("the image is not there, and is to be made of a machine: without a source there is none")

// publish is the making of the image as the verbs take it. Known says that all of it is known yet.
func (m *imageModel) publish(ctx context.Context) (publish *lab.ImagePublish, known bool, diags diag.Diagnostics) {
	var model imagePublishModel
	diags = m.Publish.As(ctx, &model, lenient)
	if !allKnown(m.Publish) || diags.HasError() {
		return nil, false, diags
	}
	source, err := lab.ParseSourceID(model.Source.ValueString())
	if model.Source.IsNull() {
		err = errNoSource
	}
	if err != nil {
		diags.AddAttributeError(path.Root("publish").AtName("source"), "Invalid source", sentence(err))
		return nil, true, diags
	}
	return &lab.ImagePublish{
		Source: source, Stop: model.Stop.ValueBool(), Compression: cmp.Or(model.Compression.ValueString(), lab.DefaultCompression),
	}, true, diags
}

// subject names the image before it has a fingerprint.
func (m *imageModel) subject(ctx context.Context) string {
	spec, _ := m.spec(ctx)
	switch {
	case spec.File != nil:
		return spec.File.Metadata
	case spec.Remote != nil:
		return cmp.Or(spec.Remote.Alias, spec.Remote.Fingerprint)
	case spec.Publish != nil && spec.Publish.Source.IsSnapshot():
		return spec.Publish.Source.Machine.Name + "/" + spec.Publish.Source.Snapshot.Name
	case spec.Publish != nil:
		return spec.Publish.Source.Machine.Name
	default:
		return ""
	}
}
