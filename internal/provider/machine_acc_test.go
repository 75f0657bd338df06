// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const machineConfig = `
resource "lab_machine" "m" {
  name        = "NAME"
  image       = "IMAGE"
  pool        = "POOL"
  description = "DESCRIPTION"
  cpus        = 1
  memory      = "MEMORY"
  networks    = { eth0 = { network = "NETWORK" } }
  config      = { "user.role" = "ROLE" }
  files       = { "/etc/motd" = { content = "MOTD" } }
  setup       = [{ command = ["sh", "-c", "echo prepared > /root/setup"] }]
  ready       = { command = ["test", "-s", "/root/setup"], address = "ipv4" }
}
`

func TestMachine(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	config := func(description, memory, role, motd string) string {
		return on(host, fill(machineConfig, "NAME", name, "IMAGE", host.Tiny(t).Fingerprint, "POOL", host.Pool(t), "NETWORK", host.Network(t),
			"DESCRIPTION", description, "MEMORY", memory, "ROLE", role, "MOTD", motd))
	}
	const at = "lab_machine.m"
	sameID := statecheck.CompareValue(compare.ValuesSame())
	otherID := statecheck.CompareValue(compare.ValuesDiffer())
	id := tfjsonpath.New("id")

	apply(t, gone(host, "instances/"+name),
		resource.TestStep{
			Config: config("first", "256MiB", "a", "hello"),
			ConfigStateChecks: []statecheck.StateCheck{
				sameID.AddStateValue(at, id),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("ipv4_address"), knownvalue.StringRegexp(regexp.MustCompile(`^10\.`))),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("usable_ms"), positive()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("launch_ms"), positive()),
			},
		},
		// Another spelling of the same size is no change.
		resource.TestStep{
			Config:           config("first", "262144KiB", "a", "hello"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{
			Config: config("second", "512MiB", "b", "hello"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionUpdate),
			}},
			ConfigStateChecks: []statecheck.StateCheck{sameID.AddStateValue(at, id), otherID.AddStateValue(at, id)},
		},
		// Changed behind our back: put back.
		resource.TestStep{
			PreConfig: func() { host.LXC(t, "config", "set", name, "limits.memory", "300MiB") },
			Config:    config("second", "512MiB", "b", "hello"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionUpdate),
			}},
		},
		// A change of how it was prepared replaces it.
		resource.TestStep{
			Config: config("second", "512MiB", "b", "other"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionDestroyBeforeCreate),
			}},
			ConfigStateChecks: []statecheck.StateCheck{otherID.AddStateValue(at, id)},
		},
		// Gone behind our back: made anew.
		resource.TestStep{
			PreConfig: func() { host.LXC(t, "delete", "--force", name) },
			Config:    config("second", "512MiB", "b", "other"),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionCreate),
			}},
		},
	)
}
