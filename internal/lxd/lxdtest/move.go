// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/canonical/lxd/shared/api"
)

// instancePost renames an instance, or moves it to another project.
func (s *Server) instancePost(r *http.Request) answer {
	body, err := readBody(r)
	if err != nil {
		return failed(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req api.InstancePost
	if err := json.Unmarshal(body, &req); err != nil || !req.Migration || req.Project == "" || req.Pool != "" {
		return s.instanceRename(r)
	}
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	return s.start(i.Project, "Migrating instance", i.resources(), func(*operation) error {
		return s.move(i, req)
	})
}

// move makes a copy of an instance in another project and deletes the original, as LXD does. It keeps all of the
// configuration, the uuid among it, and the memory that is on its disk.
func (s *Server) move(i *instance, req api.InstancePost) error {
	to, ok := s.projects[req.Project]
	switch {
	case !ok:
		return internalf("Failed creating instance record: Failed loading project: Project not found")
	case i.running() && !req.Live:
		return api.StatusErrorf(http.StatusBadRequest, "Instance must be stopped to move between projects statelessly")
	case i.running():
		return internalf("moving instances that run is not known to the daemon in memory")
	}
	for _, name := range i.Profiles {
		if _, ok := to.profiles[name]; !ok {
			return internalf("Profile not found")
		}
	}
	moved := &instance{in: to, Instance: i.Instance, kept: i.kept}
	moved.Project = to.Name
	moved.Config, moved.Devices, moved.Profiles = maps.Clone(i.Config), maps.Clone(i.Devices), slices.Clone(i.Profiles)
	if req.Name != "" {
		moved.Name = req.Name
	}
	template, templated := i.Config["volatile.apply_template"]
	err := s.register(moved, "copy", func(p *pool) (*volume, error) { return s.copyVolume(p, i, nil, false) })
	if err != nil {
		return err
	}
	delete(moved.Config, "volatile.apply_template") // A move is nothing that the guest is to be told of.
	if templated {
		moved.Config["volatile.apply_template"] = template
	}
	i.remove()
	return nil
}

// checkShape fails if an instance does not have the network interfaces that the memory on its disk knows of: QEMU takes a
// guest back only into a machine of the same devices.
func (s *Server) checkShape(i *instance) error {
	for _, source := range s.allInstances() {
		for _, snap := range source.snapshots {
			if snap.boot == "" || snap.boot != i.kept {
				continue
			}
			then := instance{in: source.in, Instance: api.Instance{Profiles: snap.Profiles, Devices: snap.Devices}}
			if want, got := then.interfaces(), i.interfaces(); !slices.Equal(want, got) {
				return internalf("Failed restoring state: Unknown savevm section or instance 'virtio-net' (the guest had %v, the machine has %v)", want, got)
			}
			return nil
		}
	}
	return nil
}

// interfaces names the network interfaces of an instance in order.
func (i *instance) interfaces() []string {
	names := []string{}
	for name, device := range i.expandedDevices() {
		if device["type"] == "nic" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
