// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
	"github.com/canonical/lxd/shared/units"
	"github.com/google/uuid"
)

const (
	// stateBytes is what the memory of a guest takes, in compressed form.
	stateBytes = 38 << 20
	// freshBytes is what btrfs says of a snapshot that it has not counted yet.
	freshBytes = 16 << 10
)

// WithMemoryFaults makes the daemon fail with a text at what it does with the memory of virtual machines: at a "dump",
// when the guest is paused already, or a "resume". Nothing fails where the text is empty. It may take its time.
func WithMemoryFaults(f func(verb string) string) Option {
	return func(s *settings) { s.memoryFaults = f }
}

// WithDeafGuests makes guests of virtual machines ignore that they are to shut down, or heed it again.
func WithDeafGuests(deaf bool) Option { return func(s *settings) { s.deaf = deaf } }

// Boot returns which boot of an instance its memory is of: another one after each start, but for one from kept memory. It
// is empty while the instance is stopped.
func (s *Server) Boot(project, name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.projects[project].instances[name].boot
}

// memoryFault fails if it is to. The caller holds the lock, which is given up meanwhile.
func (s *Server) memoryFault(verb string) error {
	f := s.settings.memoryFaults
	if f == nil {
		return nil
	}
	s.mu.Unlock()
	text := f(verb)
	s.mu.Lock()
	if text == "" {
		return nil
	}
	return internalf("%s", text)
}

func (i *instance) virtual() bool { return i.Type == string(api.InstanceTypeVM) }

// checkStart fails where LXD does not start a virtual machine whose memory may have to be kept: up to 6.1 there must be
// room for it.
func (s *Server) checkStart(i *instance) error {
	if !i.virtual() || !shared.IsTrue(i.expandedConfig()["migration.stateful"]) {
		return nil
	}
	for _, device := range i.expandedDevices() {
		if slices.Contains([]string{"pci", "gpu", "usb", "tpm"}, device["type"]) {
			return internalf("%s devices cannot be used when migration.stateful is enabled", strings.ToUpper(device["type"]))
		}
		if device["type"] != "disk" || device["path"] != "/" || s.settings.newer(6, 2) {
			continue
		}
		room, memory := device["size.state"], i.expandedConfig()["limits.memory"]
		if room == "" {
			room = "100MB"
		}
		if memory == "" {
			memory = "1GiB"
		}
		has, _ := units.ParseByteSizeString(room)
		wants, _ := units.ParseByteSizeString(memory)
		if has < wants {
			return internalf("Stateful start requires that the instance limits.memory is less than size.state on the root disk device")
		}
	}
	return nil
}

// fillMemory gives a starting instance its memory: that which was kept, or that of a new boot.
func (s *Server) fillMemory(i *instance, stateful bool) error {
	if stateful && i.virtual() {
		if err := s.checkShape(i); err != nil {
			return err
		}
	}
	kept := i.kept
	i.boot, i.kept = uuid.NewString(), ""
	if !stateful || !i.virtual() {
		return nil
	}
	if err := s.memoryFault("resume"); err != nil {
		i.boot = ""
		return fmt.Errorf("Failed restoring state from %q: %w", "/var/lib/lxd/virtual-machines/"+i.Name+"/state", err) //nolint:staticcheck // LXD's words.
	}
	if kept == "" {
		i.boot = ""
		return internalf("Failed opening state file %q: no such file or directory", "/var/lib/lxd/virtual-machines/"+i.Name+"/state")
	}
	i.boot = kept
	return nil
}

// pause stops a guest for its memory to be dumped. LXD 5.0 takes QEMU's state for that of a machine that is stopped.
func (s *Server) pause(i *instance) {
	i.paused = true
	i.setStatus(api.Stopped)
	if s.settings.newer(5, 21) {
		i.setStatus(api.Frozen)
	}
}

func (i *instance) goOn() {
	i.paused = false
	i.setStatus(api.Running)
}

// countSpace brings up to date what the pool says of its snapshots, as the making of a volume does.
func (p *pool) countSpace(all []*instance) {
	for _, i := range all {
		if i.volume == nil || i.volume.pool != p {
			continue
		}
		for _, snap := range i.snapshots {
			if snap.Size == freshBytes {
				snap.Size = stateBytes
			}
		}
	}
}

// snapshotSize is what LXD says of the size of a new snapshot: nothing, unless the pool keeps quotas.
func (i *instance) snapshotSize(stateful bool) int64 {
	if stateful && i.volume.pool.quotas {
		return freshBytes
	}
	return sizeUnknown
}

// liveKeys are the prefixes of keys that can be changed on a virtual machine that runs.
var liveKeys = []string{"boot.", "cloud-init.", "cluster.", "environment.", "image.", "snapshots.", "user.", "volatile."}

// checkLive fails if a change cannot be made on a virtual machine that runs.
func (i *instance) checkLive(old map[string]string) error {
	if !i.virtual() || !i.running() {
		return nil
	}
	for _, config := range []map[string]string{old, i.Config} {
		for key := range config {
			if old[key] != i.Config[key] && !slices.ContainsFunc(liveKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
				return internalf("Key %q cannot be updated when VM is running", key)
			}
		}
	}
	return nil
}
