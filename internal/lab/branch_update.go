// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"maps"

	"github.com/canonical/lxd/shared/api"
)

// UpdateBranch changes a branch in place, as [Lab.UpdateMachine] does a machine. Only what is asked for is written, as
// [BranchSpec] says; all else stays as it is, whether it was inherited or somebody changed it since.
func (l *Lab) UpdateBranch(ctx context.Context, id MachineID, before, now MachineSpec) (*Machine, error) {
	if err := GrowsOnly(before, now); err != nil {
		return nil, err
	}
	branch := BranchSpec{MachineSpec: now}
	return l.update(ctx, id, before, now, branch.overwrite)
}

// GrowsOnly refuses a root disk that would become smaller. The error says which argument is at fault.
func GrowsOnly(before, now MachineSpec) error {
	if now.Disk == "" || bytesOf(now.Disk) >= bytesOf(before.Disk) {
		return nil
	}
	return argumentErrorf("disk", "a branch's disk can only grow: it is of %s, and %s is less. Leave disk out, or set it to %s or more", before.Disk, now.Disk, before.Disk)
}

// overwrite puts what is asked for in the place of what a branch has.
func (s *BranchSpec) overwrite(live *api.Instance) api.InstancePut {
	put := live.Writable()
	if s.Description != "" {
		put.Description = s.Description
	}
	if s.Profiles != nil {
		put.Profiles = s.Profiles
	}
	put.Config = maps.Clone(live.Config)
	for key, value := range s.config() {
		if key != keyReady || !s.Ready.isZero() {
			setOrDelete(put.Config, key, value)
		}
	}
	put.Devices = s.overlay(live.Devices)
	for name, device := range live.ExpandedDevices {
		if isRoot(device) {
			s.withDisk(put.Devices, name, device)
		}
	}
	return put
}
