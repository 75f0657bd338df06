// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"fmt"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// SnapshotAsk is a snapshot as it is asked for. What is not known of the machine yet stays empty.
type SnapshotAsk struct {
	// Machine and Name are the machine's and the snapshot's names.
	Machine, Name string
	// Type is the machine's instance type; empty when it is not known.
	Type api.InstanceType
	// Pool is the pool of its root disk; empty when it is not known.
	Pool string
	// Stateful asks for the memory, too.
	Stateful bool
	// Checkpointable says that the machine is set up for keeping its memory (migration.stateful).
	Checkpointable bool
	// Stopped says that the machine does not run, and that nothing will start it before.
	Stopped bool
	// Scheduled says that the daemon takes snapshots of it by itself; see [Scheduled].
	Scheduled bool
	// Ephemeral says that the machine goes when it stops.
	Ephemeral bool
}

// AdmitSnapshot says whether a snapshot may be taken, by the facts alone. The error is a [Refusal] when it may not.
func (c *Checker) AdmitSnapshot(ctx context.Context, ask SnapshotAsk) error {
	facts, err := c.Facts(ctx)
	if err != nil {
		return err
	}
	asked := fmt.Sprintf("snapshot %q of machine %q", ask.Name, ask.Machine)
	if ask.Stateful {
		asked = "stateful " + asked
	}
	if refusal := refuseSnapshot(asked, ask); refusal != nil {
		return refusal
	}
	if refusal := facts.refuseScheduled(asked, ask); refusal != nil {
		return refusal
	}
	return facts.refuseOnPool(asked, "machine", ask.Pool, Snapshots)
}

// refuseSnapshot refuses what no host can do.
func refuseSnapshot(asked string, ask SnapshotAsk) *Refusal {
	switch {
	case ask.Ephemeral:
		return &Refusal{
			Capability: Snapshots, Argument: "machine", Asked: asked,
			Found:  "the machine is ephemeral: it is deleted when it stops, and its snapshots with it",
			Remedy: "Make the machine without ephemeral.",
		}
	case ask.Stateful && ask.Type == api.InstanceTypeContainer:
		return &Refusal{
			Capability: Checkpoints, Argument: "stateful", Asked: asked,
			Found:  "the memory of a container cannot be kept: CRIU cannot dump a container with systemd, and LXD 6.6 dropped it",
			Remedy: `Remove stateful, or make the machine with type = "virtual-machine" and checkpointable = true.`,
		}
	case ask.Stateful && ask.Type == api.InstanceTypeVM && !ask.Checkpointable:
		return &Refusal{
			Capability: Checkpoints, Argument: "stateful", Asked: asked,
			Found:  "the machine is not set up for keeping its memory",
			Remedy: "Set checkpointable = true on the machine.",
		}
	case ask.Stateful && ask.Stopped:
		return &Refusal{
			Capability: Checkpoints, Argument: "stateful", Asked: asked,
			Found:  "the machine does not run, so it has no memory to keep",
			Remedy: "Start the machine (running = true), or remove stateful.",
		}
	default:
		return nil
	}
}

// refuseOnPool refuses what a pool cannot do by the facts. It returns a plain nil when it can.
func (f *Facts) refuseOnPool(asked, argument, name string, capability Capability) error {
	pool, ok := f.Pools[name]
	if !ok {
		return nil
	}
	t := f.traits(pool)
	judgement := map[Capability]judgement{Snapshots: t.snapshots, Branches: t.branches, Restores: t.restores}[capability]
	if judgement.verdict != Degraded && judgement.verdict != Absent {
		return nil
	}
	return &Refusal{
		Capability: capability, Argument: argument, Asked: asked,
		Found:    judgement.reason,
		Evidence: []string{fmt.Sprintf("pool %q has the driver %q", name, pool.Driver), f.offers()},
		Remedy:   "Put the machine on a pool that copies on write: lab_storage_pool makes one, with driver btrfs by default.",
	}
}

// ResetAsk is the restore of one machine to one of its snapshots, with what stands in the way on some drivers.
type ResetAsk struct {
	// Machine and Snapshot are the names of the machine and the snapshot.
	Machine, Snapshot string
	// Pool is the pool of the machine's root disk.
	Pool string
	// Newer lists the snapshots of the machine that are newer than the one to go back to.
	Newer []string
	// Branches lists the machines that were branched off the machine since, or off a newer snapshot of it.
	Branches []string
}

// AdmitReset says whether a machine can go back to a snapshot, by the facts alone. The error is a [Refusal] when it
// cannot.
func (c *Checker) AdmitReset(ctx context.Context, ask ResetAsk) error {
	facts, err := c.Facts(ctx)
	if err != nil {
		return err
	}
	asked := fmt.Sprintf("machine %q back at its snapshot %q", ask.Machine, ask.Snapshot)
	pool := facts.Pools[ask.Pool]
	t := traitsOf(pool.Driver, pool.Config)
	for _, obstacle := range []struct {
		capability Capability
		judgement  judgement
		what       string
		names      []string
	}{
		{PastSnapshots, t.pastSnapshots, "newer snapshots", ask.Newer},
		{PastBranches, t.pastBranches, "branches", ask.Branches},
	} {
		if len(obstacle.names) == 0 || obstacle.judgement.verdict != Absent {
			continue
		}
		return &Refusal{
			Capability: obstacle.capability, Argument: "snapshots", Asked: asked, Found: obstacle.judgement.reason,
			Evidence: []string{
				fmt.Sprintf("pool %q has the driver %q", ask.Pool, pool.Driver),
				fmt.Sprintf("%s of machine %q: %s", obstacle.what, ask.Machine, strings.Join(obstacle.names, ", ")),
			},
			Remedy: obstacle.judgement.remedy,
		}
	}
	return facts.refuseOnPool(asked, "snapshots", ask.Pool, Restores)
}
