// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// longestBridge is how many characters a network interface's name may have.
const longestBridge = 15

// network is a bridge that the daemon manages.
type network struct{ api.Network }

// networkKeys are the first parts of the keys that bridges have.
var networkKeys = []string{"bgp", "bridge", "dns", "fan", "ipv4", "ipv6", "maas", "raw", "security", "tunnel", "user", "volatile"}

func (s *Server) findNetwork(name string) (*network, error) {
	if n, ok := s.networks[name]; ok {
		return n, nil
	}
	return nil, api.StatusErrorf(http.StatusNotFound, "Network not found")
}

func (s *Server) showNetwork(n *network) api.Network {
	shown := n.Network
	for _, i := range s.allInstances() {
		for _, d := range i.expandedDevices() {
			if d["type"] == "nic" && cmp.Or(d["network"], d["parent"]) == n.Name {
				shown.UsedBy = append(shown.UsedBy, objectPath(i.Project, "instances", i.Name))
			}
		}
	}
	for _, p := range s.allProfiles() {
		for _, d := range p.Devices {
			if d["type"] == "nic" && cmp.Or(d["network"], d["parent"]) == n.Name {
				shown.UsedBy = append(shown.UsedBy, objectPath(p.project, "profiles", p.Name))
			}
		}
	}
	slices.Sort(shown.UsedBy)
	shown.UsedBy = slices.Compact(shown.UsedBy)
	return shown
}

func (s *Server) networksGet(r *http.Request) answer {
	paths, networks := []string{}, []api.Network{}
	for _, name := range slices.Sorted(maps.Keys(s.networks)) {
		paths = append(paths, objectPath("default", "networks", name))
		networks = append(networks, s.showNetwork(s.networks[name]))
	}
	if recursive(r, "1") {
		return value(networks)
	}
	return value(paths)
}

func (s *Server) networkGet(r *http.Request) answer {
	n, err := s.findNetwork(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	return tagged(s.showNetwork(n), n.Name, n.Managed, n.Type, n.Description, n.Config)
}

func (s *Server) networksPost(r *http.Request) answer {
	var req api.NetworksPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	switch {
	case req.Name == "":
		return badRequest("No name provided")
	case len(req.Name) > longestBridge:
		return badRequest("Network interface is too long (maximum %d characters)", longestBridge)
	case req.Type != "" && req.Type != "bridge":
		return badRequest("Unknown driver")
	}
	return s.change("Creating network", http.StatusCreated, func() error {
		if _, taken := s.networks[req.Name]; taken {
			return api.StatusErrorf(http.StatusBadRequest, "The network already exists")
		}
		n := &network{api.Network{
			Name: req.Name, Type: "bridge", Managed: true, Status: api.NetworkStatusCreated, Locations: []string{"none"},
			Description: req.Description, Config: orEmpty(req.Config),
		}}
		s.fillAddresses(n.Config)
		if err := s.checkNetwork(n.Name, n.Config); err != nil {
			return err
		}
		s.networks[n.Name] = n
		return nil
	})
}

// fillAddresses chooses addresses where none are given.
func (s *Server) fillAddresses(config map[string]string) {
	for key, format := range map[string]string{"ipv4": "10.200.%d.1/24", "ipv6": "fd42:1:2:%d::1/64"} {
		address := config[key+".address"]
		if address != "" && address != "auto" {
			continue
		}
		config[key+".address"] = fmt.Sprintf(format, len(s.networks))
		setDefault(config, key+".nat", "true")
	}
}

func (s *Server) checkNetwork(name string, config map[string]string) error {
	for key, value := range config {
		first, _, _ := strings.Cut(key, ".")
		if !slices.Contains(networkKeys, first) {
			return internalf("Invalid option for network %q option %q", name, key)
		}
		if key != "ipv4.address" && key != "ipv6.address" || value == "none" || value == "auto" || value == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(value)
		if err != nil {
			return internalf("Invalid value for network %q option %q: invalid CIDR address: %s", name, key, value)
		}
		for _, other := range s.networks {
			if used, err := netip.ParsePrefix(other.Config[key]); err == nil && other.Name != name && used.Addr() == prefix.Addr() {
				return internalf("The DNS and DHCP service exited prematurely: Process exited with non-zero value 2 "+
					"(\"dnsmasq: failed to create listening socket for %s: Address already in use\")", used.Addr())
			}
		}
	}
	return nil
}

func (s *Server) networkPut(r *http.Request) answer {
	return s.updateNetwork(r, func(_, config map[string]string) map[string]string { return orEmpty(config) })
}

func (s *Server) networkPatch(r *http.Request) answer {
	return s.updateNetwork(r, func(old, config map[string]string) map[string]string {
		merged := maps.Clone(old)
		maps.Copy(merged, config)
		return merged
	})
}

func (s *Server) updateNetwork(r *http.Request, merge func(old, config map[string]string) map[string]string) answer {
	n, err := s.findNetwork(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	var req api.NetworkPut
	if err := errors.Join(decode(r, &req), checkETag(r, n.Name, n.Managed, n.Type, n.Description, n.Config)); err != nil {
		return failed(err)
	}
	return s.change("Updating network", 0, func() error {
		config := merge(n.Config, req.Config)
		if err := s.checkNetwork(n.Name, config); err != nil {
			return err
		}
		n.Config, n.Description = config, req.Description
		return nil
	})
}

func (s *Server) networkDelete(r *http.Request) answer {
	n, err := s.findNetwork(r.PathValue("name"))
	if err != nil {
		return failedf(http.StatusNotFound, "Failed loading network: %s", err.Error())
	}
	return s.change("Deleting network", 0, func() error {
		if len(s.showNetwork(n).UsedBy) > 0 {
			return api.StatusErrorf(http.StatusBadRequest, "The network is currently in use")
		}
		delete(s.networks, n.Name)
		return nil
	})
}
