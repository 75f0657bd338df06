// SPDX-License-Identifier: MPL-2.0

package capability

// Capability is something that a host can or cannot do.
type Capability string

// The capabilities that are judged. Those of a pool are judged for each pool by itself.
const (
	// Daemon is a daemon that answers and trusts this client.
	Daemon Capability = "daemon"
	// Containers is running system containers.
	Containers Capability = "containers"
	// VirtualMachines is running virtual machines.
	VirtualMachines Capability = "virtual_machines"
	// Pools is making a storage pool that copies on write.
	Pools Capability = "copy_on_write_pool"
	// Snapshots is taking a snapshot in constant time and space.
	Snapshots Capability = "copy_on_write_snapshot"
	// Branches is making a machine from another one, or from its snapshot, in constant time and space.
	Branches Capability = "copy_on_write_branch"
	// Restores is putting a machine back to a snapshot in constant time.
	Restores Capability = "copy_on_write_restore"
	// PastSnapshots is restoring a snapshot that is not the newest one, and keeping the newer ones.
	PastSnapshots Capability = "restore_past_snapshots"
	// PastBranches is restoring a snapshot that is older than a branch of the machine.
	PastBranches Capability = "restore_past_branches"
	// KeptSnapshots is that the daemon neither takes snapshots nor deletes them by itself.
	KeptSnapshots Capability = "kept_snapshots"
	// Checkpoints is keeping a machine's memory in a snapshot.
	Checkpoints Capability = "checkpoint"
	// Headroom is that the disk below a pool can hold what the pool promises, and the host what is asked of it.
	Headroom Capability = "headroom"
	// Cluster is that the members of a cluster answer, and are alike.
	Cluster Capability = "cluster"
	// Source is a place for a pool that holds nothing of anybody's.
	Source Capability = "pool_source"
	// Resize is growing a pool.
	Resize Capability = "pool_resize"
)

// titles are the capabilities in words, for the summary of a refusal.
var titles = map[Capability]string{
	Daemon:          "daemon",
	Containers:      "containers",
	VirtualMachines: "virtual machines",
	Pools:           "copy-on-write storage",
	Snapshots:       "copy-on-write snapshots",
	Branches:        "copy-on-write branches",
	Restores:        "copy-on-write restore",
	PastSnapshots:   "restoring past newer snapshots",
	PastBranches:    "restoring past branches",
	KeptSnapshots:   "snapshots that stay as they are",
	Checkpoints:     "checkpoints",
	Headroom:        "headroom",
	Cluster:         "cluster",
	Source:          "pool source",
	Resize:          "resizing a pool",
}

// Title is the capability in words ("copy-on-write snapshots").
func (c Capability) Title() string {
	if title, ok := titles[c]; ok {
		return title
	}
	return string(c)
}

// Verdict is what was found out about a capability.
type Verdict string

const (
	// Proven says that it was done on this host and did what it should.
	Proven Verdict = "proven"
	// Reported says that the daemon claims it and nothing speaks against it.
	Reported Verdict = "reported"
	// Degraded says that it works, but not in the way that a lab relies on.
	Degraded Verdict = "degraded"
	// Absent says that it cannot be done here.
	Absent Verdict = "absent"
	// Unproven says that it could not be found out.
	Unproven Verdict = "unproven"
)

// Usable says that a lab may rely on it as far as is known.
func (v Verdict) Usable() bool { return v == Proven || v == Reported }

// Finding is the verdict on one capability of one subject.
type Finding struct {
	// Capability is what was judged.
	Capability Capability `json:"capability"`
	// Subject is the pool or cluster member that was judged; empty for the host.
	Subject string `json:"subject,omitempty"`
	// Verdict is what was found.
	Verdict Verdict `json:"verdict"`
	// Evidence is what it rests on: figures, and the daemon's own words.
	Evidence []string `json:"evidence,omitempty"`
	// Reason says why the verdict is not better; empty when it is good.
	Reason string `json:"reason,omitempty"`
	// Remedy is what to do about it, where possible a command for this host.
	Remedy string `json:"remedy,omitempty"`
	// Judged says how: by doing it, or by what was asked of whom.
	Judged string `json:"judged"`
}
