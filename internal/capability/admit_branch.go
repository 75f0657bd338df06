// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/canonical/lxd/shared/units"
)

// blockSizeBytes is what LXD makes of a disk on a block device that nobody gave a size (its DefaultBlockSize).
const blockSizeBytes = 10 << 30

// BranchAsk is a branch as it is asked for, and what its source has. What is not asked for stays empty.
type BranchAsk struct {
	// Name is the branch's name.
	Name string
	// Source is what it is made from, as a noun phrase.
	Source string
	// Type is the instance type of the source, and so of the branch.
	Type api.InstanceType
	// SourcePool and SourceMember are the pool of the source's root disk and the cluster member that it is on.
	SourcePool, SourceMember string
	// Pool and Member are where the branch is to be; empty means where its source is.
	Pool, Member string
	// SourceDiskBytes is the size of the source's root disk; 0 when it was given none.
	SourceDiskBytes int64
	// DiskBytes is the size of the branch's; 0 means the source's.
	DiskBytes int64
	// CPUs and MemoryBytes are the branch's limits; 0 means the source's.
	CPUs, MemoryBytes int64
	// Expires is when the daemon deletes the snapshot that it is made from; the zero time is never.
	Expires time.Time
	// Resume is set when the branch is to go on from the memory of its source.
	Resume *ResumeAsk
}

func (a BranchAsk) String() string { return fmt.Sprintf("branch %q of %s", a.Name, a.Source) }

// machine is the branch as the machine that it will be.
func (a BranchAsk) machine() MachineAsk {
	return MachineAsk{Name: a.Name, Type: a.Type, Pool: a.SourcePool, CPUs: a.CPUs, MemoryBytes: a.MemoryBytes}
}

// AdmitBranch says whether a branch may be made, by the facts alone. The error is a [Refusal] when it may not. The
// source is there, and so is its pool: facts that lack it are out of date.
func (c *Checker) AdmitBranch(ctx context.Context, ask BranchAsk) error {
	facts, err := c.factsWithPool(ctx, ask.SourcePool)
	if err != nil {
		return err
	}
	asked := ask.String()
	for _, check := range []func() *Refusal{
		func() *Refusal { return facts.refuseSourceType(ask) },
		func() *Refusal { return refuseResume(ask) },
		func() *Refusal { return refuseOtherPool(asked, ask) },
		func() *Refusal { return refuseOtherMember(asked, ask) },
		func() *Refusal { return facts.refuseExpiry(asked, ask) },
		func() *Refusal { return facts.refuseShrink(asked, ask) },
		func() *Refusal { return facts.refuseLimits(ask.machine()) },
	} {
		if refusal := check(); refusal != nil {
			return refusal
		}
	}
	return facts.refuseOnPool(asked, "source", ask.SourcePool, Branches)
}

// refuseSourceType refuses a source of a type that the daemon cannot run any more.
func (f *Facts) refuseSourceType(ask BranchAsk) *Refusal {
	refusal := f.refuseType(ask.machine())
	if refusal != nil {
		refusal.Argument = "source"
	}
	return refusal
}

// refuseOtherPool refuses a branch that would have to be copied, since it is to be in another pool than its source.
func refuseOtherPool(asked string, ask BranchAsk) *Refusal {
	if ask.Pool == "" || ask.Pool == ask.SourcePool {
		return nil
	}
	return &Refusal{
		Capability: Branches, Argument: "pool", Asked: asked,
		Found:  fmt.Sprintf("the source is in pool %q; in pool %q every block of it would be copied", ask.SourcePool, ask.Pool),
		Remedy: fmt.Sprintf("Leave pool out, or set it to %q. To move a prepared machine to another pool, publish it as an image (lab_image).", ask.SourcePool),
	}
}

// refuseOtherMember does the same for a branch that is to be on another member of the cluster.
func refuseOtherMember(asked string, ask BranchAsk) *Refusal {
	if ask.Member == "" || ask.Member == ask.SourceMember {
		return nil
	}
	if ask.SourceMember == "" {
		return &Refusal{
			Capability: Branches, Argument: "target", Asked: asked,
			Found: fmt.Sprintf("the daemon is in no cluster, and so has no member %q", ask.Member), Remedy: "Leave target out.",
		}
	}
	return &Refusal{
		Capability: Branches, Argument: "target", Asked: asked,
		Found: fmt.Sprintf("the source is on member %q of the cluster; all of it would be sent to member %q", ask.SourceMember, ask.Member),
		Remedy: fmt.Sprintf("Leave target out: a branch is made on the member of its source, %q. To have a prepared machine on another member, "+
			"publish it as an image (lab_image).", ask.SourceMember),
	}
}

// standsOnSnapshot lists the drivers whose branches stand on the very snapshot that they were made from: deleting that
// only hides it, until the last branch is gone.
var standsOnSnapshot = []string{"zfs", "ceph"}

// refuseExpiry refuses a snapshot that the daemon is going to delete below the branch.
func (f *Facts) refuseExpiry(asked string, ask BranchAsk) *Refusal {
	pool := f.Pools[ask.SourcePool]
	if ask.Expires.IsZero() || !slices.Contains(standsOnSnapshot, pool.Driver) {
		return nil
	}
	return &Refusal{
		Capability: Branches, Argument: "source", Asked: asked,
		Found: fmt.Sprintf("the snapshot expires, and with the driver %q the branch stands on it: the daemon could not remove it, "+
			"and what it hides instead keeps the machine from going back", pool.Driver),
		Evidence: []string{
			fmt.Sprintf("the daemon deletes the snapshot at %s", ask.Expires.UTC().Format(time.RFC3339)),
			fmt.Sprintf("pool %q has the driver %q", ask.SourcePool, pool.Driver),
		},
		Remedy: `Branch off a snapshot that does not expire: a lab_snapshot without expires_at (one of the daemon's own schedule takes its from snapshots.expiry). Or use a pool with driver = "btrfs".`,
	}
}

// refuseShrink refuses a disk that is smaller than the source's, which holds the source's data.
func (f *Facts) refuseShrink(asked string, ask BranchAsk) *Refusal {
	if ask.DiskBytes == 0 {
		return nil
	}
	refusal := &Refusal{Capability: Branches, Argument: "disk", Asked: asked}
	source := cmp.Or(ask.SourceDiskBytes, f.defaultDiskBytes(ask))
	switch {
	case source == 0:
		refusal.Found = fmt.Sprintf("the source's disk is as large as its pool, and a branch's can only be larger: %s is less", size(ask.DiskBytes))
		refusal.Remedy = "Leave disk out, or give the source's machine a disk of its own size first."
	case ask.DiskBytes < source:
		refusal.Found = fmt.Sprintf("a branch's disk can only grow: the source's is of %s, and %s is less", size(source), size(ask.DiskBytes))
		refusal.Remedy = fmt.Sprintf("Leave disk out, or set it to %s or more.", size(source))
	default:
		return nil
	}
	return refusal
}

// defaultDiskBytes is the size of a disk that was given none; 0 means as large as the pool.
func (f *Facts) defaultDiskBytes(ask BranchAsk) int64 {
	pool := f.Pools[ask.SourcePool]
	if bytes, err := units.ParseByteSizeString(pool.Config["volume.size"]); err == nil && bytes > 0 {
		return bytes
	}
	if ask.Type == api.InstanceTypeVM || slices.Contains([]string{"lvm", "ceph"}, pool.Driver) {
		return blockSizeBytes
	}
	return 0
}
