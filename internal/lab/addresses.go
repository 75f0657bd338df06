// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"maps"
	"slices"

	"github.com/canonical/lxd/shared/api"
)

// Addresses are the global addresses of a machine.
type Addresses struct {
	// IPv4 and IPv6 are the first of each family, by the name of the interface; empty when there is none.
	IPv4, IPv6 string
	// All lists every one of them.
	All []string
}

// addressesOf reads the global addresses from a machine's live state.
func addressesOf(state *api.InstanceState) Addresses {
	found := Addresses{}
	for _, name := range slices.Sorted(maps.Keys(state.Network)) {
		if name == "lo" {
			continue
		}
		for _, address := range state.Network[name].Addresses {
			if address.Scope != "global" {
				continue
			}
			found.All = append(found.All, address.Address)
			switch {
			case address.Family == "inet" && found.IPv4 == "":
				found.IPv4 = address.Address
			case address.Family == "inet6" && found.IPv6 == "":
				found.IPv6 = address.Address
			}
		}
	}
	return found
}
