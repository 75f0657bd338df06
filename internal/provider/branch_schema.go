// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"maps"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// branchTimings are the parts of the timings attribute.
var branchTimings = map[string]string{
	"branch_ms": "From the start of the work until the branch existed.",
	"launch_ms": "From the start of the work until the daemon's call to start it returned. The branch is not usable then.",
	"usable_ms": "From the start of the work until it was usable: prepared, and its `ready` condition held.",
}

// branchText says what a branch is and what it takes over.
const branchText = `A machine that shares the disk of another one, or of a snapshot, from the moment at which it is made: in constant time, and in no space beyond what changes afterwards. It is made on the cluster member and in the pool of its source, or refused.

What is not declared is inherited when the branch is made, and is nobody's to manage afterwards: it stays null here, and a change of it is no drift. An argument that is removed from the configuration stays as it was. Of ` + "`config`" + ` each key is declared by itself, and an empty value removes an inherited key; ` + "`networks`, `devices` and `profiles`" + `, where they are given, take the place of all of the source's.

These are never inherited, and must be declared where the branch is to have them:

- its identity: MAC addresses, uuid, cloud-init instance, machine id, and host name (where the image has a template for that, as LXD's and the one of this provider's examples do);
- addresses that the source's DHCP keeps for it, and names of its interfaces on the host;
- ` + "`boot.autostart*`, `security.protection.delete` and `snapshots.*`" + `, also where a profile sets them to do something;
- devices that only one machine can have, or that reach beyond its root disk: proxies that listen on the host, passed-through PCI devices, physical interfaces, the GPUs of virtual machines, and volumes and directories of the host that are not read-only;
- being ephemeral.

A virtual machine gets its machine id from within: it is booted once for that, off all networks, unless its ` + "`ready`" + ` condition needs no agent.

With ` + "`memory = true`" + ` a branch of a checkpoint (a ` + "`lab_snapshot`" + ` of a virtual machine with ` + "`stateful`" + `) is a live one: its guest goes on where the source was, without a boot. Its processes, host name, machine id, boot id, MAC and IP addresses are the source's until it boots; ` + "`files` and `setup`" + ` are put in when it runs. It is made like this:

- Its interfaces are those of the checkpoint, each on another network than its source, since two machines with the same MAC address would collide; so would two branches of one checkpoint on one network. An interface that ` + "`networks`" + ` leaves out is connected to nothing: ` + "`networks = {}`" + ` sets it apart altogether.
- To give it an address of its own, change ` + "`networks`" + ` once it runs: the new network comes with a new interface, which has the MAC address that LXD keeps for the branch, and for which the guest asks DHCP anew. It may then be its source's network, too.
- Its shape is the checkpoint's: ` + "`cpus`, `disk`, `devices`, `profiles`, `cloud_init`, `running = false`" + ` and most of ` + "`config`" + ` are refused until it is there, and can be changed afterwards.
- LXD has no call for it, so it is made in a project of its own (` + "`lab-staging-*`" + `), which is gone when the branch starts; the client must be allowed to make projects. When the memory does not come back, the branch is removed again.`

func (r *branchResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := branchSourceAttributes()
	maps.Copy(attributes, map[string]schema.Attribute{
		"id":           idAttribute("`project/name/uuid`: this incarnation of the branch, for references. It is a machine's id: snapshots, resets and further branches take it."),
		"project":      branchProjectAttribute(),
		"timings":      timingsAttribute(branchTimings),
		"timeouts":     timeoutsAttribute(ctx),
		"location":     computedText("The cluster member that it is on; `none` on a daemon that stands alone."),
		"ipv4_address": computedText("Its first global IPv4 address, as it was seen when the branch became usable."),
		"ipv6_address": computedText("The same for IPv6."),
	})
	for _, group := range []map[string]schema.Attribute{machineLimitAttributes(), machineDeviceAttributes()} {
		for name, attribute := range group {
			attributes[name] = inherited(attribute)
		}
	}
	attributes["disk"] = growing(attributes["disk"])
	attributes["memory"] = keepable(attributes["memory"])
	maps.Copy(attributes, machinePreparationAttributes())
	life := machineLifeAttributes()
	attributes["running"], attributes["allow_restart"] = life["running"], life["allow_restart"]
	attributes["ready"] = readyAttribute("When it counts as usable. All conditions that are given must hold. Default: as its source.")
	attributes["checkpointable"] = schema.BoolAttribute{
		MarkdownDescription: "Whether the memory of this virtual machine can be captured: as its source's.", Computed: true,
		PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
	}
	resp.Schema = schema.Schema{MarkdownDescription: branchText, Attributes: attributes}
}

