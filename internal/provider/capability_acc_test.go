// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const capabilityConfig = `
data "lab_capability" "host" {
  ARGUMENTS
}
`

// gatedNetwork is a network that wants an adequate host.
const gatedNetwork = `
resource "lab_network" "n" {
  name         = "NAME"
  ipv4_address = "none"

  lifecycle {
    precondition {
      condition     = data.lab_capability.host.adequate
      error_message = data.lab_capability.host.summary
    }
  }
}
`

// adequate expects a verdict and a summary.
func adequate(want bool, summary string) []statecheck.StateCheck {
	const at = "data.lab_capability.host"
	return []statecheck.StateCheck{
		statecheck.ExpectKnownValue(at, tfjsonpath.New("adequate"), knownvalue.Bool(want)),
		statecheck.ExpectKnownValue(at, tfjsonpath.New("summary"), knownvalue.StringRegexp(regexp.MustCompile(summary))),
	}
}

func TestCapability(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	pool, name := host.Pool(t), acctest.Name(t, "net")
	copyOnWrite := tfjsonpath.New("pools").AtMapKey(pool).AtMapKey("copy_on_write")
	apply(t, gone(host, "networks/"+name),
		resource.TestStep{
			Config: on(host, fill(capabilityConfig, "ARGUMENTS", "")+fill(gatedNetwork, "NAME", name)),
			ConfigStateChecks: append(adequate(true, `is adequate: it runs containers`),
				statecheck.ExpectKnownValue("data.lab_capability.host", tfjsonpath.New("server").AtMapKey("address"), knownvalue.StringExact(host.Address()))),
		},
		resource.TestStep{
			Config:            on(host, fill(capabilityConfig, "ARGUMENTS", fill("pool = \"POOL\"\n  prove = [\"copy_on_write\"]", "POOL", pool))),
			ConfigStateChecks: append(adequate(true, pool), statecheck.ExpectKnownValue("data.lab_capability.host", copyOnWrite, knownvalue.StringExact("proven"))),
		},
		resource.TestStep{Config: on(host, fill(capabilityConfig, "ARGUMENTS", `pool = "nowhere"`)), ConfigStateChecks: adequate(false, `no pool "nowhere"`)},
	)
}

func TestCapabilityGatesALabOnADegradedHost(t *testing.T) {
	t.Parallel()
	host := acctest.Start(t, acctest.Options{WithoutTools: []string{"btrfs", "mkfs.btrfs"}})
	name := acctest.Name(t, "net")
	apply(t, gone(host, "networks/"+name),
		resource.TestStep{Config: on(host, fill(capabilityConfig, "ARGUMENTS", "")), ConfigStateChecks: adequate(false, `(?s)not adequate.*mkfs.btrfs.*What helps`)},
		resource.TestStep{
			Config:      on(host, fill(capabilityConfig, "ARGUMENTS", "")+fill(gatedNetwork, "NAME", name)),
			ExpectError: regexp.MustCompile(`not\s+adequate(.|\n)*mkfs\.btrfs`),
		},
		resource.TestStep{
			PreConfig:        func() { host.AddTools(t) },
			Config:           on(host, fill(capabilityConfig, "ARGUMENTS", "")+fill(gatedNetwork, "NAME", name)),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{"lab_network.n": creates}),
		},
	)
}

func TestCapabilityWithoutADaemon(t *testing.T) {
	t.Parallel()
	acctest.Shared(t) // only for TF_ACC
	config := fmt.Sprintf("provider \"lab\" {\n  address = \"unix://%s\"\n}\n", filepath.Join(t.TempDir(), "unix.socket"))
	apply(t, nil, resource.TestStep{
		Config:            config + fill(capabilityConfig, "ARGUMENTS", ""),
		ConfigStateChecks: adequate(false, `(?s)no host that a lab can rely on.*terraform-provider-lab bootstrap`),
	})
}

// The same apply makes the host, so its address is not known at plan.
func TestHostThatTheSameApplyMakes(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "net")
	config := func(dependsOn string) string {
		return fill(`
resource "terraform_data" "host" {
  input = "ADDRESS"
}

provider "lab" {
  address = terraform_data.host.output
  project = "PROJECT"
}
`, "ADDRESS", host.Address(), "PROJECT", host.Project()) + fill(capabilityConfig, "ARGUMENTS", dependsOn) + fill(gatedNetwork, "NAME", name)
	}
	apply(t, gone(host, "networks/"+name),
		// Nothing can be judged at plan, and a precondition says so rather than let it pass.
		resource.TestStep{Config: config(""), ExpectError: regexp.MustCompile(`Invalid\s+condition|must\s+return\s+either\s+true\s+or\s+false`)},
		resource.TestStep{Config: config("depends_on = [terraform_data.host]"), ConfigStateChecks: adequate(true, "is adequate")},
	)
}
