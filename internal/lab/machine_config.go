// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
)

// rootName is the name of the root disk's device, as LXD itself calls it.
const rootName = "root"

// machineKeys are the configuration keys that are arguments of their own.
var machineKeys = []string{
	"limits.cpu", "limits.memory", keyStateful,
	"cloud-init.user-data", "cloud-init.network-config", "cloud-init.vendor-data",
}

// ownMachineKey says whether a key is kept by the daemon, by us, or is an argument of its own.
func ownMachineKey(key string) bool {
	return internalKey(key) || strings.HasPrefix(key, "image.") || slices.Contains(machineKeys, key)
}

func rootDevice(pool, size string) map[string]string {
	root := map[string]string{"type": "disk", "path": "/", "pool": pool}
	setOrDelete(root, "size", size)
	return root
}

// config is the daemon's configuration for what can be changed in place.
func (s *MachineSpec) config() map[string]string {
	config := maps.Clone(s.Config)
	if config == nil {
		config = map[string]string{}
	}
	if s.CPUs > 0 {
		config["limits.cpu"] = strconv.FormatInt(s.CPUs, 10)
	}
	setOrDelete(config, "limits.memory", s.Memory)
	if s.Checkpointable {
		config[keyStateful] = "true"
	}
	config[keyReady] = s.Ready.encode()
	config[keyRunning] = strconv.FormatBool(s.Running)
	return config
}

// devices are the daemon's devices for a specification.
func (s *MachineSpec) devices() map[string]map[string]string {
	devices := map[string]map[string]string{rootName: rootDevice(s.Pool, s.Disk)}
	for name, nic := range s.Networks {
		device := map[string]string{"type": "nic", "name": name, "network": nic.Network}
		setOrDelete(device, "ipv4.address", nic.IPv4Address)
		setOrDelete(device, "ipv6.address", nic.IPv6Address)
		setOrDelete(device, "hwaddr", nic.HWAddr)
		devices[name] = device
	}
	for name, device := range s.Devices {
		devices[name] = maps.Clone(device)
	}
	return devices
}

// post is the request that makes the machine, stopped, with the uuid that we give it.
func (s *MachineSpec) post(id string) api.InstancesPost {
	post := api.InstancesPost{Name: s.Name, Type: api.InstanceType(s.Type)}
	post.Source = api.InstanceSource{Type: api.SourceTypeImage, Fingerprint: s.Image}
	post.Description = s.Description
	post.Profiles = nonNil(s.Profiles)
	post.Devices = s.devices()
	post.Config = s.config()
	post.Config[keyUUID] = id
	post.Config[keyID] = id
	s.CloudInit.set(post.Config)
	return post
}

// set writes what cloud-init is to do into a configuration.
func (c CloudInit) set(config map[string]string) {
	setOrDelete(config, "cloud-init.user-data", c.UserData)
	setOrDelete(config, "cloud-init.network-config", c.NetworkConfig)
	setOrDelete(config, "cloud-init.vendor-data", c.VendorData)
}

// nonNil makes the daemon apply no profile where null would mean the default one.
func nonNil(profiles []string) []string {
	if profiles == nil {
		return []string{}
	}
	return profiles
}

// machineOf reads a machine from what the daemon says. The declared configuration says which keys the owner wants to
// see beyond those that somebody set.
func machineOf(live *api.Instance, declared map[string]string) *Machine {
	machine := &Machine{
		ID:       MachineID{Project: live.Project, Name: live.Name, UUID: live.Config[keyUUID]},
		Source:   live.Config[keySource],
		Location: live.Location,
	}
	machine.Name, machine.Type, machine.Description = live.Name, live.Type, live.Description
	machine.Image = live.Config["volatile.base_image"]
	machine.Memory = live.Config["limits.memory"]
	machine.CPUs, _ = strconv.ParseInt(live.Config["limits.cpu"], 10, 64) // a set of processors ("0-3") is not a number of them
	machine.Checkpointable = shared.IsTrue(live.Config[keyStateful])
	machine.Profiles = nonNil(live.Profiles)
	machine.Config = shown(live.Config, declared, ownMachineKey)
	if machine.CPUs == 0 && live.Config["limits.cpu"] != "" {
		machine.Config["limits.cpu"] = live.Config["limits.cpu"]
	}
	machine.CloudInit = CloudInit{
		UserData:      live.Config["cloud-init.user-data"],
		NetworkConfig: live.Config["cloud-init.network-config"],
		VendorData:    live.Config["cloud-init.vendor-data"],
	}
	machine.Running = live.StatusCode != api.Stopped
	machine.Ready = decodeReady(live.Config[keyReady])
	machine.ReadyRecorded = live.Config[keyReady] != ""
	machine.Networks, machine.Devices = map[string]NIC{}, map[string]map[string]string{}
	for name, device := range live.Devices {
		switch nic, isNIC := nicOf(name, device); {
		case isNIC:
			machine.Networks[name] = nic
		case device["type"] == "disk" && device["path"] == "/":
			machine.Pool, machine.Disk = device["pool"], device["size"]
		default:
			machine.Devices[name] = device
		}
	}
	if machine.Pool == "" { // the root disk comes from a profile
		for _, device := range live.ExpandedDevices {
			if device["type"] == "disk" && device["path"] == "/" {
				machine.Pool = device["pool"]
			}
		}
	}
	return machine
}

// nicOf reads a network interface, if the device is one that the networks argument can express in full.
func nicOf(name string, device map[string]string) (NIC, bool) {
	expressible := []string{"type", "name", "network", "ipv4.address", "ipv6.address", "hwaddr"}
	for key := range device {
		if !slices.Contains(expressible, key) {
			return NIC{}, false
		}
	}
	if device["type"] != "nic" || device["network"] == "" || (device["name"] != "" && device["name"] != name) {
		return NIC{}, false
	}
	return NIC{
		Network: device["network"], IPv4Address: device["ipv4.address"], IPv6Address: device["ipv6.address"], HWAddr: device["hwaddr"],
	}, true
}
