// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// copySource finds what an instance is to be a copy of: an instance, and its snapshot if one is named.
func (s *Server) copySource(in *project, req *api.InstancesPost) (*instance, *snapshot, error) {
	source := in
	if name := req.Source.Project; name != "" {
		var ok bool
		if source, ok = s.projects[name]; !ok {
			return nil, nil, api.StatusErrorf(http.StatusNotFound, "Failed to fetch instance %q in project %q: Instance not found", req.Source.Source, name)
		}
	}
	if req.Source.Source == "" {
		return nil, nil, api.StatusErrorf(http.StatusBadRequest, "Must specify a source instance")
	}
	name, snapName, isSnapshot := strings.Cut(req.Source.Source, "/")
	i, ok := source.instances[name]
	if !ok {
		return nil, nil, api.StatusErrorf(http.StatusNotFound, "Failed to fetch instance %q in project %q: Instance not found", name, source.Name)
	}
	var snap *snapshot
	if isSnapshot {
		if snap = i.find(snapName); snap == nil {
			return nil, nil, snapshotNotFound(i, snapName)
		}
	}
	if req.Stateful && req.Name != name {
		if s.settings.newer(5, 21) {
			return nil, nil, api.StatusErrorf(http.StatusBadRequest, "Instance name cannot be changed during stateful copy (%q to %q)", name, req.Name)
		}
		return nil, nil, api.StatusErrorf(http.StatusBadRequest, "Copying stateful instances requires that source %q and target %q name be identical", name, req.Name)
	}
	return i, snap, nil
}

// survives tells whether a copy keeps a key of its source.
func survives(key string) bool {
	return !strings.HasPrefix(key, "volatile.") || key == "volatile.base_image" || key == "volatile.last_state.idmap"
}

// fillFromCopy gives an instance the configuration and data of another, or of its snapshot.
func (s *Server) fillFromCopy(i *instance, req *api.InstancesPost, source *instance, from *snapshot) error {
	config, devices, profiles := source.Config, source.Devices, source.Profiles
	if from != nil {
		config, devices, profiles = from.Config, from.Devices, from.Profiles
	}
	config = maps.Clone(config)
	maps.DeleteFunc(config, func(key, _ string) bool { return !survives(key) })
	maps.Copy(config, i.Config)
	devices = maps.Clone(devices)
	maps.Copy(devices, i.Devices)
	i.Config, i.Devices, i.Type = config, devices, source.Type
	if i.Profiles == nil && s.settings.newer(6, 9) {
		i.Profiles = slices.Clone(profiles)
	}
	i.Stateful = req.Stateful && from != nil && from.Stateful
	if i.Stateful {
		i.kept = from.boot
	}
	withSnapshots := from == nil && !req.Source.InstanceOnly && !req.Source.ContainerOnly && len(source.snapshots) > 0
	return s.register(i, "copy", func(p *pool) (*volume, error) {
		v, err := s.copyVolume(p, source, from, withSnapshots)
		if err != nil || !withSnapshots {
			return v, err
		}
		for _, snap := range source.snapshots {
			c := *snap
			c.Stateful = false // LXD forgets that the memory is there.
			i.snapshots = append(i.snapshots, &c)
		}
		return v, nil
	})
}

// copyVolume copies the data of an instance, or of its snapshot, to a pool.
func (s *Server) copyVolume(p *pool, source *instance, from *snapshot, withSnapshots bool) (*volume, error) {
	if source.busy == "restore" {
		return nil, internalf("lstat /var/lib/lxd/storage-pools/%s/containers/%s: no such file or directory", source.volume.pool.Name, source.Name)
	}
	origin := source.volume
	var point *point
	content := origin.live
	if from != nil {
		point = origin.find(from.Name)
		content = point.tree
	}
	shares := p == origin.pool && p.sharesCopies(withSnapshots)
	s.spend(Work{Verb: "copy", Driver: p.Driver, Bytes: moved(shares, content)})
	if !shares {
		if err := s.room(p, content.bytes()); err != nil {
			return nil, err
		}
	}
	v := &volume{pool: p, live: content.copy()}
	if p == origin.pool {
		v = origin.clone(point, withSnapshots)
	}
	if !withSnapshots {
		return v, nil
	}
	for _, snap := range source.snapshots {
		old := origin.find(snap.Name)
		s.spend(Work{Verb: "copy", Driver: p.Driver, Bytes: moved(shares, old.tree)})
		v.points = append(v.points, newPoint(v, snap.Name, duplicate(shares, old.tree)))
	}
	return v, nil
}
