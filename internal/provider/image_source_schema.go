// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/boolvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// exactlyOneSource wants an image to come from one place.
func exactlyOneSource() validator.Object {
	return objectvalidator.ExactlyOneOf(path.MatchRoot("file"), path.MatchRoot("remote"), path.MatchRoot("publish"))
}

func fingerprintValidator() validator.String {
	return stringvalidator.RegexMatches(fingerprintForm, "must be 64 lower-case hexadecimal digits")
}

func imageFileAttribute() schema.SingleNestedAttribute {
	filled := stringvalidator.LengthAtLeast(1)
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Files of the host that Terraform runs on. Other contents, also under the same path, replace the image; the same contents under " +
			"another path do not. Files that are gone are no reason to do anything while the daemon has the image.",
		Optional:   true,
		Validators: []validator.Object{exactlyOneSource()},
		Attributes: map[string]schema.Attribute{
			"metadata": schema.StringAttribute{
				MarkdownDescription: "A unified image tarball, or the metadata tarball of an image in two files.",
				Required:            true,
				Validators:          []validator.String{filled},
			},
			"rootfs": schema.StringAttribute{
				MarkdownDescription: "The root file system of an image in two files: squashfs or a tarball for containers, qcow2 for virtual machines.",
				Optional:            true,
				Validators:          []validator.String{filled},
			},
			"sha256": schema.StringAttribute{
				MarkdownDescription: "What the files, one after the other, must hash to: the image's fingerprint. Files that do not are refused. " +
					"It also says what files will hold that the same apply makes.",
				Optional:   true,
				Validators: []validator.String{fingerprintValidator()},
			},
		},
	}
}

// What the arguments of remote are that are not given.
const (
	defaultProtocol = lxd.ProtocolSimpleStreams
	defaultType     = lab.TypeContainer
)

func imageRemoteAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "An image on a server, which the daemon downloads, once however many want it. It is replaced when these arguments come to name another image; " +
			"that the server has moved an alias on changes nothing, unless `follow` says so.",
		Optional:   true,
		Validators: []validator.Object{exactlyOneOf("alias", "fingerprint")},
		Attributes: map[string]schema.Attribute{
			"server": schema.StringAttribute{
				MarkdownDescription: "The server's address, such as `https://images.lxd.canonical.com` or `https://lxd.example.com:8443`.",
				Required:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(httpsForm, "must be an https:// address")},
			},
			"protocol": schema.StringAttribute{
				MarkdownDescription: "`simplestreams`, or `lxd` for another daemon, LXD or Incus, on which the image is public. Default: `simplestreams`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(lxd.ProtocolSimpleStreams, lxd.ProtocolLXD)},
			},
			"alias": schema.StringAttribute{
				MarkdownDescription: "A name that the server has for the image, such as `debian/12`. The host that Terraform runs on asks the server where it points: " +
					"once, when the image is created, so that every later apply has the same image.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"fingerprint": schema.StringAttribute{
				MarkdownDescription: "The full fingerprint of the image, in the place of an alias: this image and no other.",
				Optional:            true,
				Validators:          []validator.String{fingerprintValidator()},
			},
			"follow": schema.BoolAttribute{
				MarkdownDescription: "Whether every plan asks the server where the alias points, and replaces the image, with the machines that are made of it, when that is another one. Default: `false`.",
				Optional:            true,
				Validators:          []validator.Bool{boolvalidator.AlsoRequires(path.MatchRelative().AtParent().AtName("alias"))},
			},
			"type": schema.StringAttribute{
				MarkdownDescription: "What the image of the alias is for: `container` or `virtual-machine`. Default: `container`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(lab.TypeContainer, lab.TypeVirtualMachine)},
			},
			"certificate": schema.StringAttribute{
				MarkdownDescription: "The server's certificate, in PEM, where no authority that the hosts trust has signed it, as with most daemons (`lxc info` there shows it).",
				Optional:            true,
			},
		},
	}
}

func imagePublishAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "A machine or a snapshot to make the image of. The source stays as it is, and runs again if it ran. A container's machine id is left out of the image, " +
			"so that each machine of it gets one of its own; everything else of the disk is in it, such as the SSH keys of the host and what cloud-init has done. " +
			"Another source replaces the image, and so does a source that is replaced.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"source": schema.StringAttribute{
				MarkdownDescription: "The `id` of a `lab_snapshot`, or of a `lab_machine`. It may be null once the image is there, which then stays: " +
					"`one(lab_machine.golden[*].id)` lets a machine go that was only needed to make it.",
				Optional: true,
			},
			"stop": schema.BoolAttribute{
				MarkdownDescription: "Whether a machine that runs may be stopped, for as long as it takes to copy its disk on write; it is started again, and waited for, before the image is written. " +
					"Without, a running machine is refused. A snapshot needs none. Default: `false`.",
				Optional: true,
			},
			"compression": schema.StringAttribute{
				MarkdownDescription: "How the image is compressed: `none`, `gzip`, `zstd`, `xz`, `bzip2`, `lzma` or `squashfs`. All but `none` need their program on this daemon and on every one that gets the image. " +
					"Default: `none`, the fastest to make and to unpack; `zstd` makes it a third of the size in about the same time.",
				Optional:   true,
				Validators: []validator.String{stringvalidator.OneOf("none", "gzip", "zstd", "xz", "bzip2", "lzma", "squashfs")},
			},
		},
	}
}
