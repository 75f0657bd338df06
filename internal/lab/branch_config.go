// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
)

// placeholder is a device that is none: it keeps the source's of that name, or a profile's, from coming along.
var placeholder = map[string]string{"type": "none"}

// neverInherited are the prefixes of configuration keys that are about the source and not about what is on its disk:
// that the host starts it, that nobody may delete it, the snapshots that the daemon takes and deletes, and our own.
var neverInherited = []string{"boot.autostart", "security.protection.delete", "snapshots.", keyPrefix}

// neutral are the values that undo what a profile says.
var neutral = map[string]struct {
	applies func(value string) bool
	value   string
}{
	"boot.autostart":             {shared.IsTrue, "false"},
	"security.protection.delete": {shared.IsTrue, "false"},
	"snapshots.schedule":         {func(value string) bool { return value != "" }, "@never"},
}

// cleared is what a branch is asked for so that it does not inherit what is not on its disk. An empty value removes a key.
func (o *origin) cleared() map[string]string {
	config := map[string]string{}
	for key := range o.config {
		if slices.ContainsFunc(neverInherited, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			config[key] = ""
		}
	}
	for key, undo := range neutral {
		_, own := o.config[key]
		if value := o.expandedConfig[key]; !own && undo.applies(value) {
			config[key] = undo.value
		}
	}
	return config
}

// fixedAddresses are the parts of a network interface that only one machine can have.
var fixedAddresses = []string{"hwaddr", "host_name", "ipv4.address", "ipv6.address"}

// inherited are the devices that a branch takes over from its source.
func (o *origin) inherited() map[string]map[string]string {
	devices := map[string]map[string]string{}
	for name, device := range o.devices {
		if o.onlyForOne(device) {
			continue
		}
		device = maps.Clone(device)
		if device["type"] == "nic" || device["type"] == "infiniband" {
			for _, key := range fixedAddresses {
				delete(device, key)
			}
		}
		devices[name] = device
	}
	return devices
}

// madeByDaemon are the sources of disks that the daemon makes for each machine anew.
var madeByDaemon = []string{"cloud-init:config", "agent:config", "tmpfs:", "ramfs:"}

// onlyForOne says whether a device cannot be had twice, or would let a branch write what its source reads.
func (o *origin) onlyForOne(device map[string]string) bool {
	switch device["type"] {
	case "proxy":
		return device["bind"] == "" || device["bind"] == "host" // it listens on the host
	case "pci":
		return true
	case "gpu":
		return o.live.Type == TypeVirtualMachine // passed through, not shared
	case "nic":
		return device["nictype"] == "physical"
	case "disk":
		// What is not the root disk lies outside of it: a volume, or a directory of the host.
		return !isRoot(device) && !shared.IsTrue(device["readonly"]) && !slices.Contains(madeByDaemon, device["source"])
	default:
		return false
	}
}

// overlay puts the devices that are asked for in the place of those that are there. The arguments that are not given
// leave theirs as they are.
func (s *BranchSpec) overlay(base map[string]map[string]string) map[string]map[string]string {
	devices := map[string]map[string]string{}
	for name, device := range base {
		_, isNIC := nicOf(name, device)
		switch {
		case isNIC && s.Networks != nil, !isNIC && !isRoot(device) && s.Devices != nil:
		default:
			devices[name] = device
		}
	}
	for name, device := range s.devices() {
		if name != rootName {
			devices[name] = device
		}
	}
	return devices
}

// withDisk gives the root disk of a branch the size that is asked for. One that comes from a profile is made its own.
func (s *BranchSpec) withDisk(devices map[string]map[string]string, name string, root map[string]string) {
	if s.Disk == "" {
		return
	}
	root = maps.Clone(root)
	root["size"] = s.Disk
	devices[name] = root
}

// post is the request that makes the branch, stopped, with the uuid that we give it.
func (s *BranchSpec) post(from *origin, id string) api.InstancesPost {
	post := api.InstancesPost{Name: s.Name, Type: api.InstanceType(from.live.Type)}
	post.Source = api.InstanceSource{
		Type: api.SourceTypeCopy, Source: from.source.path(), Project: from.source.Machine.Project,
		InstanceOnly: true, // with its snapshots, a copy would not be cheap on some drivers
	}
	post.Description = s.Description
	if s.Description == "" {
		post.Description = from.live.Description
	}
	// Without a word the daemon takes those of the source or none, depending on its version.
	post.Profiles = nonNil(from.profiles)
	if s.Profiles != nil {
		post.Profiles = s.Profiles
	}
	post.Config = from.cleared()
	maps.Copy(post.Config, s.config())
	post.Config[keyUUID], post.Config[keyID] = id, id
	post.Config[keySource] = s.Source.String()
	s.CloudInit.set(post.Config)
	post.Devices = s.devicesOf(from)
	for name := range from.devices {
		if _, ok := post.Devices[name]; !ok {
			post.Devices[name] = placeholder
		}
	}
	if s.renewsWithin(from) {
		detach(post.Devices, from.expandedDevices)
	}
	return post
}

// detach takes a machine off all networks, those that its profiles bring included.
func detach(devices, expanded map[string]map[string]string) {
	for _, all := range []map[string]map[string]string{devices, expanded} {
		for name, device := range all {
			if device["type"] == "nic" {
				devices[name] = placeholder
			}
		}
	}
}

// devicesOf are the devices that the branch of a source has in the end.
func (s *BranchSpec) devicesOf(from *origin) map[string]map[string]string {
	devices := s.overlay(from.inherited())
	s.withDisk(devices, from.rootName, from.expandedDevices[from.rootName])
	if s.WithMemory {
		s.plugOff(devices, from)
	}
	return devices
}
