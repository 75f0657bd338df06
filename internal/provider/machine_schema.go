// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// machineTimings are the parts of the timings attribute.
var machineTimings = map[string]string{
	"create_ms": "From the start of the work until the machine existed.",
	"launch_ms": "From the start of the work until the daemon's call to start it returned. The machine is not usable then.",
	"usable_ms": "From the start of the work until it was usable: prepared, and its `ready` condition held.",
	"setup_ms":  "How long the `setup` commands took together.",
}

func (r *machineResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"id":       idAttribute("`project/name/uuid`: this incarnation of the machine, for references."),
		"project":  projectAttribute(),
		"timings":  timingsAttribute(machineTimings),
		"timeouts": timeoutsAttribute(ctx),
		"location": computedText("The cluster member that it is on; `none` on a daemon that stands alone."),
		"ipv4_address": computedText("Its first global IPv4 address, as it was seen when the machine became usable. " +
			"To be sure that there is one, set `ready = { address = \"ipv4\" }`."),
		"ipv6_address": computedText("The same for IPv6."),
	}
	for _, group := range []map[string]schema.Attribute{machineIdentityAttributes(), machineLimitAttributes(), machineDeviceAttributes(), machinePreparationAttributes(), machineLifeAttributes()} {
		maps.Copy(attributes, group)
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A machine that is usable when it is there: created, prepared, started, and waited for until its `ready` condition holds. " +
			"How it was prepared (`image`, `cloud_init`, `files`, `setup`) changes by replacing it, so that a snapshot never holds less than the state says; " +
			"limits, networks, devices and configuration change in place.",
		Attributes: attributes,
	}
}

func computedText(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}}
}

// machineIdentityAttributes are what a machine is; all but the description replace it.
func machineIdentityAttributes() map[string]schema.Attribute {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{
			MarkdownDescription: "The name of the machine, and its host name. Changing it replaces the machine.",
			Required:            true, Validators: []validator.String{machineNameValidator()}, PlanModifiers: replace,
		},
		"type": schema.StringAttribute{
			MarkdownDescription: "`container` or `virtual-machine`. Default: `container`. Changing it replaces the machine.",
			Optional:            true, Computed: true, Default: stringdefault.StaticString(lab.TypeContainer), PlanModifiers: replace,
			Validators: []validator.String{stringvalidator.OneOf(lab.TypeContainer, lab.TypeVirtualMachine)},
		},
		"image": schema.StringAttribute{
			MarkdownDescription: "The fingerprint of the image that it is made from, such as `lab_image.debian.fingerprint`. Changing it replaces the machine.",
			Required:            true, PlanModifiers: replace,
			Validators: []validator.String{stringvalidator.RegexMatches(fingerprintForm, "must be the full fingerprint of an image, 64 hexadecimal digits: refer to lab_image's fingerprint")},
		},
		"pool": schema.StringAttribute{
			MarkdownDescription: "The storage pool of its root disk: the `id` of a `lab_storage_pool`. Changing it replaces the machine.",
			Required:            true, PlanModifiers: replace,
		},
		"target": schema.StringAttribute{
			MarkdownDescription: "On a cluster: the member to put it on. Default: the daemon's choice. Changing it replaces the machine.",
			Optional:            true, PlanModifiers: replace,
		},
		"description": schema.StringAttribute{MarkdownDescription: "A text for people.", Optional: true},
	}
}

// machineLimitAttributes are what a machine may use, which changes in place.
func machineLimitAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cpus": schema.Int64Attribute{
			MarkdownDescription: "How many processors it may use. Default: all; of a virtual machine, one.", Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
		},
		"memory": schema.StringAttribute{
			CustomType: sizeType{}, Optional: true, PlanModifiers: []planmodifier.String{keepSize{}},
			MarkdownDescription: "How much memory it may use, such as `512MiB`. Default: all; of a virtual machine, 1GiB.",
		},
		"disk": schema.StringAttribute{
			CustomType: sizeType{}, Optional: true, PlanModifiers: []planmodifier.String{keepSize{}},
			MarkdownDescription: "How large its root disk may become, such as `4GiB`. Default: as large as the pool. On btrfs this turns quotas on for the whole pool, which makes snapshots slower.",
		},
	}
}

