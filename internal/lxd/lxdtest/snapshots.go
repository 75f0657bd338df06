// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
)

// sizeUnknown is what LXD shows where the pool does not tell.
const sizeUnknown = -1

func snapshotNotFound(i *instance, name string) error {
	return api.StatusErrorf(http.StatusNotFound, "Failed to fetch snapshot %q of instance %q in project %q: InstanceSnapshot not found",
		name, i.Name, i.Project)
}

func (s *Server) findSnapshot(r *http.Request) (*instance, *snapshot, error) {
	name := r.PathValue("snapshot")
	i, err := s.findInstance(r)
	if err != nil {
		return nil, nil, snapshotNotFound(&instance{Instance: api.Instance{Name: r.PathValue("name"), Project: projectOf(r)}}, name)
	}
	if snap := i.find(name); snap != nil {
		return i, snap, nil
	}
	return nil, nil, snapshotNotFound(i, name)
}

func (s *Server) snapshotsGet(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	paths, snapshots := []string{}, []api.InstanceSnapshot{}
	for _, snap := range i.snapshots {
		paths = append(paths, objectPath(i.Project, "instances", i.Name, "snapshots", snap.Name))
		snapshots = append(snapshots, snap.InstanceSnapshot)
	}
	if recursive(r, "1") {
		return value(snapshots)
	}
	return value(paths)
}

func (s *Server) snapshotGet(r *http.Request) answer {
	_, snap, err := s.findSnapshot(r)
	if err != nil {
		return failed(err)
	}
	return tagged(snap.InstanceSnapshot, snap.ExpiresAt)
}

func (s *Server) snapshotsPost(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	var req api.InstanceSnapshotsPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if strings.Contains(req.Name, "/") {
		return badRequest(`Invalid snapshot name: Cannot contain "/"`)
	}
	return s.start(i.Project, "Snapshotting instance", i.resources(), func(*operation) error { return s.takeSnapshot(i, req) })
}

func (s *Server) takeSnapshot(i *instance, req api.InstanceSnapshotsPost) error {
	for n := 0; req.Name == ""; n++ {
		if name := fmt.Sprintf("snap%d", n); i.find(name) == nil {
			req.Name = name
		}
	}
	if req.Stateful {
		if !i.running() {
			return internalf("Unable to create a stateful snapshot. The instance isn't running")
		}
		if err := s.checkMemory(i, "snapshot"); err != nil {
			return err
		}
	}
	if req.Stateful && i.virtual() {
		s.pause(i)
	}
	if err := s.recordSnapshot(i, req); err != nil {
		return err
	}
	if i.paused {
		i.goOn()
	}
	return nil
}

// recordSnapshot makes a snapshot of an instance whose memory, if it is to be kept, was dumped. When it fails the
// guest stays paused.
func (s *Server) recordSnapshot(i *instance, req api.InstanceSnapshotsPost) error {
	record := fmt.Sprintf("Failed creating instance snapshot record %q", req.Name)
	if strings.ContainsAny(req.Name, " ") {
		return internalf("%s: Invalid instance snapshot name: Cannot contain space or / characters", record)
	}
	if i.find(req.Name) != nil {
		return internalf(`%s: Add snapshot info to the database: This "instances_snapshots" entry already exists`, record)
	}
	if i.busy == "restore" {
		// LXD takes no lock here, and the disk is not where it should be.
		return internalf("mkdir /var/lib/lxd/storage-pools/%s/containers/%s: file exists", i.volume.pool.Name, i.Name)
	}
	expires, err := i.expiry(req.ExpiresAt)
	if err != nil {
		return err
	}
	shares := i.volume.pool.sharesSnapshots()
	s.spend(Work{Verb: "snapshot", Driver: i.volume.pool.Driver, Bytes: moved(shares, i.volume.live)})
	if !shares {
		if err := s.room(i.volume.pool, i.volume.live.bytes()); err != nil {
			return err
		}
	}
	boot := ""
	if req.Stateful {
		boot = i.boot
	}
	i.volume.snapshot(req.Name)
	i.snapshots = append(i.snapshots, &snapshot{description: i.Description, boot: boot, InstanceSnapshot: api.InstanceSnapshot{
		Name: req.Name, CreatedAt: time.Now().UTC(), ExpiresAt: expires, LastUsedAt: i.LastUsedAt, Stateful: req.Stateful, Size: i.snapshotSize(req.Stateful),
		Architecture: i.Architecture, Ephemeral: i.Ephemeral, Profiles: slices.Clone(i.Profiles), Config: maps.Clone(i.Config),
		Devices: maps.Clone(i.Devices), ExpandedConfig: i.expandedConfig(), ExpandedDevices: i.expandedDevices(),
	}})
	if req.Stateful {
		return s.memoryFault("dump")
	}
	return nil
}

// expiry returns when a new snapshot ends: a time that is not given means what the configuration says.
func (i *instance) expiry(given *time.Time) (time.Time, error) {
	if given != nil {
		return *given, nil
	}
	return shared.GetExpiry(time.Now().UTC(), i.expandedConfig()["snapshots.expiry"])
}

// snapshotPut changes when a snapshot ends, the only thing that can be changed about it.
func (s *Server) snapshotPut(r *http.Request) answer {
	i, snap, err := s.findSnapshot(r)
	if err != nil {
		return failed(err)
	}
	if err := checkETag(r, snap.ExpiresAt); err != nil {
		return failed(err)
	}
	var req api.InstanceSnapshotPut
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	return s.start(i.Project, "Updating snapshot", i.resources(), func(*operation) error {
		snap.ExpiresAt = req.ExpiresAt
		return nil
	})
}

func (s *Server) snapshotRename(r *http.Request) answer {
	i, snap, err := s.findSnapshot(r)
	if err != nil {
		return failed(err)
	}
	var req api.InstanceSnapshotPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if req.Migration {
		return failedf(http.StatusNotImplemented, "migration is not known to the daemon in memory")
	}
	if i.find(req.Name) != nil {
		return failedf(http.StatusConflict, "Name '%s/%s' already in use", i.Name, req.Name)
	}
	return s.start(i.Project, "Renaming snapshot", i.resources(), func(*operation) error {
		i.volume.find(snap.Name).name = req.Name
		snap.Name = req.Name
		return nil
	})
}

func (s *Server) snapshotDelete(r *http.Request) answer {
	i, snap, err := s.findSnapshot(r)
	if err != nil {
		return failed(err)
	}
	return s.start(i.Project, "Deleting snapshot", i.resources(), func(*operation) error {
		shares := i.volume.pool.sharesSnapshots()
		s.spend(Work{Verb: "delete", Driver: i.volume.pool.Driver, Bytes: moved(shares, i.volume.find(snap.Name).tree)})
		i.forget(snap)
		return nil
	})
}

// forget removes a snapshot with its data.
func (i *instance) forget(snap *snapshot) {
	if p := i.volume.find(snap.Name); p != nil {
		i.volume.remove(p)
	}
	i.snapshots = slices.DeleteFunc(i.snapshots, func(other *snapshot) bool { return other == snap })
}
