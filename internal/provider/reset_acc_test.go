// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const scenarioConfig = `
resource "lab_machine" "m" {
  for_each    = toset([KEYS])
  name        = "PREFIX-${each.key}"
  image       = "IMAGE"
  pool        = "POOL"
  description = "declared"
  memory      = "MEMORY"
  networks    = { eth0 = { network = "NETWORK" } }
  ready       = { address = "ipv4" }
}

resource "lab_snapshot" "clean" {
  for_each = lab_machine.m
  machine  = each.value.id
  name     = "clean"
}
`

const scenarioReset = `
resource "lab_reset" "r" {
  snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  triggers  = { run = "RUN" }
  MORE
}
`

// scenario is a set of machines with a reset of all of them.
type scenario struct {
	host   *acctest.Host
	prefix string
	t      *testing.T
}

func (s scenario) machines(memory string, keys ...string) string {
	quoted := []string{}
	for _, key := range keys {
		quoted = append(quoted, fmt.Sprintf("%q", key))
	}
	return on(s.host, fill(scenarioConfig, "KEYS", strings.Join(quoted, ", "), "PREFIX", s.prefix, "IMAGE", s.host.Tiny(s.t).Fingerprint,
		"POOL", s.host.Pool(s.t), "NETWORK", s.host.Network(s.t), "MEMORY", memory))
}

func (s scenario) reset(run, more string) string {
	return fill(scenarioReset, "RUN", run, "MORE", more)
}

// mark and marks write and read a file on machines, which a reset takes away.
func (s scenario) mark(keys ...string) {
	for _, key := range keys {
		s.host.In(s.t, s.prefix+"-"+key, "touch /root/mark; sync")
	}
}

func (s scenario) marked(want bool, keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		if got := s.host.In(s.t, s.prefix+"-"+key, "ls /root") == "mark"; got != want {
			s.t.Errorf("the mark on machine %q is there: %v, want %v", key, got, want)
		}
	}
}

func TestResetRewindsOnlyWhenTriggered(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	s := scenario{host: host, prefix: acctest.Name(t, "s"), t: t}
	const at = "lab_reset.r"
	address := statecheck.CompareValue(compare.ValuesSame())
	same := func() statecheck.StateCheck {
		return address.AddStateValue(`lab_machine.m["a"]`, tfjsonpath.New("ipv4_address"))
	}
	usable := tfjsonpath.New("timings").AtMapKey("usable_ms")
	apply(t, gone(host, "instances/"+s.prefix+"-a", "instances/"+s.prefix+"-b", "instances/"+s.prefix+"-c"),
		resource.TestStep{Config: s.machines("256MiB", "a", "b")},
		// Adding the reset to a lab in use rewinds nothing.
		resource.TestStep{
			PreConfig:         func() { s.mark("a", "b") },
			Config:            s.machines("256MiB", "a", "b") + s.reset("1", ""),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(at, tfjsonpath.New("timings"), knownvalue.Null()), same()},
		},
		// Neither does a machine more.
		resource.TestStep{
			PreConfig: func() { s.marked(true, "a", "b") },
			Config:    s.machines("256MiB", "a", "b", "c") + s.reset("1", ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionUpdate),
				plancheck.ExpectResourceAction(`lab_machine.m["a"]`, plancheck.ResourceActionNoop),
			}},
		},
		// A changed trigger does: also of what was stopped or no longer boots; what is declared stays as declared.
		resource.TestStep{
			PreConfig: func() {
				s.marked(true, "a", "b")
				s.mark("c")
				host.LXC(t, "stop", "--force", s.prefix+"-b")
				host.In(t, s.prefix+"-c", "rm -f /sbin/init /bin/init; sync")
				host.LXC(t, "stop", "--force", s.prefix+"-c")
			},
			Config: s.machines("512MiB", "a", "b", "c") + s.reset("2", ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(at, plancheck.ResourceActionUpdate),
			}},
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(at, usable, positive()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("machines").AtMapKey("c").AtMapKey("usable_ms"), positive()), same(),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("machines").AtMapKey("c").AtMapKey("verified_by"), knownvalue.StringRegexp(regexp.MustCompile("^(lineage|proof)$"))),
			},
		},
		resource.TestStep{
			PreConfig: func() { s.marked(false, "a", "b", "c") },
			Config:    s.machines("512MiB", "a", "b", "c") + s.reset("2", ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectEmptyPlan(),
			}},
		},
		// Machine and snapshot gone behind our back: one apply rebuilds them, and rewinds nothing.
		resource.TestStep{
			PreConfig: func() {
				s.mark("a")
				host.LXC(t, "delete", "--force", s.prefix+"-b")
				host.LXC(t, "delete", s.prefix+"-c/clean")
			},
			Config: s.machines("512MiB", "a", "b", "c") + s.reset("2", ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction(`lab_machine.m["b"]`, plancheck.ResourceActionCreate),
				plancheck.ExpectResourceAction(`lab_snapshot.clean["c"]`, plancheck.ResourceActionCreate),
			}},
		},
		resource.TestStep{
			PreConfig: func() { s.marked(true, "a") },
			Config:    s.machines("512MiB", "a", "b", "c"),
		},
	)
}

// A reset that fails keeps the old triggers, so that the next apply tries again.
func TestFailedResetIsTriedAgain(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	s := scenario{host: host, prefix: acctest.Name(t, "s"), t: t}
	never := `ready = { command = ["false"] }` + "\n  timeouts = { update = \"6s\" }"
	apply(t, gone(host, "instances/"+s.prefix+"-a"),
		resource.TestStep{Config: s.machines("256MiB", "a") + s.reset("1", "")},
		resource.TestStep{
			PreConfig:   func() { s.mark("a") },
			Config:      s.machines("256MiB", "a") + s.reset("2", never),
			ExpectError: regexp.MustCompile(`(?s)Unable to reset scenario.*` + s.prefix + `.*it\s+is\s+running\s+now,\s+and\s+its\s+disk\s+is\s+back.*raise\s+timeouts\.update`),
		},
		resource.TestStep{
			PreConfig: func() { s.mark("a") },
			Config:    s.machines("256MiB", "a") + s.reset("2", ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectResourceAction("lab_reset.r", plancheck.ResourceActionUpdate),
			}},
		},
		resource.TestStep{
			PreConfig: func() { s.marked(false, "a"); s.mark("a") },
			Config:    s.machines("256MiB", "a") + s.reset("2", "restore_on_create = true"),
		},
		// restore_on_create is about creation, and this was none.
		resource.TestStep{
			PreConfig: func() { s.marked(true, "a") },
			Config:    s.machines("256MiB", "a"),
		},
		resource.TestStep{
			Config:            s.machines("256MiB", "a") + s.reset("2", "restore_on_create = true"),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("lab_reset.r", tfjsonpath.New("timings").AtMapKey("restore_ms"), positive())},
		},
		resource.TestStep{
			PreConfig: func() { s.marked(false, "a") },
			Config:    s.machines("256MiB", "a"),
		},
	)
}
