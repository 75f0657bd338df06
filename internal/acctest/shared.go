// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"testing"

	"github.com/canonical/lxd/shared/api"
)

// poolSize is what the shared pool may grow to; its file takes only what is written.
const poolSize = "20GiB"

// Pool returns the name of a btrfs pool on a loop file that all tests on this host share.
func (h *Host) Pool(t testing.TB) string {
	t.Helper()
	pool, err := h.pool.get(func() (string, error) {
		name := Name(t, "pool")
		if h.thrownAway() {
			name = "shared-pool" // of all packages, so that it is proved once
			if _, _, err := h.Client(t).GetStoragePool(name); err == nil {
				return name, nil
			}
		}
		return name, h.Client(t).CreateStoragePool(api.StoragePoolsPost{
			Name: name, Driver: "btrfs", StoragePoolPut: api.StoragePoolPut{Config: map[string]string{"size": poolSize}},
		})
	})
	if err != nil {
		t.Fatalf("Unable to create the shared pool: %v", err)
	}
	return pool
}

// Network returns the name of a bridge with DHCP and DNS, but without a way out, that all tests on this host share.
func (h *Host) Network(t testing.TB) string {
	t.Helper()
	network, err := h.network.get(func() (string, error) {
		address, release, err := claimSubnet()
		if err != nil {
			return "", err
		}
		h.subnet = release // Held until the process ends, as the bridge may live as long.
		name := Name(t, "net")
		return name, h.Client(t).CreateNetwork(api.NetworksPost{
			Name: name, Type: "bridge", NetworkPut: api.NetworkPut{Config: map[string]string{
				"ipv4.address": address.String(), "ipv4.nat": "false", "ipv6.address": "none",
			}},
		})
	})
	if err != nil {
		t.Fatalf("Unable to create the shared network: %v", err)
	}
	return network
}
