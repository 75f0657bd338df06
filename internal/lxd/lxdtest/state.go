// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
)

func (s *Server) stateGet(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	return value(i.state())
}

// actions are what can be done to an instance's power, with what LXD calls the operation.
var actions = map[string]string{
	"start": "Starting instance", "stop": "Stopping instance", "restart": "Restarting instance", "freeze": "Freezing instance",
	"unfreeze": "Unfreezing instance",
}

func (s *Server) statePut(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	var req api.InstanceStatePut
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	description, ok := actions[req.Action]
	if !ok {
		return badRequest("Unknown action: '%s'", req.Action)
	}
	return s.start(i.Project, description, i.resources(), func(*operation) error {
		release, err := i.hold(req.Action)
		if err != nil {
			return err
		}
		defer release()
		return s.act(i, req)
	})
}

func (s *Server) act(i *instance, req api.InstanceStatePut) error {
	switch req.Action {
	case "start":
		return s.startInstance(i, req.Stateful)
	case "stop":
		if i.virtual() && i.running() && s.settings.deaf && !req.Force && !req.Stateful {
			return internalf("Failed shutting down instance, status is %q: context deadline exceeded", i.Status)
		}
		return s.stopInstance(i, req.Stateful)
	case "restart":
		if err := s.stopInstance(i, false); err != nil {
			return err
		}
		return s.startInstance(i, false)
	case "freeze", "unfreeze":
		if i.paused && req.Action == "unfreeze" {
			i.goOn()
			return nil
		}
		if !i.running() {
			return internalf("The %s isn't running", i.Type)
		}
		i.setStatus(map[string]api.StatusCode{"freeze": api.Frozen, "unfreeze": api.Running}[req.Action])
	}
	return nil
}

// startInstance starts an instance, from its memory if stateful.
func (s *Server) startInstance(i *instance, stateful bool) error {
	if i.running() {
		return internalf("The instance is already running")
	}
	if stateful && !i.Stateful {
		return internalf("Instance has no existing state to restore")
	}
	if err := s.checkAddresses(i, "start"); err != nil {
		return err
	}
	if err := s.checkStart(i); err != nil {
		return err
	}
	s.spend(Work{Verb: "start", Driver: i.volume.pool.Driver})
	if err := s.fillMemory(i, stateful); err != nil {
		return err
	}
	setDefault(i.Config, "volatile.uuid", uuid.NewString())
	delete(i.Config, "volatile.apply_template")
	i.Config["volatile.last_state.power"] = "RUNNING"
	if i.Type == string(api.InstanceTypeContainer) {
		i.Config["volatile.idmap.current"], i.Config["volatile.last_state.idmap"] = idmap, idmap
	}
	for name, d := range i.expandedDevices() {
		if d["type"] == "nic" {
			i.Config["volatile."+name+".host_name"] = "veth" + strings.ReplaceAll(uuid.NewString(), "-", "")[:8]
		}
	}
	s.lease(i)
	i.Stateful = false
	i.LastUsedAt = time.Now().UTC()
	i.setStatus(api.Running)
	return nil
}

// stopInstance stops an instance, and keeps its memory if stateful. An ephemeral one is gone then.
func (s *Server) stopInstance(i *instance, stateful bool) error {
	if !i.running() {
		return internalf("The instance is already stopped")
	}
	if stateful {
		if err := s.checkMemory(i, "stop"); err != nil {
			return err
		}
		i.Stateful, i.kept = true, i.boot
	}
	s.spend(Work{Verb: "stop", Driver: i.volume.pool.Driver})
	i.Config["volatile.last_state.power"] = "STOPPED"
	for key := range i.Config {
		if strings.HasSuffix(key, ".host_name") {
			delete(i.Config, key)
		}
	}
	i.addresses, i.boot, i.paused = nil, "", false
	i.setStatus(api.Stopped)
	if i.Ephemeral {
		i.remove()
	}
	return nil
}

// checkMemory fails where the memory of an instance cannot be kept, for a stateful "stop" or "snapshot".
func (s *Server) checkMemory(i *instance, purpose string) error {
	switch {
	case i.Type == string(api.InstanceTypeContainer) && s.settings.newer(6, 6):
		text := map[string]string{"stop": "Stateful stop is", "snapshot": "Stateful snapshots are"}[purpose]
		return internalf("%s not supported for containers", text)
	case i.Type == string(api.InstanceTypeContainer):
		return internalf("Unable to create a stateful %s. CRIU isn't installed", purpose)
	case !shared.IsTrue(i.expandedConfig()["migration.stateful"]) && s.settings.newer(5, 21):
		return internalf("Stateful %s requires migration.stateful to be set to true", purpose)
	case !shared.IsTrue(i.expandedConfig()["migration.stateful"]):
		return internalf("Stateful stop requires migration.stateful to be set to true")
	}
	return nil
}

// expireSnapshots removes what has passed its time. LXD looks once a minute.
func (s *Server) expireSnapshots() {
	now := time.Now()
	for _, i := range s.allInstances() {
		for _, snap := range slices.Clone(i.snapshots) {
			if !snap.ExpiresAt.IsZero() && snap.ExpiresAt.Before(now) {
				i.forget(snap)
			}
		}
	}
}
