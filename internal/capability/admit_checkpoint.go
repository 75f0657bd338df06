// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// remoteDrivers are the storage drivers whose volumes are not on the machine's own host.
var remoteDrivers = []string{"ceph", "cephfs", "cephobject", "powerflex", "pure"}

// Uncapturable says why a device keeps a virtual machine from being captured with its memory, as LXD would refuse it when
// the machine is made or started; it is empty when it does not. The driver is the one of the device's pool, if that is
// known.
func Uncapturable(device map[string]string, driver string) string {
	switch device["type"] {
	case "gpu", "pci", "usb":
		return fmt.Sprintf("it hands a %s device of the host to the guest, and the state of that device cannot be captured", strings.ToUpper(device["type"]))
	case "tpm":
		return "the state of a TPM is kept outside of the virtual machine, and is not captured with it"
	case "nic":
		if slices.Contains([]string{"physical", "sriov"}, device["nictype"]) {
			return "it hands a network card of the host to the guest, and the state of that card cannot be captured"
		}
	case "disk":
		if device["path"] != "/" {
			return uncapturableDisk(device, driver)
		}
	}
	return ""
}

// uncapturableDisk is [Uncapturable] for what is not the root disk. A pool that is not known yet is judged later.
func uncapturableDisk(device map[string]string, driver string) string {
	switch pool := device["pool"]; {
	case device["path"] != "":
		return "it shares a directory with the guest while that runs, and what the guest knows of it cannot be captured"
	case pool == "" && strings.ContainsAny(device["source"], "/:"):
		return "it is a disk from outside of LXD's storage pools"
	case device["io.bus"] == "nvme":
		return "the state of an NVMe disk cannot be captured"
	case pool != "" && driver != "" && !slices.Contains(remoteDrivers, driver):
		return fmt.Sprintf("it is a second disk, on a pool of this host (driver %q)", driver)
	default:
		return ""
	}
}

// refuseUncapturable refuses a machine whose memory is to be capturable and cannot be.
func (f *Facts) refuseUncapturable(ask MachineAsk) *Refusal {
	if !ask.Checkpointable || ask.Type == "" && !ask.Applying {
		return nil
	}
	if ask.kind() != api.InstanceTypeVM {
		return &Refusal{
			Capability: Checkpoints, Argument: "checkpointable", Asked: ask.String(),
			Found:  "the memory of a container cannot be captured",
			Remedy: `Set type = "virtual-machine", or leave checkpointable out.`,
		}
	}
	evidence := []string{}
	for _, name := range slices.Sorted(maps.Keys(ask.Devices)) {
		device := ask.Devices[name]
		if reason := Uncapturable(device, f.Pools[device["pool"]].Driver); reason != "" {
			evidence = append(evidence, fmt.Sprintf("device %q: %s", name, reason))
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return &Refusal{
		Capability: Checkpoints, Argument: "devices", Asked: ask.String(),
		Found:    "LXD starts no virtual machine with these devices whose memory is to be capturable",
		Evidence: evidence,
		Remedy:   "Remove the devices, or leave checkpointable out.",
	}
}

// RefuseReshaped refuses to put a machine back to a checkpoint when it is not shaped now as it was then: the memory can
// only come back to a machine of the same shape, and a machine that runs cannot take on another. The error is a [Refusal];
// it is nil when there is no difference.
func RefuseReshaped(machine, snapshot string, differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	return &Refusal{
		Capability: Checkpoints, Argument: "snapshots",
		Asked:    fmt.Sprintf("machine %q back at its checkpoint %q, with its memory", machine, snapshot),
		Found:    "the machine was changed since, in what its memory depends on: it would come back as it was then, and could not be changed again while it runs",
		Evidence: differences,
		Remedy: "Take a new checkpoint of the machine as it is now and reset to that, or reset to a snapshot without memory. " +
			"Or change the machine back to what it was.",
	}
}
