// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"slices"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
)

// DefaultDriver is the storage driver of a pool that names none.
const DefaultDriver = "btrfs"

// copyOnWrite lists the drivers that can copy on write, when they are configured to.
var copyOnWrite = []string{"btrfs", "zfs", "lvm", "ceph"}

// judgement is what the facts say of one capability of a pool.
type judgement struct {
	verdict Verdict
	// argument is the argument that makes the verdict bad.
	argument string
	// reason says why it is bad.
	reason string
	// remedy says what would make it good.
	remedy string
}

// traits are what a driver with a configuration can do, as its own documentation and source have it.
type traits struct {
	snapshots, branches, restores, pastSnapshots, pastBranches judgement
}

// worst gives the first judgement on copy-on-write that is not usable, and its capability.
func (t traits) worst() (Capability, judgement, bool) {
	for _, c := range []struct {
		capability Capability
		judgement  judgement
	}{{Snapshots, t.snapshots}, {Branches, t.branches}, {Restores, t.restores}} {
		if c.judgement.verdict == Degraded || c.judgement.verdict == Absent {
			return c.capability, c.judgement, true
		}
	}
	return "", judgement{}, false
}

func uniform(j judgement) traits {
	return traits{snapshots: j, branches: j, restores: j, pastSnapshots: j, pastBranches: j}
}

// traitsOf says what a pool can do by its driver and configuration alone. A driver that is not known here is
// [Unproven]: only the probe can tell.
func traitsOf(driver string, config map[string]string) traits {
	good := judgement{verdict: Reported}
	switch driver {
	case "btrfs":
		return uniform(good)
	case "zfs":
		return traitsOfZFS(config)
	case "lvm":
		if shared.IsFalse(config["lvm.use_thinpool"]) {
			return traitsOfCopying("config", `with lvm.use_thinpool = "false" LXD copies every block of a machine`,
				"Remove lvm.use_thinpool from config: LXD makes a thin pool by default.")
		}
		return uniform(good)
	case "ceph":
		return traitsOfCeph(config)
	case "dir":
		return traitsOfCopying("driver", `the driver "dir" copies every file of a machine for each snapshot and branch, and compares all of them for a restore`,
			`Use driver = "btrfs" (the default).`)
	case "cephfs", "cephobject":
		return uniform(judgement{Absent, "driver", fmt.Sprintf("the driver %q cannot hold machines", driver), `Use driver = "btrfs" (the default).`})
	default:
		return uniform(judgement{verdict: Unproven, argument: "driver", reason: fmt.Sprintf("what the driver %q does is not known here", driver)})
	}
}

// traitsOfCopying are those of a pool that copies everything, which lets it go back to any snapshot.
func traitsOfCopying(argument, reason, remedy string) traits {
	t := uniform(judgement{Degraded, argument, reason, remedy})
	t.pastSnapshots, t.pastBranches = judgement{verdict: Reported}, judgement{verdict: Reported}
	return t
}

func traitsOfCeph(config map[string]string) traits {
	t := uniform(judgement{verdict: Reported})
	t.restores = judgement{verdict: Unproven, reason: "Ceph writes an image anew to roll it back; only the probe tells how long that takes"}
	if shared.IsFalse(config["ceph.rbd.clone_copy"]) {
		t.branches = judgement{
			Degraded, "config", `with ceph.rbd.clone_copy = "false" LXD makes a full copy for every branch`,
			"Remove ceph.rbd.clone_copy from config.",
		}
	}
	return t
}

func traitsOfZFS(config map[string]string) traits {
	t := uniform(judgement{verdict: Reported})
	if value := config["zfs.clone_copy"]; shared.IsFalse(value) || value == "rebase" {
		t.branches = judgement{
			Degraded, "config", fmt.Sprintf("with zfs.clone_copy = %q LXD makes a full copy for every branch", value),
			"Remove zfs.clone_copy from config.",
		}
	}
	past := judgement{
		verdict: Absent, argument: "driver",
		reason: "ZFS rolls a dataset back only to its newest snapshot (with zfs.remove_snapshots LXD would delete the newer ones)",
		remedy: `Remove the newer snapshots first, or use a pool with driver = "btrfs".`,
	}
	t.pastSnapshots = past
	past.reason = "ZFS cannot roll a dataset back past the hidden snapshot that a branch stands on"
	past.remedy = `Remove the branch first, or use a pool with driver = "btrfs".`
	t.pastBranches = past
	return t
}

// traits are what a pool can do by the facts: nothing at all, when the daemon says that it is not in order.
func (f *Facts) traits(pool PoolFacts) traits {
	if !pool.Planned && pool.Status != "" && pool.Status != api.StoragePoolStatusCreated {
		return uniform(judgement{
			Absent, "pool", fmt.Sprintf("the daemon says that pool %q is %s", pool.Name, pool.Status),
			fmt.Sprintf("See the daemon's log for why, and `lxc storage info %s`.", pool.Name),
		})
	}
	return traitsOf(pool.Driver, pool.Config)
}

// canCopyOnWrite says whether a driver has copy-on-write at all.
func canCopyOnWrite(driver string) bool { return slices.Contains(copyOnWrite, driver) }
