// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
	"github.com/canonical/lxd/shared/units"
)

// pool is a storage pool. UsedBy is filled when it is shown.
type pool struct {
	api.StoragePool
	images  map[string]tree // unpacked, by fingerprint
	deleted []*volume       // gone for the API, but clones depend on them
	size    int64           // bytes that the pool really has
	quotas  bool            // whether the file system counts each volume, as btrfs does once a container has had a limit
}

func (s *Server) findPool(name string) (*pool, error) {
	if p, ok := s.pools[name]; ok {
		return p, nil
	}
	return nil, api.StatusErrorf(http.StatusNotFound, "Storage pool not found")
}

func (s *Server) poolsGet(r *http.Request) answer {
	var names []string
	var pools []api.StoragePool
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		names = append(names, objectPath("default", "storage-pools", name))
		pools = append(pools, s.showPool(s.pools[name]))
	}
	if recursive(r, "1") {
		return value(pools)
	}
	return value(names)
}

func (s *Server) showPool(p *pool) api.StoragePool {
	shown := p.StoragePool
	for fingerprint := range p.images {
		shown.UsedBy = append(shown.UsedBy, objectPath("default", "images", fingerprint))
	}
	for _, i := range s.allInstances() {
		if i.volume.pool != p {
			continue
		}
		shown.UsedBy = append(shown.UsedBy, objectPath(i.Project, "instances", i.Name))
		for _, snap := range i.snapshots {
			shown.UsedBy = append(shown.UsedBy, objectPath(i.Project, "instances", i.Name, "snapshots", snap.Name))
		}
	}
	for _, profile := range s.allProfiles() {
		for _, d := range profile.Devices {
			if d["type"] == "disk" && d["pool"] == p.Name {
				shown.UsedBy = append(shown.UsedBy, objectPath(profile.project, "profiles", profile.Name))
			}
		}
	}
	slices.Sort(shown.UsedBy)
	return shown
}

func (s *Server) poolGet(r *http.Request) answer {
	p, err := s.findPool(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	return tagged(s.showPool(p), p.Name, p.Driver, p.Description, p.Config)
}

func (s *Server) poolsPost(r *http.Request) answer {
	var req api.StoragePoolsPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	switch {
	case req.Name == "":
		return badRequest("No name provided")
	case strings.Contains(req.Name, "/"):
		return badRequest("Storage pool names may not contain slashes")
	case req.Driver == "":
		return badRequest("No driver provided")
	}
	return s.change("Creating storage pool", http.StatusCreated, func() error { return s.createPool(req) })
}

func (s *Server) createPool(req api.StoragePoolsPost) error {
	if _, taken := s.pools[req.Name]; taken {
		return api.StatusErrorf(http.StatusConflict, "The storage pool already exists: The record already exists")
	}
	if strings.ContainsAny(req.Name, " \t\n") {
		return internalf("Storage name cannot contain white space")
	}
	if err := s.settings.checkDriver(req.Driver); err != nil {
		return err
	}
	if err := checkPoolConfig(req.Driver, req.Config); err != nil {
		return err
	}
	for _, other := range s.pools {
		if source := req.Config["source"]; source != "" && other.Config["source"] == source && s.settings.newer(6, 6) {
			return internalf("Cannot use source %q as it's already in use by pool %q", source, other.Name)
		}
	}
	p := &pool{images: map[string]tree{}, StoragePool: api.StoragePool{
		Name: req.Name, Driver: req.Driver, Description: req.Description, Status: api.StoragePoolStatusCreated,
		Config: maps.Clone(req.Config), Locations: []string{"none"},
	}}
	if p.Config == nil {
		p.Config = map[string]string{}
	}
	if err := p.layOut(s.settings.disk); err != nil {
		return err
	}
	s.pools[p.Name] = p
	if !slices.Contains(s.settings.listed, p.Driver) {
		// Making a pool is what has LXD look for drivers again.
		s.settings.listed = append(slices.Clone(s.settings.listed), p.Driver)
	}
	return nil
}

// layOut gives a new pool its space.
func (p *pool) layOut(disk Disk) error {
	switch {
	case p.Driver == "dir":
		setDefault(p.Config, "source", "/var/lib/lxd/storage-pools/"+p.Name)
		return nil
	case p.Config["source"] == "" && p.Driver != "ceph":
		setDefault(p.Config, "size", units.GetByteSizeStringIEC(sizeDefault(disk), 0))
		p.Config["source"] = "/var/lib/lxd/disks/" + p.Name + ".img"
	case p.Config["size"] == "":
		p.size = disk.Total
		return nil
	}
	size, err := units.ParseByteSizeString(p.Config["size"])
	if err != nil {
		return err
	}
	if least := storageDrivers[p.Driver].minimum; size < least {
		return internalf("Failed to format sparse file: Failed to run: mkfs.btrfs -L %s %s: exit status 1 (ERROR: minimum size for each btrfs device is %d)",
			p.Name, p.Config["source"], least)
	}
	p.size = size
	return nil
}

func setDefault(config map[string]string, key, value string) {
	if config[key] == "" {
		config[key] = value
	}
}

func (s *Server) poolDelete(r *http.Request) answer {
	p, err := s.findPool(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	return s.change("Deleting storage pool", 0, func() error {
		for _, user := range s.showPool(p).UsedBy {
			if !strings.HasPrefix(user, "/1.0/images/") { // Unpacked images go with the pool.
				return api.StatusErrorf(http.StatusBadRequest, "The storage pool is currently in use")
			}
		}
		delete(s.pools, p.Name)
		return nil
	})
}