// branchSourceAttributes are what a branch is, and where.
func branchSourceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": machineIdentityAttributes()["name"],
		"source": schema.StringAttribute{
			MarkdownDescription: "What it is made from: the `id` of a `lab_snapshot`, or of a `lab_machine` or `lab_branch`, running or not, as it is at that moment. " +
				"Changing it replaces the branch; so does replacing the source.",
			Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(preparedString, preparedText, preparedText)},
		},
		"type":  computedText("`container` or `virtual-machine`, as its source."),
		"image": computedText("The fingerprint of the image that its source was made from."),
		"pool": schema.StringAttribute{
			MarkdownDescription: "The storage pool of its root disk, which is its source's: another one is refused.",
			Optional:            true, Computed: true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()},
		},
		"target": schema.StringAttribute{
			MarkdownDescription: "On a cluster: the member to make it on, which is its source's: another one is refused.",
			Optional:            true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"description": inherited(schema.StringAttribute{
			MarkdownDescription: "A text for people. Default: none.", Optional: true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		}),
	}
}

// growing says of a size that it cannot become less.
func growing(attribute schema.Attribute) schema.Attribute {
	if size, ok := attribute.(schema.StringAttribute); ok {
		size.MarkdownDescription += " It can only grow: what is less than the source's is refused."
		return size
	}
	return attribute
}

// keepable makes of a machine's memory that of a branch, which may also be the memory of a checkpoint itself.
func keepable(attribute schema.Attribute) schema.Attribute {
	memory, ok := attribute.(schema.StringAttribute)
	if !ok {
		return attribute
	}
	memory.CustomType = sizeType{orKept: true}
	memory.MarkdownDescription += " Or `true`: the branch goes on from the memory of its source, a `lab_snapshot` with `stateful`, without a boot (see above). " +
		"Changing it to `true` replaces the branch."
	const text = "replaces the branch when it becomes `true`, unless it was just imported"
	memory.PlanModifiers = append(memory.PlanModifiers, stringplanmodifier.RequiresReplaceIf(func(ctx context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
		resp.RequiresReplace = req.PlanValue.ValueString() == withMemory && !justImported(ctx, req.Private)
	}, text, text))
	return memory
}

func branchProjectAttribute() schema.StringAttribute {
	attribute := projectAttribute()
	attribute.MarkdownDescription = "The project that it is in. Default: its source's. Changing it replaces the branch."
	return attribute
}

// defaultText is what the description of a machine's argument says of its default.
var defaultText = regexp.MustCompile(`Default: [^.]+\.`)

func inheritedText(description string) string {
	const asSource = "Default: as its source."
	if !defaultText.MatchString(description) {
		return description + " " + asSource
	}
	return defaultText.ReplaceAllString(description, asSource)
}

// inherited makes an argument of a machine one of a branch: what is not declared is the source's.
func inherited(attribute schema.Attribute) schema.Attribute {
	switch a := attribute.(type) {
	case schema.StringAttribute:
		a.Computed, a.MarkdownDescription = true, inheritedText(a.MarkdownDescription)
		a.PlanModifiers = append([]planmodifier.String{keepInherited{}}, a.PlanModifiers...)
		return a
	case schema.Int64Attribute:
		a.Computed, a.MarkdownDescription = true, inheritedText(a.MarkdownDescription)
		a.PlanModifiers = append([]planmodifier.Int64{keepInherited{}}, a.PlanModifiers...)
		return a
	case schema.MapAttribute:
		a.Computed, a.MarkdownDescription = true, inheritedText(a.MarkdownDescription)
		a.PlanModifiers = append([]planmodifier.Map{keepInherited{}}, a.PlanModifiers...)
		return a
	case schema.MapNestedAttribute:
		a.Computed, a.MarkdownDescription = true, inheritedText(a.MarkdownDescription)
		a.PlanModifiers = append([]planmodifier.Map{keepInherited{}}, a.PlanModifiers...)
		return a
	case schema.ListAttribute:
		a.Computed, a.Default, a.MarkdownDescription = true, nil, inheritedText(a.MarkdownDescription)
		a.PlanModifiers = append([]planmodifier.List{keepInherited{}}, a.PlanModifiers...)
		return a
	default:
		return attribute
	}
}

// keepInherited leaves an argument that is not declared as it was: null, unless it was declared before or read by an
// import.
type keepInherited struct{}

func (keepInherited) Description(context.Context) string {
	return "what is not declared stays as it is"
}

func (m keepInherited) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (keepInherited) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

func (keepInherited) PlanModifyInt64(_ context.Context, req planmodifier.Int64Request, resp *planmodifier.Int64Response) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

func (keepInherited) PlanModifyMap(_ context.Context, req planmodifier.MapRequest, resp *planmodifier.MapResponse) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}

func (keepInherited) PlanModifyList(_ context.Context, req planmodifier.ListRequest, resp *planmodifier.ListResponse) {
	if req.ConfigValue.IsNull() {
		resp.PlanValue = req.StateValue
	}
}