// machineDeviceAttributes are what is attached to a machine, which changes in place.
func machineDeviceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"networks": schema.MapNestedAttribute{
			MarkdownDescription: "Its network interfaces, by the name that they have in the machine, such as `eth0`.",
			Optional:            true,
			Validators:          []validator.Map{mapvalidator.KeysAre(stringvalidator.RegexMatches(networkName, "must be a name for a network interface: 2 to 15 letters and digits"))},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"network": schema.StringAttribute{
					MarkdownDescription: "The network that it is on: the `id` of a `lab_network`. When that is replaced, so is the machine.", Required: true,
					PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(replaceWithNetwork, "replaced with its network", "replaced with its network")},
				},
				"ipv4_address": schema.StringAttribute{MarkdownDescription: "An address that the network's DHCP keeps for it. Default: any.", Optional: true, Validators: []validator.String{ipValidator(4)}},
				"ipv6_address": schema.StringAttribute{MarkdownDescription: "The same for IPv6.", Optional: true, Validators: []validator.String{ipValidator(6)}},
				"mac_address": schema.StringAttribute{
					MarkdownDescription: "Its MAC address. Default: the daemon's choice.", Optional: true,
					Validators: []validator.String{stringvalidator.RegexMatches(macForm, "must be six pairs of lower-case hexadecimal digits with colons")},
				},
			}},
		},
		"devices": schema.MapAttribute{
			MarkdownDescription: "Further devices in LXD's own keys, by name, each with its `type`.",
			Optional:            true,
			ElementType:         types.MapType{ElemType: types.StringType},
			Validators: []validator.Map{mapvalidator.KeysAre(stringvalidator.NoneOf("root")), mapvalidator.ValueMapsAre(
				mapvalidator.KeysAre(stringvalidator.LengthAtLeast(1)))},
		},
		"profiles": schema.ListAttribute{
			MarkdownDescription: "Profiles to apply, in order. Default: none, not even the one named `default`.",
			ElementType:         types.StringType, Optional: true, Computed: true,
			Default: listdefault.StaticValue(types.ListValueMust(types.StringType, nil)),
		},
		"config": schema.MapAttribute{
			MarkdownDescription: "Further configuration in LXD's keys, such as `security.nesting`.",
			ElementType:         types.StringType, Optional: true,
			Validators: []validator.Map{ownKeysValidator("limits.cpu=cpus", "limits.memory=memory", "migration.stateful=checkpointable",
				"cloud-init.user-data=cloud_init", "cloud-init.network-config=cloud_init", "cloud-init.vendor-data=cloud_init")},
		},
	}
}

// machineLifeAttributes are when a machine runs and counts as usable.
func machineLifeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"ready": readyAttribute("When it counts as usable. All conditions that are given must hold. Default: a command runs on it. " +
			"In a virtual machine commands are run by LXD's agent, which its image must bring; without one, give `address` or `tcp_port` and nothing else."),
		"running": schema.BoolAttribute{
			MarkdownDescription: "Whether it runs. Default: `true`. One that was found stopped is started again, without waiting for `ready`.",
			Optional:            true, Computed: true, Default: booldefault.StaticBool(true),
		},
		"checkpointable": schema.BoolAttribute{
			MarkdownDescription: "Whether the memory of this virtual machine can be captured (`lab_snapshot`, `stateful`). It is then given room for that on its pool, which moves with `memory`; " +
				"on btrfs this turns quotas on for the whole pool. Devices whose state is the host's (PCI, GPU, USB, TPM, network cards), shared directories and second disks of the host " +
				"are refused beside it. Changing it restarts the machine. Default: `false`.",
			Optional: true, Computed: true, Default: booldefault.StaticBool(false),
		},
		"allow_restart": schema.BoolAttribute{
			MarkdownDescription: "Whether a change that takes effect only when the machine starts anew may restart it; otherwise such a plan is refused. Default: `false`.",
			Optional:            true, Computed: true, Default: booldefault.StaticBool(false),
		},
	}
}

// readyTexts describe the parts of a ready condition.
var readyTexts = map[string]string{
	"command":    "A command that returns 0, as a list of its words; no shell is involved.",
	"systemd":    "systemd has started what it was to start. Units that failed do not count against it.",
	"cloud_init": "cloud-init is done. An error of cloud-init is an error at once.",
	"address":    "`ipv4` or `ipv6`: it has a global address of that family. Of a virtual machine without an agent this is one that its network has leased to it, perhaps at its last boot; `tcp_port` says more.",
	"tcp_port":   "A TCP port that accepts connections from where Terraform runs.",
}

// someCondition refuses a ready condition that asks for nothing.
func someCondition() validator.Object {
	return atLeastOneOf(slices.Sorted(maps.Keys(readyTexts))...)
}

// readyAttribute is a ready condition.
func readyAttribute(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: description,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"command": schema.ListAttribute{
				MarkdownDescription: readyTexts["command"],
				ElementType:         types.StringType, Optional: true, Validators: []validator.List{listvalidator.SizeAtLeast(1)},
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
	}
}

var (
	fingerprintForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	macForm         = regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`)
	filePathForm    = regexp.MustCompile(`^/([^/\x00]+/)*[^/\x00]+$`)
)
