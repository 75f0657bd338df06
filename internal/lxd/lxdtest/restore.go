// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"slices"
)

// restore puts an instance back to a snapshot. Like LXD it stops a running one first, and leaves it stopped when
// something fails then.
func (s *Server) restore(i *instance, name string, stateful bool) error {
	snap := i.find(name)
	if snap == nil {
		return internalf("Snapshot %s/%s does not exist", i.Name, name)
	}
	release, err := i.hold("restore")
	if err != nil {
		return err
	}
	defer release()

	wasRunning := i.running()
	if wasRunning {
		ephemeral := i.Ephemeral
		i.Ephemeral = false // Else the stop would delete it.
		err := s.stopInstance(i, false)
		i.Ephemeral = ephemeral
		if err != nil {
			return err
		}
	}
	if s.settings.newer(6, 9) {
		// The configuration goes first there, and stays when the disk is refused.
		s.restoreConfig(i, snap)
	}
	if err := s.restoreDisk(i, snap); err != nil {
		return err
	}
	s.restoreConfig(i, snap)
	i.Stateful = stateful && (snap.Stateful || i.virtual()) // LXD does not look whether there is a memory
	i.kept = snap.boot
	if wasRunning || i.Stateful {
		err := s.startInstance(i, i.Stateful)
		i.Stateful = false
		return err
	}
	return nil
}

func (s *Server) restoreDisk(i *instance, snap *snapshot) error {
	p := i.volume.find(snap.Name)
	later, err := i.volume.restorable(p)
	if err != nil {
		return err
	}
	for _, name := range later {
		i.forget(i.find(name))
	}
	s.spend(Work{Verb: "restore", Driver: i.volume.pool.Driver, Bytes: i.volume.restoreBytes(p)})
	i.volume.restore(p)
	return nil
}

func (s *Server) restoreConfig(i *instance, snap *snapshot) {
	power := i.Config["volatile.last_state.power"]
	i.Architecture, i.Ephemeral = snap.Architecture, snap.Ephemeral
	i.Config, i.Devices = maps.Clone(snap.Config), maps.Clone(snap.Devices)
	if power != "" {
		i.Config["volatile.last_state.power"] = power
	}
	i.Description = ""
	if s.settings.newer(5, 21) {
		i.Description, i.Profiles = snap.description, slices.Clone(snap.Profiles)
	}
}
