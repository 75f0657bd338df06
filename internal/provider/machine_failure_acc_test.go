// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// plain is a machine with nothing but what it needs, and what MORE says.
const plain = `
resource "lab_machine" "m" {
  name  = "NAME"
  image = "IMAGE"
  pool  = "POOL"
  MORE
}
`

// plainOn is a plain machine on a host.
func plainOn(t *testing.T, host *acctest.Host, name, more string) string {
	t.Helper()
	return on(host, fill(plain, "NAME", name, "IMAGE", host.Tiny(t).Fingerprint, "POOL", host.Pool(t), "MORE", more))
}

// A machine that was made and then failed is kept as tainted, and the next apply replaces it.
func TestFailedMachineIsKeptAndReplaced(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	apply(t, gone(host, "instances/"+name),
		resource.TestStep{
			Config:      plainOn(t, host, name, `setup = [{ command = ["sh", "-c", "echo the reason >&2; exit 4"] }]`),
			ExpectError: regexp.MustCompile(`(?s)Unable to create machine.*returned 4.*the reason`),
		},
		resource.TestStep{
			Config:      plainOn(t, host, name, "ready = { command = [\"false\"] }\n  timeouts = { create = \"4s\" }"),
			ExpectError: regexp.MustCompile(`(?s)exit code 1.*raise\s+timeouts\.create`),
		},
		resource.TestStep{
			Config: plainOn(t, host, name, ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("lab_machine.m", plancheck.ResourceActionDestroyBeforeCreate),
			}},
		},
	)
}

func TestMachineOfATakenNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	apply(t, nil,
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "init", host.Tiny(t).Fingerprint, name, "--no-profiles", "--storage", host.Pool(t))
			},
			Config:      plainOn(t, host, name, ""),
			ExpectError: regexp.MustCompile(`(?s)already\s+exists.*terraform\s+import`),
		},
	)
	host.LXC(t, "delete", name) // it is still there
}

// A restart is refused at plan, unless it is allowed.
func TestRestartIsRefusedUnlessAllowed(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	apply(t, gone(host, "instances/"+name),
		resource.TestStep{Config: plainOn(t, host, name, "")},
		resource.TestStep{
			Config:      plainOn(t, host, name, `config = { "security.nesting" = "true" }`),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)would have to be restarted.*security\.nesting.*allow_restart\s+=\s+true`),
		},
		resource.TestStep{Config: plainOn(t, host, name, "config = { \"security.nesting\" = \"true\" }\n  allow_restart = true")},
	)
}

// One that was found stopped is started again; one that is declared stopped is stopped.
func TestPowerIsPutBack(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	update := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction("lab_machine.m", plancheck.ResourceActionUpdate)}}
	apply(t, gone(host, "instances/"+name),
		resource.TestStep{Config: plainOn(t, host, name, "")},
		resource.TestStep{
			PreConfig: func() { host.LXC(t, "stop", "--force", name) },
			Config:    plainOn(t, host, name, ""), ConfigPlanChecks: update,
		},
		resource.TestStep{Config: plainOn(t, host, name, "running = false"), ConfigPlanChecks: update},
		resource.TestStep{Config: plainOn(t, host, name, "running = true"), ConfigPlanChecks: update},
	)
}

func TestBadMachinesAreRefusedBeforeAnythingIsTouched(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	for name, test := range map[string]struct{ more, says string }{
		"unit":        {`memory = "8G"`, `is\s+not\s+a\s+size`},
		"own key":     {`config = { "limits.memory" = "1GiB" }`, "Use\\s+the\\s+argument\\s+`memory`"},
		"kept key":    {`config = { "volatile.uuid" = "x" }`, `not\s+yours\s+to\s+set`},
		"no network":  {`ready = { address = "ipv4" }`, `has\s+no\s+network`},
		"two of one":  {"networks = { eth0 = { network = \"n\" } }\n  devices = { eth0 = { type = \"nic\" } }", `Name\s+used\s+twice`},
		"checkpoint":  {`checkpointable = true`, `Only\s+virtual\s+machines`},
		"empty ready": {`ready = {}`, `[Aa]t\s+least\s+one\s+of`},
		"two sources": {`files = { "/a" = { content = "x", source = "y" } }`, `[Ee]xactly\s+one\s+of`},
		"relative":    {`files = { "a" = { content = "x" } }`, `absolute\s+path`},
		"mode":        {`files = { "/a" = { content = "x", mode = "rw" } }`, `octal\s+digits`},
		"mac":         {`networks = { eth0 = { network = "n", mac_address = "no" } }`, `six\s+pairs`},
		"address":     {`networks = { eth0 = { network = "n", ipv4_address = "fe80::1" } }`, `IPv4\s+address`},
		"root device": {`devices = { root = { type = "disk" } }`, `root`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			apply(t, nil, resource.TestStep{
				Config:      plainOn(t, host, acctest.Name(t, "m"), test.more),
				PlanOnly:    true,
				ExpectError: regexp.MustCompile(test.says),
			})
		})
	}
}
