// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
	"github.com/canonical/lxd/shared/units"
)

// configParts are the first parts of the keys that instances have.
var configParts = []string{
	"agent", "boot", "cloud-init", "cluster", "environment", "image", "limits", "linux", "migration", "nvidia", "raw", "security",
	"snapshots", "user", "volatile",
}

// vmOnly are keys that containers do not have.
var vmOnly = []string{"migration.stateful", "security.secureboot", "security.agent.metrics", "limits.memory.hugepages"}

// checkConfig fails if the instance has a key that LXD does not know, or a value that it does not take.
func (i *instance) checkConfig() error {
	for _, key := range slices.Sorted(maps.Keys(i.Config)) {
		first, _, dotted := strings.Cut(key, ".")
		if !dotted || !slices.Contains(configParts, first) || i.Type == string(api.InstanceTypeContainer) && slices.Contains(vmOnly, key) {
			return internalf("Unknown configuration key: %s", key)
		}
		v := i.Config[key]
		if key == "limits.memory" && !strings.HasSuffix(v, "%") {
			if _, err := units.ParseByteSizeString(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDevices fails if a device names what is not there.
func (s *Server) checkDevices(i *instance) error {
	devices := i.expandedDevices()
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		d := devices[name]
		if d["type"] != "nic" || d["network"] == "" {
			continue
		}
		n, err := s.findNetwork(d["network"])
		if err != nil {
			return internalf("Invalid devices: Device validation failed for %q: Failed loading device %q: Failed to load network %q for project %q: %s",
				name, name, d["network"], i.Project, err.Error())
		}
		address, err := netip.ParseAddr(d["ipv4.address"])
		if err != nil {
			continue // None is given.
		}
		if subnet, err := netip.ParsePrefix(n.Config["ipv4.address"]); err == nil && !subnet.Contains(address) {
			return internalf("Invalid devices: Device validation failed for %q: Device IP address %q not within network %q subnet", name, address, n.Name)
		}
	}
	return nil
}

// checkAddresses fails if another instance has a fixed address of this one. LXD looks when a device changes and when an
// instance starts, but not at a copy.
func (s *Server) checkAddresses(i *instance, doing string) error {
	for name, d := range i.expandedDevices() {
		for _, other := range s.allInstances() {
			if other == i || d["type"] != "nic" || d["ipv4.address"] == "" {
				continue
			}
			for _, theirs := range other.expandedDevices() {
				if theirs["network"] == d["network"] && theirs["ipv4.address"] == d["ipv4.address"] {
					return api.StatusErrorf(http.StatusConflict, "Failed %s validation for device %q: IP address %q already defined on another NIC",
						doing, name, d["ipv4.address"])
				}
			}
		}
	}
	return nil
}

// lease gives each interface of a starting instance its address.
func (s *Server) lease(i *instance) {
	i.addresses = map[string]string{}
	for name, d := range i.expandedDevices() {
		n, ok := s.networks[cmp.Or(d["network"], d["parent"])]
		if d["type"] != "nic" || !ok {
			continue
		}
		subnet, err := netip.ParsePrefix(n.Config["ipv4.address"])
		if err != nil {
			continue // The network has no IPv4.
		}
		address := d["ipv4.address"]
		for next := subnet.Addr().Next(); address == ""; next = next.Next() {
			if !s.leased(n.Name, next.String()) {
				address = next.String()
			}
		}
		i.addresses[name] = address
	}
}

// leased tells whether an address is some instance's, now or for good.
func (s *Server) leased(network, address string) bool {
	for _, i := range s.allInstances() {
		for name, d := range i.expandedDevices() {
			if cmp.Or(d["network"], d["parent"]) == network && (i.addresses[name] == address || d["ipv4.address"] == address) {
				return true
			}
		}
	}
	return false
}

// state is what the instance does now.
func (i *instance) state() api.InstanceState {
	state := api.InstanceState{Status: i.Status, StatusCode: i.StatusCode, Disk: map[string]api.InstanceStateDisk{}}
	if size := i.expandedDevices()["root"]["size"]; size != "" {
		state.Disk["root"] = api.InstanceStateDisk{Usage: i.volume.live.bytes()}
	}
	if !i.running() {
		return state
	}
	state.Pid, state.Processes = 1000, 2
	state.Network = map[string]api.InstanceStateNetwork{"lo": {
		State: "up", Type: "loopback", Mtu: 65536,
		Addresses: []api.InstanceStateNetworkAddress{{Family: "inet", Address: "127.0.0.1", Netmask: "8", Scope: "local"}},
	}}
	for name, d := range i.expandedDevices() {
		if d["type"] != "nic" {
			continue
		}
		shown := api.InstanceStateNetwork{
			State: "up", Type: "broadcast", Mtu: 1500, HostName: i.Config["volatile."+name+".host_name"],
			Hwaddr: cmp.Or(d["hwaddr"], i.Config["volatile."+name+".hwaddr"]),
		}
		if address := i.addresses[name]; address != "" {
			shown.Addresses = append(shown.Addresses, api.InstanceStateNetworkAddress{Family: "inet", Address: address, Netmask: "24", Scope: "global"})
		}
		shown.Addresses = append(shown.Addresses, api.InstanceStateNetworkAddress{
			Family: "inet6", Address: "fe80::" + fmt.Sprintf("%x", len(name)), Netmask: "64", Scope: "link",
		})
		state.Network[cmp.Or(d["name"], name)] = shown
	}
	return state
}
