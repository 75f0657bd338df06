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

// prepared is a machine with a snapshot, and a branch of it with what MORE says.
const prepared = `
resource "lab_machine" "m" {
  name        = "NAME"
  image       = "IMAGE"
  pool        = "POOL"
  memory      = "256MiB"
  description = "prepared"
  networks    = { eth0 = { network = "NETWORK" } }
  config      = { "user.role" = "prepared" }
  setup       = [{ command = ["sh", "-c", "echo CONTENT > /root/mark"] }]
}

resource "lab_snapshot" "s" {
  machine = lab_machine.m.id
  name    = "prepared"
}

resource "lab_branch" "b" {
  name   = "NAME-b"
  source = lab_snapshot.s.id
  MORE
}
`

const branchAt = "lab_branch.b"

// preparedOn is that on a host.
func preparedOn(t *testing.T, host *acctest.Host, name, content, more string) string {
	t.Helper()
	return on(host, fill(prepared, "NAME", name, "IMAGE", host.Tiny(t).Fingerprint, "POOL", host.Pool(t), "NETWORK", host.Network(t), "CONTENT", content, "MORE", more))
}

func action(address string, kind plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, kind)}}
}

func TestBranch(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	branch := name + "-b"
	same, other := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	null := func(argument string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(branchAt, tfjsonpath.New(argument), knownvalue.Null())
	}
	apply(t, gone(host, "instances/"+name, "instances/"+branch),
		resource.TestStep{
			Config: preparedOn(t, host, name, "one", `ready = { command = ["grep", "one", "/root/mark"], address = "ipv4" }`),
			ConfigStateChecks: []statecheck.StateCheck{
				same.AddStateValue(branchAt, tfjsonpath.New("id")), other.AddStateValue(branchAt, tfjsonpath.New("id")),
				null("memory"), null("networks"), null("config"), null("description"), null("profiles"),
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("pool"), knownvalue.StringExact(host.Pool(t))),
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("type"), knownvalue.StringExact("container")),
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("ipv4_address"), knownvalue.StringRegexp(regexp.MustCompile(`^10\.`))),
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("timings").AtMapKey("branch_ms"), positive()),
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("timings").AtMapKey("launch_ms"), positive()),
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("timings").AtMapKey("usable_ms"), positive()),
			},
		},
		// What is inherited is no drift, whoever changes it.
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "config", "set", branch, "limits.memory=300MiB", "user.role=other", "user.more=x")
			},
			Config:           preparedOn(t, host, name, "one", `ready = { command = ["grep", "one", "/root/mark"], address = "ipv4" }`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{
			Config:            preparedOn(t, host, name, "one", "memory = \"512MiB\"\n  description = \"mine\"\n  config = { \"user.role\" = \"branch\", \"user.more\" = \"\" }"),
			ConfigPlanChecks:  action(branchAt, plancheck.ResourceActionUpdate),
			ConfigStateChecks: []statecheck.StateCheck{same.AddStateValue(branchAt, tfjsonpath.New("id"))},
		},
		// What is declared is put back.
		resource.TestStep{
			PreConfig:        func() { host.LXC(t, "config", "set", branch, "limits.memory=300MiB", "user.more=x") },
			Config:           preparedOn(t, host, name, "one", "memory = \"512MiB\"\n  description = \"mine\"\n  config = { \"user.role\" = \"branch\", \"user.more\" = \"\" }"),
			ConfigPlanChecks: action(branchAt, plancheck.ResourceActionUpdate),
		},
		// What is no longer declared stays as it was.
		resource.TestStep{
			PreConfig: func() {
				if got := host.LXC(t, "config", "get", branch, "limits.memory"); got != "512MiB" {
					t.Errorf("memory is %q", got)
				}
			},
			Config:           preparedOn(t, host, name, "one", ""),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		// A source that is replaced takes its branch along.
		resource.TestStep{
			Config:            preparedOn(t, host, name, "two", `ready = { command = ["grep", "two", "/root/mark"] }`),
			ConfigPlanChecks:  action(branchAt, plancheck.ResourceActionDestroyBeforeCreate),
			ConfigStateChecks: []statecheck.StateCheck{other.AddStateValue(branchAt, tfjsonpath.New("id"))},
		},
		// Gone behind our back: made anew.
		resource.TestStep{
			PreConfig:        func() { host.LXC(t, "delete", "--force", branch) },
			Config:           preparedOn(t, host, name, "two", `ready = { command = ["grep", "two", "/root/mark"] }`),
			ConfigPlanChecks: action(branchAt, plancheck.ResourceActionCreate),
		},
	)
}

