// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"net/netip"
	"regexp"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const networkConfig = `
resource "lab_network" "n" {
  name = "NAME"
  ARGUMENTS
}
`

func TestNetwork(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name, other, address := acctest.Name(t, "net"), acctest.Name(t, "net"), acctest.Subnet(t)
	config := func(name, arguments string) string {
		return on(host, fill(networkConfig, "NAME", name, "ARGUMENTS", arguments))
	}
	full := fill(`ipv4_address = "ADDRESS"
  ipv6_address = "fd42:99::1/64"
  nat          = false
  dns_domain   = "lab.example"
  config       = { "ipv4.dhcp.expiry" = "2h", "user.role" = "a" }
  description  = "of the lab"`, "ADDRESS", address)
	const at = "lab_network.n"
	apply(t, gone(host, "networks/"+name, "networks/"+other),
		resource.TestStep{
			Config: config(name, fill(`ipv4_address = "ADDRESS"`, "ADDRESS", acctest.Subnet(t))),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(at, tfjsonpath.New("id"), knownvalue.StringExact(name)),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("ipv6_address"), knownvalue.StringExact("none")),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("nat"), knownvalue.Bool(true)),
			},
		},
		resource.TestStep{Config: config(name, full), ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates})},
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateId: host.Project() + "/" + name, ImportStateVerify: true},
		resource.TestStep{Config: config(name, full), ResourceName: at, ImportState: true, ImportStateKind: resource.ImportBlockWithID},
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "network", "set", name, "ipv4.nat=true", "dns.domain=other", "user.role=b", "user.other=c")
			},
			Config:           config(name, full),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates}),
		},
		resource.TestStep{
			PreConfig: func() {
				for key, want := range map[string]string{"ipv4.nat": "false", "dns.domain": "lab.example", "user.role": "a", "user.other": ""} {
					if got := host.LXC(t, "network", "get", name, key); got != want {
						t.Errorf("%s is %q after it was put back, want %q", key, got, want)
					}
				}
				host.LXC(t, "network", "delete", name)
			},
			Config:           config(name, full),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: creates}),
		},
		resource.TestStep{Config: config(other, full), ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: replaces})},
		resource.TestStep{Config: config(other, `ipv4_address = "none"`), ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates})},
	)
}

func TestNetworkWithAnAddressOfTheDaemonsChoice(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name, probe := acctest.Name(t, "net"), acctest.Name(t, "net")
	config := func(arguments string) string {
		return on(host, fill(networkConfig, "NAME", name, "ARGUMENTS", arguments))
	}
	// Where something answers for every address, as a transparent proxy does, LXD finds none that is free.
	err := host.Client(t).CreateNetwork(api.NetworksPost{Name: probe, Type: "bridge", NetworkPut: api.NetworkPut{Config: map[string]string{"ipv6.address": "none"}}})
	if err != nil {
		apply(t, gone(host, "networks/"+name), resource.TestStep{Config: config(""), ExpectError: regexp.MustCompile(`ipv4_address|address\s+must\s+be\s+given`)})
		return
	}
	host.LXC(t, "network", "delete", probe)

	const at = "lab_network.n"
	chosen := statecheck.CompareValue(compare.ValuesSame())
	apply(t, gone(host, "networks/"+name),
		resource.TestStep{
			Config: config(""),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(at, tfjsonpath.New("ipv4_address"), bridgeAddress()),
				chosen.AddStateValue(at, tfjsonpath.New("ipv4_address")),
			},
		},
		// It stays when something else changes.
		resource.TestStep{
			Config:            config(`description = "x"`),
			ConfigPlanChecks:  plan(map[string]plancheck.ResourceActionType{at: updates}),
			ConfigStateChecks: []statecheck.StateCheck{chosen.AddStateValue(at, tfjsonpath.New("ipv4_address"))},
		},
	)
}

// bridgeAddress expects an IPv4 address with its prefix.
func bridgeAddress() knownvalue.Check {
	return knownvalue.StringFunc(func(value string) error {
		prefix, err := netip.ParsePrefix(value)
		if err == nil && !prefix.Addr().Is4() {
			return fmt.Errorf("%s is not IPv4", value)
		}
		return err
	})
}

func TestNetworkOfATakenNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "net")
	host.LXC(t, "network", "create", name, "ipv4.address=none", "ipv6.address=none", "user.owner=somebody")
	t.Cleanup(func() { host.LXC(t, "network", "delete", name) })
	apply(t, nil, resource.TestStep{
		Config:      on(host, fill(networkConfig, "NAME", name, "ARGUMENTS", "")),
		ExpectError: regexp.MustCompile(`already\s+exists(.|\n)*terraform\s+import`),
	})
	if owner := host.LXC(t, "network", "get", name, "user.owner"); owner != "somebody" {
		t.Errorf("the network is %q's", owner)
	}
}

func TestNetworkInUseSaysByWhat(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name, machine := acctest.Name(t, "net"), acctest.Name(t, "m")
	config := on(host, fill(networkConfig, "NAME", name, "ARGUMENTS", fill(`ipv4_address = "ADDRESS"`, "ADDRESS", acctest.Subnet(t))))
	apply(t, gone(host, "networks/"+name),
		resource.TestStep{Config: config},
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "init", host.Tiny(t).Fingerprint, machine, "--no-profiles", "--storage", host.Pool(t), "--network", name)
			},
			Config:      config,
			Destroy:     true,
			ExpectError: regexp.MustCompile(`Unable\s+to\s+delete\s+network(.|\n)*instances/` + machine),
		},
		resource.TestStep{PreConfig: func() { host.LXC(t, "delete", machine) }, Config: config},
	)
}
