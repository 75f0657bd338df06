// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// instancePut replaces the whole of an instance, or restores it.
func (s *Server) instancePut(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	var req api.InstancePut
	if err := checkETag(r, i.writable()...); err != nil {
		return failed(err)
	}
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if req.Restore != "" {
		return s.start(i.Project, "Restoring snapshot", i.resources(), func(*operation) error {
			return s.restore(i, req.Restore, req.Stateful)
		})
	}
	return s.start(i.Project, "Updating instance", i.resources(), func(*operation) error {
		for key := range i.Config {
			if _, kept := req.Config[key]; strings.HasPrefix(key, "volatile.idmap") && !kept {
				return internalf("Volatile idmap keys can't be deleted by the user")
			}
		}
		return s.update(i, req)
	})
}

// instancePatch changes parts of an instance: keys that are not given stay, devices that are given replace those of the
// same name.
func (s *Server) instancePatch(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	if err := checkETag(r, i.writable()...); err != nil {
		return failed(err)
	}
	var given map[string]json.RawMessage
	if err := decode(r, &given); err != nil {
		return failed(err)
	}
	if _, ok := given["restore"]; ok {
		return badRequest("Can't call PATCH in restore mode")
	}
	put := i.Writable()
	put.Config, put.Devices = maps.Clone(put.Config), maps.Clone(put.Devices)
	var errs []error
	for part, into := range map[string]any{
		"architecture": &put.Architecture, "config": &put.Config, "devices": &put.Devices, "ephemeral": &put.Ephemeral,
		"profiles": &put.Profiles, "description": &put.Description,
	} {
		if data, ok := given[part]; ok {
			errs = append(errs, json.Unmarshal(data, into)) // Into a map that is there it merges.
		}
	}
	if err := errors.Join(errs...); err != nil {
		return badRequest("%s", err.Error())
	}
	return done(s.update(i, put))
}

func (s *Server) update(i *instance, put api.InstancePut) error {
	release, err := i.hold("update")
	if err != nil {
		return err
	}
	defer release()
	for _, name := range put.Profiles {
		if _, ok := i.in.profiles[name]; !ok {
			return internalf("Requested profile %q doesn't exist", name)
		}
	}
	maps.DeleteFunc(put.Config, func(_, v string) bool { return v == "" })
	maps.DeleteFunc(put.Devices, func(_ string, d map[string]string) bool { return d == nil })
	old := i.Instance
	i.SetWritable(put)
	i.Config, i.Devices = orEmpty(put.Config), orEmpty(put.Devices)
	i.Profiles = append([]string{}, put.Profiles...)
	i.Stateful = old.Stateful
	err = i.checkLive(old.Config)
	if err == nil {
		err = s.checkUpdate(i)
	}
	if err != nil {
		i.Instance = old
		return err
	}
	i.nameInterfaces()
	if i.running() {
		s.lease(i)
	}
	return nil
}

func (s *Server) checkUpdate(i *instance) error {
	if err := i.checkConfig(); err != nil {
		return fmt.Errorf("Invalid config: %w", err) //nolint:staticcheck // LXD's words.
	}
	if err := s.checkDevices(i); err != nil {
		return err
	}
	name, err := i.rootPool()
	if err != nil {
		return internalf("Invalid devices: %s", err.Error())
	}
	if name != i.volume.pool.Name {
		return internalf("Cannot update root disk device pool name to %q", name)
	}
	return s.checkAddresses(i, "update")
}
