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

const snapshotOf = `
resource "lab_snapshot" "s" {
  machine = lab_machine.m.id
  name    = "clean"
  MORE
}
`

func TestSnapshot(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	config := func(machine, snapshot string) string {
		return plainOn(t, host, name, machine) + fill(snapshotOf, "MORE", snapshot)
	}
	const at = "lab_snapshot.s"
	id := tfjsonpath.New("id")
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	action := func(resources map[string]plancheck.ResourceActionType) resource.ConfigPlanChecks {
		checks := resource.ConfigPlanChecks{}
		for address, kind := range resources {
			checks.PreApply = append(checks.PreApply, plancheck.ExpectResourceAction(address, kind))
		}
		return checks
	}
	apply(t, gone(host, "instances/"+name),
		resource.TestStep{
			// The machine's own schedule does not reach a snapshot that says nothing of expiry.
			Config: config(`config = { "snapshots.expiry" = "1M" }`, ""),
			ConfigStateChecks: []statecheck.StateCheck{
				same.AddStateValue(at, id),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("expires_at"), knownvalue.Null()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("snapshot_ms"), positive()),
			},
		},
		resource.TestStep{
			Config:           config(`config = { "snapshots.expiry" = "1M" }`, `expires_at = "2099-01-01T00:00:00+01:00"`),
			ConfigPlanChecks: action(map[string]plancheck.ResourceActionType{at: plancheck.ResourceActionUpdate}),
			ConfigStateChecks: []statecheck.StateCheck{
				same.AddStateValue(at, id), other.AddStateValue(at, id),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("expires_at"), knownvalue.StringExact("2099-01-01T00:00:00+01:00")),
			},
		},
		resource.TestStep{
			ResourceName: at, ImportState: true, ImportStateId: name + "/clean", ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"timings", "expires_at"}, // another spelling of the same moment
		},
		// A snapshot of the same name that is another one is not ours.
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "delete", name+"/clean")
				host.LXC(t, "snapshot", name, "clean")
			},
			Config:      config(`config = { "snapshots.expiry" = "1M" }`, ""),
			ExpectError: regexp.MustCompile(`(?s)already\s+exists`),
		},
		resource.TestStep{
			PreConfig:         func() { host.LXC(t, "delete", name+"/clean") },
			Config:            config(`config = { "snapshots.expiry" = "1M" }`, ""),
			ConfigPlanChecks:  action(map[string]plancheck.ResourceActionType{at: plancheck.ResourceActionCreate}),
			ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(at, id)},
		},
		// A machine that is replaced gets its snapshot again in the same apply.
		resource.TestStep{
			Config: config(`files = { "/etc/motd" = { content = "x" } }`, ""),
			ConfigPlanChecks: action(map[string]plancheck.ResourceActionType{
				"lab_machine.m": plancheck.ResourceActionDestroyBeforeCreate, at: plancheck.ResourceActionDestroyBeforeCreate,
			}),
			ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(at, id)},
		},
	)
}

func TestBadSnapshotsAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	steps := []resource.TestStep{{Config: plainOn(t, host, name, "")}}
	for _, test := range []struct{ more, says string }{
		{`stateful = true`, `container`},
		{`expires_at = "tomorrow"`, `RFC\s+3339`},
	} {
		steps = append(steps, resource.TestStep{
			Config: plainOn(t, host, name, "") + fill(snapshotOf, "MORE", test.more), PlanOnly: true, ExpectError: regexp.MustCompile(test.says),
		})
	}
	steps = append(steps, resource.TestStep{
		Config: plainOn(t, host, name, "") + "resource \"lab_snapshot\" \"s\" {\n  machine = lab_machine.m.name\n  name = \"a\"\n}", PlanOnly: true,
		ExpectError: regexp.MustCompile(`refer\s+to\s+a\s+machine\s+by\s+its\s+id`),
	})
	steps = append(steps, resource.TestStep{
		Config: plainOn(t, host, name, "") + "resource \"lab_snapshot\" \"s\" {\n  machine = lab_machine.m.id\n  name = \"a%b\"\n}", PlanOnly: true,
		ExpectError: regexp.MustCompile(`letters,\s+digits`),
	})
	steps = append(steps, steps[0]) // the last one is destroyed, and must be valid
	apply(t, gone(host, "instances/"+name), steps...)
}
