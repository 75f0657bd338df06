// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const importedMachine = `
import {
  to = lab_machine.m
  id = "NAME"
}

resource "lab_machine" "m" {
  name        = "NAME"
  image       = "IMAGE"
  pool        = "POOL"
  cpus        = 1
  memory      = "256MiB"
  networks    = { eth0 = { network = "NETWORK" } }
  config      = { "user.role" = "a" }
  PREPARATION
}
`

// byHand makes a machine as a person does who knows nothing of this provider.
func byHand(t *testing.T, host *acctest.Host, name string) {
	t.Helper()
	host.LXC(t, "init", host.Tiny(t).Fingerprint, name, "--no-profiles", "--storage", host.Pool(t), "--network", host.Network(t),
		"-c", "limits.cpu=1", "-c", "limits.memory=256MiB", "-c", "user.role=a")
	host.LXC(t, "start", name)
}

func TestMachineImport(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	config := func(preparation string) string {
		return on(host, fill(importedMachine, "NAME", name, "IMAGE", host.Tiny(t).Fingerprint, "POOL", host.Pool(t), "NETWORK", host.Network(t), "PREPARATION", preparation))
	}
	const at = "lab_machine.m"
	apply(t, gone(host, "instances/"+name),
		resource.TestStep{
			PreConfig: func() { byHand(t, host, name) },
			Config:    config(""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionNoop),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings"), knownvalue.Null()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("running"), knownvalue.Bool(true)),
			},
		},
		// What the daemon cannot tell is taken over in place.
		resource.TestStep{
			Config: config(`setup = [{ command = ["touch", "/root/never"] }]
  files = { "/root/neither" = { content = "x" } }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionUpdate),
			}},
		},
		// From then on it is a machine like any other.
		resource.TestStep{
			PreConfig: func() {
				if got := host.In(t, name, "ls -A /root"); got != "" {
					t.Errorf("taking it over wrote %q", got)
				}
			},
			Config: config(`setup = [{ command = ["touch", "/root/always"] }]`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionDestroyBeforeCreate),
			}},
		},
	)
}

func TestImportsOfTheWrongFormSayTheRightOne(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	for _, test := range []struct{ to, id, says string }{
		{"lab_machine.m", "a/b/c", `write\s+"name",\s+or\s+"project/name"`},
		{"lab_snapshot.s", "a", `write\s+"machine/snapshot"`},
		{"lab_storage_pool.p", "", `required|empty|write`},
		{"lab_reset.r", "anything", `lab_reset\s+cannot\s+be\s+imported`},
	} {
		t.Run(test.to, func(t *testing.T) {
			t.Parallel()
			apply(t, nil, resource.TestStep{
				Config: on(host, fill(`
import {
  to = TO
  id = "ID"
}

resource "lab_machine" "m" {
  name  = "m"
  image = "IMAGE"
  pool  = "POOL"
}

resource "lab_snapshot" "s" {
  machine = lab_machine.m.id
  name    = "s"
}

resource "lab_reset" "r" {
  snapshots = { m = lab_snapshot.s.id }
}

resource "lab_storage_pool" "p" {
  name = "p"
}
`, "TO", test.to, "ID", test.id, "IMAGE", host.Tiny(t).Fingerprint, "POOL", host.Pool(t))),
				ExpectError: regexp.MustCompile(test.says),
			})
		})
	}
}
