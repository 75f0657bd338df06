// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// origin is the source of a branch as the daemon has it.
type origin struct {
	source SourceID
	// live is the machine itself.
	live *api.Instance
	// What a branch inherits: of the snapshot, or of the machine as it is now.
	config   map[string]string
	devices  map[string]map[string]string
	profiles []string
	// What that comes to with the profiles.
	expandedConfig  map[string]string
	expandedDevices map[string]map[string]string
	// rootName is the name of the root disk's device.
	rootName string
	// pool and disk are the pool and the size of the root disk; the size is empty when it was given none.
	pool, disk string
	// expires is when the daemon deletes the snapshot; the zero time is never.
	expires time.Time
	// stateful says that the snapshot holds memory.
	stateful bool
}

// admittedOrigin reads the source of a branch and asks whether the branch may be made of it.
func (l *Lab) admittedOrigin(ctx context.Context, spec BranchSpec) (*origin, error) {
	from, err := l.InProject(spec.Source.Machine.Project).origin(ctx, spec.Source)
	if err != nil {
		return nil, &ArgumentError{Argument: "source", Err: err}
	}
	if err := l.checker.AdmitBranch(ctx, spec.askOf(from)); err != nil {
		return nil, err
	}
	return from, nil
}

// origin reads what a branch is to be made from. The error is [lxd.ErrNotFound] when it is gone, also when what has its
// name now is another.
func (l *Lab) origin(ctx context.Context, id SourceID) (*origin, error) {
	live, _, err := l.own(ctx, id.Machine)
	if err != nil {
		return nil, err
	}
	from := &origin{
		source: id, live: live, config: live.Config, devices: live.Devices, profiles: live.Profiles,
		expandedConfig: live.ExpandedConfig, expandedDevices: live.ExpandedDevices,
	}
	if id.IsSnapshot() {
		snapshot, err := l.liveSnapshot(ctx, *id.Snapshot)
		if err != nil {
			return nil, err
		}
		from.config, from.devices, from.profiles = snapshot.Config, snapshot.Devices, snapshot.Profiles
		from.expandedConfig, from.expandedDevices = snapshot.ExpandedConfig, snapshot.ExpandedDevices
		from.expires, from.stateful = snapshotOf(id.Machine, snapshot).ExpiresAt, snapshot.Stateful
	}
	for name, device := range from.expandedDevices {
		if isRoot(device) {
			from.rootName, from.pool, from.disk = name, device["pool"], device["size"]
		}
	}
	return from, nil
}

func isRoot(device map[string]string) bool { return device["type"] == "disk" && device["path"] == "/" }

// member is the cluster member that the source is on; empty on a daemon that stands alone.
func (o *origin) member() string {
	if o.live.Location == "none" {
		return ""
	}
	return o.live.Location
}

// describe names the source for people.
func (o *origin) describe() string {
	machine := fmt.Sprintf("machine %q", o.live.Name)
	if o.source.IsSnapshot() {
		return fmt.Sprintf("snapshot %q of %s", o.source.Snapshot.Name, machine)
	}
	return machine
}

// askOf is a branch in the words of package capability.
func (s *BranchSpec) askOf(from *origin) capability.BranchAsk {
	return capability.BranchAsk{
		Name: s.Name, Source: from.describe(), Type: api.InstanceType(from.live.Type),
		SourcePool: from.pool, Pool: s.Pool, SourceMember: from.member(), Member: s.Target,
		SourceDiskBytes: bytesOf(from.disk), DiskBytes: bytesOf(s.Disk),
		CPUs: s.CPUs, MemoryBytes: bytesOf(s.Memory), Expires: from.expires,
		Resume: s.resumeAsk(from),
	}
}
