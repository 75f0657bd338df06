// SPDX-License-Identifier: MPL-2.0

//go:build linux && cgo

package capability

import (
	"path/filepath"

	"github.com/canonical/lxd/shared/api"
	"github.com/containerd/btrfs/v2"
)

// lineageOfCopies reads from a local btrfs pool whether the snapshots and branches share their data with what they were
// made from. It gives nil where that cannot be read: on other drivers, on another host, without root.
func (p *probe) lineageOfCopies() *lineage {
	if p.host == nil || p.pool.Driver != "btrfs" || len(p.branches) == 0 {
		return nil
	}
	machine, err := btrfs.SubvolInfo(p.subvolume(p.mark.name(), ""))
	if err != nil {
		return nil
	}
	snapshot, err := btrfs.SubvolInfo(p.subvolume(p.mark.name(), fullSnapshot))
	if err != nil {
		return nil
	}
	branch, err := btrfs.SubvolInfo(p.subvolume(p.branches[len(p.branches)-1], ""))
	if err != nil {
		return nil
	}
	return &lineage{snapshot: snapshot.ParentUUID == machine.UUID, branch: branch.ParentUUID == snapshot.UUID}
}

// lineageOfRestore adds whether the restored machine shares its data with the snapshot.
func (p *probe) lineageOfRestore(family lineage) *lineage {
	machine, err := btrfs.SubvolInfo(p.subvolume(p.mark.name(), ""))
	if err != nil {
		return nil
	}
	snapshot, err := btrfs.SubvolInfo(p.subvolume(p.mark.name(), fullSnapshot))
	if err != nil {
		return nil
	}
	family.restore = machine.ParentUUID == snapshot.UUID
	return &family
}

// subvolume is where LXD keeps a container, or one of its snapshots.
func (p *probe) subvolume(container, snapshot string) string {
	if project := p.daemon.Project(); project != api.ProjectDefaultName {
		container = project + "_" + container
	}
	kind := "containers"
	if snapshot != "" {
		kind = "containers-snapshots"
	}
	return filepath.Join(p.host.dir, "storage-pools", p.pool.Name, kind, container, snapshot)
}