// A branch is a machine: it has snapshots, goes back to them, and is branched in turn.
func TestBranchWithSnapshotAndReset(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	config := func(run string) string {
		return preparedOn(t, host, name, "one", "") + fill(`
resource "lab_snapshot" "b" {
  machine = lab_branch.b.id
  name    = "clean"
}

resource "lab_reset" "r" {
  snapshots = { b = lab_snapshot.b.id }
  triggers  = { run = "RUN" }
}

resource "lab_branch" "bb" {
  name    = "NAME-bb"
  source  = lab_branch.b.id
  running = false
}
`, "NAME", name, "RUN", run)
	}
	apply(t, gone(host, "instances/"+name, "instances/"+name+"-b", "instances/"+name+"-bb"),
		resource.TestStep{Config: config("1")},
		resource.TestStep{
			PreConfig:        func() { host.In(t, name+"-b", "echo dirty > /root/mark; sync") },
			Config:           config("2"),
			ConfigPlanChecks: action("lab_reset.r", plancheck.ResourceActionUpdate),
		},
		resource.TestStep{
			PreConfig: func() {
				if got := host.In(t, name+"-b", "cat /root/mark"); got != "one" {
					t.Errorf("the branch went back to %q", got)
				}
			},
			Config: config("2"),
		},
	)
}

func TestBranchImport(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	taken := func(more string) string {
		return preparedOn(t, host, name, "one", more) + fill("\nimport {\n  to = lab_branch.b\n  id = \"NAME-b\"\n}\n", "NAME", name)
	}
	without := regexp.MustCompile(`(?s)resource "lab_branch" "b" {.*?\n}\n`).ReplaceAllString(preparedOn(t, host, name, "one", ""), "")
	apply(t, gone(host, "instances/"+name, "instances/"+name+"-b"),
		resource.TestStep{Config: without},
		resource.TestStep{
			PreConfig: func() { // as a person makes one by hand
				host.LXC(t, "copy", name+"/prepared", name+"-b")
				host.LXC(t, "start", name+"-b")
			},
			Config:           taken(`memory = "256MiB"`),
			ConfigPlanChecks: action(branchAt, plancheck.ResourceActionUpdate), // it does not tell what it was made from
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(branchAt, tfjsonpath.New("timings"), knownvalue.Null()),
			},
		},
	)
	apply(t, gone(host, "instances/"+name, "instances/"+name+"-b"),
		resource.TestStep{Config: preparedOn(t, host, name, "one", "memory = \"256MiB\"\n  networks = { eth0 = { network = \""+host.Network(t)+"\" } }")},
		// One of ours tells all of that, and more than is declared.
		resource.TestStep{
			ResourceName: branchAt, ImportState: true, ImportStateId: name + "-b", ImportStateVerify: true,
			ImportStateVerifyIgnore: []string{"timings", "description", "config", "profiles", "profiles.#", "ipv4_address"},
		},
	)
}

// Each refusal comes with the plan, at its argument, while the source is there.
func TestBadBranchesAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "m")
	base := regexp.MustCompile(`(?s)resource "lab_branch" "b" {.*?\n}\n`).ReplaceAllString(preparedOn(t, host, name, "one", ""), "")
	steps := []resource.TestStep{{Config: base}}
	for _, test := range []struct{ source, more, says string }{
		{"lab_snapshot.s.id", `pool = "elsewhere"`, `(?s)Host\s+refused:\s+copy-on-write\s+branches.*every\s+block\s+of\s+it\s+would\s+be\s+copied.*publish\s+it\s+as\s+an\s+image`},
		{"lab_snapshot.s.id", `target = "m2"`, `(?s)in\s+no\s+cluster`},
		{"lab_snapshot.s.id", `disk = "1GiB"`, `(?s)as\s+large\s+as\s+its\s+pool`},
		{"lab_snapshot.s.id", `memory = "lots"`, `is\s+not\s+a\s+size`},
		{"lab_snapshot.s.id", `name = "` + name + `"`, `the\s+name\s+of\s+its\s+source`},
		{"lab_snapshot.s.id", `config = { "limits.memory" = "1GiB" }`, "Use\\s+the\\s+argument\\s+`memory`"},
		{"lab_snapshot.s.name", "", `id\s+of\s+neither\s+a\s+machine\s+nor\s+a\s+snapshot`},
	} {
		more := test.more
		if !regexp.MustCompile(`^name`).MatchString(more) {
			more += "\n  name = \"" + name + "-b\""
		}
		steps = append(steps, resource.TestStep{
			Config:   base + "\nresource \"lab_branch\" \"b\" {\n  source = " + test.source + "\n  " + more + "\n}\n",
			PlanOnly: true, ExpectError: regexp.MustCompile(test.says),
		})
	}
	apply(t, gone(host, "instances/"+name), append(steps, steps[0])...)
}
