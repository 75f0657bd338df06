// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"

	"github.com/canonical/lxd/shared/api"
)

// volumesOn returns the volumes of a pool that belong to a project: those of its instances, their snapshots, and the
// images that are unpacked there.
func (s *Server) volumesOn(p *pool, in *project) []api.StorageVolume {
	volumes := []api.StorageVolume{}
	add := func(name, kind, user string) {
		volumes = append(volumes, api.StorageVolume{
			Name: name, Type: kind, ContentType: "filesystem", Location: "none", Project: in.Name, Config: map[string]string{}, UsedBy: []string{user},
		})
	}
	for _, name := range slices.Sorted(maps.Keys(in.instances)) {
		i := in.instances[name]
		if i.volume.pool != p {
			continue
		}
		add(i.Name, i.Type, objectPath(in.Name, "instances", i.Name))
		for _, snap := range i.snapshots {
			add(i.Name+"/"+snap.Name, i.Type, objectPath(in.Name, "instances", i.Name, "snapshots", snap.Name))
		}
	}
	for _, f := range slices.Sorted(maps.Keys(p.images)) {
		add(f, "image", objectPath(in.Name, "images", f))
	}
	return volumes
}

func (s *Server) volumesGet(r *http.Request) answer {
	p, err := s.findPool(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	volumes := s.volumesOn(p, s.project(r))
	if recursive(r, "1") {
		return value(volumes)
	}
	paths := []string{}
	for _, v := range volumes {
		paths = append(paths, objectPath(projectOf(r), "storage-pools", p.Name, "volumes", v.Type, v.Name))
	}
	return value(paths)
}

func (s *Server) volumeGet(r *http.Request) answer {
	p, err := s.findPool(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	for _, v := range s.volumesOn(p, s.project(r)) {
		if v.Type == r.PathValue("type") && v.Name == r.PathValue("volume") {
			return tagged(v, v.Name, v.Type, v.Config)
		}
	}
	return failedf(http.StatusNotFound, "Storage pool volume not found")
}

// volumeRest refuses what is below a volume: on btrfs without quotas LXD does so for its state, too.
func (s *Server) volumeRest(*http.Request) answer {
	return failed(internalf("Not supported"))
}
