// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/canonical/lxd/shared/api"
)

// volume is a machine's disk, or a snapshot of it, where LXD keeps it in a local btrfs pool.
type volume struct {
	pool, project, machine string
	// snapshot is empty for the machine's own disk.
	snapshot string
	vm       bool
}

// path is where the volume is, below the daemon's directory.
func (v volume) path(dir string) string {
	machine := v.machine
	if v.project != api.ProjectDefaultName {
		machine = v.project + "_" + machine
	}
	kind := "containers"
	if v.vm {
		kind = "virtual-machines"
	}
	if v.snapshot != "" {
		kind += "-snapshots"
	}
	return filepath.Join(dir, "storage-pools", v.pool, kind, machine, v.snapshot)
}

// madeFrom says whether the file system's own records have one volume as made from another, by sharing its data.
// Known is false where the records cannot be read: on another host, without root or cgo.
func (h *host) madeFrom(child, parent volume) (made, known bool) {
	_, from, ok := subvolume(child.path(h.dir))
	if !ok {
		return false, false
	}
	uuid, _, ok := subvolume(parent.path(h.dir))
	return ok && from == uuid, ok
}

// lineageOfCopies reads from a local btrfs pool whether the snapshots and branches share their data with what they were
// made from. It gives nil where that cannot be read.
func (p *probe) lineageOfCopies() *lineage {
	if p.host == nil || p.pool.Driver != "btrfs" || len(p.branches) == 0 {
		return nil
	}
	snapshot, known := p.host.madeFrom(p.volume(p.mark.name(), fullSnapshot), p.volume(p.mark.name(), ""))
	if !known {
		return nil
	}
	branch, known := p.host.madeFrom(p.volume(p.branches[len(p.branches)-1], ""), p.volume(p.mark.name(), fullSnapshot))
	if !known {
		return nil
	}
	return &lineage{snapshot: snapshot, branch: branch}
}

// lineageOfRestore adds whether the restored machine shares its data with the snapshot.
func (p *probe) lineageOfRestore(family lineage) *lineage {
	restored, known := p.host.madeFrom(p.volume(p.mark.name(), ""), p.volume(p.mark.name(), fullSnapshot))
	if !known {
		return nil
	}
	family.restore = restored
	return &family
}

func (p *probe) volume(machine, snapshot string) volume {
	return volume{pool: p.pool.Name, project: p.daemon.Project(), machine: machine, snapshot: snapshot}
}

// What shows that a machine's disk went back to a snapshot.
const (
	// WitnessLineage is the file system's own record: the disk is made from the snapshot.
	WitnessLineage = "lineage"
	// WitnessProof is the pool's proof: restores were done on it and did what they should.
	WitnessProof = "proof"
)

// RestoredAsk is a machine that the daemon says it restored.
type RestoredAsk struct {
	Pool, Project, Machine, Snapshot string
	Type                             api.InstanceType
	// Location is the cluster member that the machine is on.
	Location string
}

// Restored says by what it is known that a machine's disk went back: by the file system's own records where they can
// be read (a btrfs pool of this host, root, cgo), else by the pool's proof. It is an error when the records say that
// the disk did not come from the snapshot, whatever the daemon said.
func (c *Checker) Restored(ctx context.Context, ask RestoredAsk) (witness string, err error) {
	facts, err := c.Facts(ctx)
	if err != nil {
		return "", err
	}
	if facts.host == nil || facts.present[ask.Pool].Driver != "btrfs" || !facts.here(ask.Location) {
		return WitnessProof, nil
	}
	disk := volume{pool: ask.Pool, project: ask.Project, machine: ask.Machine, vm: ask.Type == api.InstanceTypeVM}
	snapshot := disk
	snapshot.snapshot = ask.Snapshot
	made, known := facts.host.madeFrom(disk, snapshot)
	switch {
	case !known:
		return WitnessProof, nil
	case !made:
		return WitnessLineage, fmt.Errorf("the daemon says that it restored machine %q, but the file system's records say that its disk was not made from snapshot %q", ask.Machine, ask.Snapshot)
	default:
		return WitnessLineage, nil
	}
}

// here says whether a machine's location is the member that was connected to.
func (f *Facts) here(location string) bool {
	return len(f.Members) == 0 || location == f.Environment.ServerName
}
