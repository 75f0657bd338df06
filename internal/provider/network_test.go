// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"maps"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestNetworkLife(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	net := newTerraform(t, args{"address": daemon.Address()}).resource("lab_network")
	config := args{"name": "labnet"}
	net.mustApply(actionCreate, config)
	for name, want := range map[string]any{"id": "labnet", "project": "default", "ipv6_address": "none", "nat": true, "dns_domain": nil, "config": nil} {
		if got := net.get(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if chosen := net.text("ipv4_address"); !accepts(t, bridgeAddressValidator(4), chosen) {
		t.Errorf("the daemon chose %q, which is no bridge's address", chosen)
	}

	config = args{
		"name": "labnet", "ipv4_address": "10.99.0.1/24", "ipv6_address": "fd42:99::1/64", "nat": false, "dns_domain": "lab.example",
		"config": args{"ipv4.dhcp.ranges": "10.99.0.10-10.99.0.20", "user.mine": "1"}, "description": "of the lab",
	}
	net.mustApply(actionUpdate, config)
	live, _, err := daemon.Client(t).GetNetwork("labnet")
	must(t, err)
	for key, want := range map[string]string{
		"ipv4.address": "10.99.0.1/24", "ipv4.nat": "false", "ipv6.address": "fd42:99::1/64", "ipv6.nat": "false",
		"dns.domain": "lab.example", "ipv4.dhcp.ranges": "10.99.0.10-10.99.0.20", "user.mine": "1",
	} {
		if live.Config[key] != want {
			t.Errorf("%s is %q on the daemon, want %q", key, live.Config[key], want)
		}
	}
	if live.Description != "of the lab" {
		t.Errorf("the description is %q", live.Description)
	}

	// What is not declared any more goes, or goes back to its default; the address stays.
	net.mustApply(actionUpdate, args{"name": "labnet"})
	live, _, err = daemon.Client(t).GetNetwork("labnet")
	must(t, err)
	if live.Config["ipv4.address"] != "10.99.0.1/24" || live.Config["ipv4.nat"] != "true" || live.Config["ipv6.address"] != "none" {
		t.Errorf("the daemon has %v", live.Config)
	}
	for _, key := range []string{"dns.domain", "ipv4.dhcp.ranges", "user.mine", "ipv6.nat"} {
		if value, ok := live.Config[key]; ok {
			t.Errorf("%s is still %q", key, value)
		}
	}

	net.mustApply(actionReplace, args{"name": "other"})
	net.mustDestroy()
	if names, err := daemon.Client(t).GetNetworkNames(); err != nil || len(names) > 0 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

func TestNetworkIDIsUnknownWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	net := newTerraform(t, args{"address": lxdtest.New(t).Address()}).resource("lab_network")
	net.mustApply(actionCreate, args{"name": "first"})
	if p := net.mustPlan(actionReplace, args{"name": "second"}); at(t, p.value, "id") != unknown {
		t.Errorf("id is planned to be %v", at(t, p.value, "id"))
	}
	if p := net.mustPlan(actionUpdate, args{"name": "first", "nat": false}); at(t, p.value, "id") != "first" {
		t.Errorf("id is planned to be %v", at(t, p.value, "id"))
	}
}

func TestNetworkWithoutAddresses(t *testing.T) {
	t.Parallel()
	net := newTerraform(t, args{"address": lxdtest.New(t).Address()}).resource("lab_network")
	for _, nat := range []any{nil, true, false} {
		net.mustApply(actionCreate, args{"name": "bare", "ipv4_address": "none", "nat": nat})
		net.mustDestroy()
	}
}

func TestNetworkEmptyValuesStayAsDeclared(t *testing.T) {
	t.Parallel()
	net := newTerraform(t, args{"address": lxdtest.New(t).Address()}).resource("lab_network")
	net.mustApply(actionCreate, args{"name": "empty", "description": "", "config": args{}})
}

func TestNetworkChangedBehindOurBack(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	net := newTerraform(t, args{"address": daemon.Address()}).resource("lab_network")
	config := args{"name": "labnet", "ipv4_address": "10.99.0.1/24", "ipv6_address": "fd42::1/64"}
	net.mustApply(actionCreate, config)
	for name, change := range map[string]func(*api.NetworkPut){
		"address":      func(n *api.NetworkPut) { n.Config["ipv4.address"] = "10.98.0.1/24" },
		"nat of one":   func(n *api.NetworkPut) { n.Config["ipv6.nat"] = "false" },
		"a key":        func(n *api.NetworkPut) { n.Config["bridge.mtu"] = "1400" },
		"a domain":     func(n *api.NetworkPut) { n.Config["dns.domain"] = "other" },
		"description":  func(n *api.NetworkPut) { n.Description = "other" },
		"a key's loss": func(n *api.NetworkPut) { delete(n.Config, "ipv4.address") },
	} {
		before, etag, err := daemon.Client(t).GetNetwork("labnet")
		must(t, err)
		put := before.Writable()
		put.Config = maps.Clone(put.Config)
		change(&put)
		must(t, daemon.Client(t).UpdateNetwork("labnet", put, etag))
		noErrors(t, net.refresh())
		t.Log(name)
		net.mustApply(actionUpdate, config)
		after, _, err := daemon.Client(t).GetNetwork("labnet")
		must(t, err)
		if !maps.Equal(before.Config, after.Config) || before.Description != after.Description {
			t.Errorf("%s: not put back: %v, was %v", name, after.Config, before.Config)
		}
	}
}

func TestNetworkGone(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	net := newTerraform(t, args{"address": daemon.Address()}).resource("lab_network")
	net.mustApply(actionCreate, args{"name": "labnet"})
	must(t, daemon.Client(t).DeleteNetwork("labnet"))
	// Destroying what is gone already, without a refresh, is no error.
	twin := *net
	twin.mustDestroy()
	noErrors(t, net.refresh())
	if !net.gone() {
		t.Fatal("the network is still in the state")
	}
	net.mustApply(actionCreate, args{"name": "labnet"})
}

func TestNetworkImport(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	tf := newTerraform(t, args{"address": daemon.Address()})
	config := args{"name": "labnet", "ipv4_address": "10.99.0.1/24", "dns_domain": "lab", "config": args{"bridge.mtu": "1400"}, "description": "x"}
	tf.resource("lab_network").mustApply(actionCreate, config)

	for name, start := range map[string]func(*managed) diagnostics{
		"by name":             func(m *managed) diagnostics { return m.importID("labnet") },
		"by project and name": func(m *managed) diagnostics { return m.importID("default/labnet") },
		"by identity":         func(m *managed) diagnostics { return m.importIdentity(args{"name": "labnet"}) },
	} {
		net := tf.resource("lab_network")
		noErrors(t, start(net))
		net.mustPlan(actionNone, config)
		noErrors(t, net.refresh())
		t.Log(name)
		net.mustPlan(actionNone, config)
	}
	wantError(t, tf.resource("lab_network").importID("a/b/c"), `Unable to import network "a/b/c"`, `"project/name"`)
	missing := tf.resource("lab_network")
	noErrors(t, missing.importID("nowhere"))
	if !missing.gone() {
		t.Error("a network that is not there was imported")
	}
}

func TestNetworkNameIsTaken(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	must(t, daemon.Client(t).CreateNetwork(api.NetworksPost{Name: "labnet", Type: "bridge", NetworkPut: api.NetworkPut{Description: "mine"}}))
	net := newTerraform(t, args{"address": daemon.Address()}).resource("lab_network")
	_, d := net.apply(args{"name": "labnet"})
	wantError(t, d, `Unable to create network "labnet"`, "already exists", "terraform import")
	live, _, err := daemon.Client(t).GetNetwork("labnet")
	must(t, err)
	if !net.gone() || live.Description != "mine" {
		t.Errorf("somebody's network was taken over: %v", live)
	}
}

func TestNetworkArgumentsAreValidated(t *testing.T) {
	t.Parallel()
	net := newTerraform(t, args{"address": lxdtest.New(t).Address()}).resource("lab_network")
	for attribute, config := range map[string]args{
		`AttributeName("name")`:                                {"name": "x"},
		`AttributeName("ipv4_address")`:                        {"name": "labnet", "ipv4_address": "10.0.0.1"},
		`AttributeName("ipv6_address")`:                        {"name": "labnet", "ipv6_address": "10.0.0.1/24"},
		`AttributeName("dns_domain")`:                          {"name": "labnet", "dns_domain": "a b"},
		`AttributeName("config").ElementKeyString("ipv4.nat")`: {"name": "labnet", "config": args{"ipv4.nat": "true"}},
	} {
		_, d := net.plan(config)
		wantErrorAt(t, d, attribute)
	}
}
