// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
)

// NoAddress stands for the address of a bridge that has none of a family.
const NoAddress = "none"

// bridge is the type of the networks that we make, in LXD's words.
const bridge = "bridge"

// NetworkSpec is a managed bridge with DHCP and DNS as it should be.
type NetworkSpec struct {
	Name, Description string
	// IPv4Address and IPv6Address are the bridge's own, in CIDR form, or [NoAddress]; empty lets the daemon choose at creation.
	IPv4Address, IPv6Address string
	// NAT lets the machines reach beyond the host, in each family that the bridge has an address of.
	NAT bool
	// DNSDomain is the domain of the machines' names; empty leaves the daemon's default ("lxd").
	DNSDomain string
	Config    map[string]string
}

// Network is a network as the daemon has it.
type Network struct{ NetworkSpec }

// HasAddress says whether the bridge has an address of its own, of any family.
func (n *Network) HasAddress() bool { return n.IPv4Address != NoAddress || n.IPv6Address != NoAddress }

// networkKeys are the configuration keys that are arguments of their own.
var networkKeys = []string{"ipv4.address", "ipv6.address", "ipv4.nat", "ipv6.nat", "dns.domain"}

// config is the daemon's configuration for a specification.
func (s NetworkSpec) config() map[string]string {
	config := maps.Clone(s.Config)
	if config == nil {
		config = map[string]string{}
	}
	setOrDelete(config, "ipv4.address", s.IPv4Address)
	setOrDelete(config, "ipv6.address", s.IPv6Address)
	setOrDelete(config, "dns.domain", s.DNSDomain)
	nat := strconv.FormatBool(s.NAT)
	if s.IPv4Address != NoAddress {
		config["ipv4.nat"] = nat
	}
	if s.IPv6Address != NoAddress {
		config["ipv6.nat"] = nat
	}
	return config
}

// CreateNetwork makes a bridge. One that was made although an error came of it is returned beside the error.
func (l *Lab) CreateNetwork(ctx context.Context, spec NetworkSpec) (*Network, error) {
	id := uuid.NewString()
	post := api.NetworksPost{Name: spec.Name, Type: bridge, NetworkPut: api.NetworkPut{Description: spec.Description, Config: spec.config()}}
	post.Config[keyID] = id
	if err := l.daemon.CreateNetwork(ctx, post); err != nil {
		if spec.IPv4Address == "" && strings.Contains(err.Error(), "unused IPv4 subnet") {
			err = argumentErrorf("ipv4_address", "the daemon found no free subnet by itself, so the address must be given: %w", err)
		}
		return l.networkMadeAnyway(ctx, spec, id), err
	}
	network, err := l.Network(ctx, spec.Name, spec.Config)
	if err != nil {
		return l.networkMadeAnyway(ctx, spec, id), err
	}
	return network, nil
}

// networkMadeAnyway finds a network whose creation seemed to fail, by the id that we gave it.
func (l *Lab) networkMadeAnyway(ctx context.Context, spec NetworkSpec, id string) *Network {
	ctx, cancel := detached(ctx)
	defer cancel()
	live, _, err := l.daemon.Network(ctx, spec.Name)
	if err != nil || live.Config[keyID] != id {
		return nil
	}
	return networkOf(live, spec.Config)
}

// Network reads a network. The declared configuration says which keys the owner wants to see beyond those that
// somebody set.
func (l *Lab) Network(ctx context.Context, name string, declared map[string]string) (*Network, error) {
	live, _, err := l.daemon.Network(ctx, name)
	if err != nil {
		return nil, err
	}
	if !live.Managed {
		return nil, fmt.Errorf("network %q is an interface of the host that the daemon does not manage", name)
	}
	if live.Type != bridge {
		return nil, fmt.Errorf("network %q is of type %q, and not a bridge", name, live.Type)
	}
	return networkOf(live, declared), nil
}

func networkOf(live *api.Network, declared map[string]string) *Network {
	network := &Network{
		NetworkSpec: NetworkSpec{
			Name: live.Name, Description: live.Description,
			IPv4Address: cmp.Or(live.Config["ipv4.address"], NoAddress),
			IPv6Address: cmp.Or(live.Config["ipv6.address"], NoAddress),
			NAT:         true,
			DNSDomain:   live.Config["dns.domain"],
			Config: shown(live.Config, declared, func(key string) bool {
				return internalKey(key) || slices.Contains(networkKeys, key)
			}),
		},
	}
	if network.IPv4Address != NoAddress {
		network.NAT = shared.IsTrue(live.Config["ipv4.nat"])
	}
	if network.IPv6Address != NoAddress {
		network.NAT = network.NAT && shared.IsTrue(live.Config["ipv6.nat"])
	}
	return network
}

// UpdateNetwork changes a network in place.
func (l *Lab) UpdateNetwork(ctx context.Context, before, now NetworkSpec) (*Network, error) {
	live, etag, err := l.daemon.Network(ctx, now.Name)
	if err != nil {
		return nil, err
	}
	put := live.Writable()
	put.Description = now.Description
	put.Config = replaced(live.Config, before.config(), now.config())
	if err := l.daemon.ReplaceNetwork(ctx, now.Name, put, etag); err != nil {
		return nil, err
	}
	return l.Network(ctx, now.Name, now.Config)
}

// DeleteNetwork removes a network; one that is gone already is no error. A network in use is an error that lists by what.
func (l *Lab) DeleteNetwork(ctx context.Context, name string) error {
	look := func() (*api.Network, error) {
		live, _, err := l.daemon.Network(ctx, name)
		return live, err
	}
	return deletedUnused(l.daemon.DeleteNetwork(ctx, name), look, func(live *api.Network) []string { return live.UsedBy })
}
