// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
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

// On one member a tool is missing of which the daemon does not know, so that only making the pool shows it.
func TestStoragePoolOnACluster(t *testing.T) {
	t.Parallel()
	members := acctest.StartCluster(t, acctest.Options{}, acctest.Options{WithoutTools: []string{"mkfs.btrfs"}}, acctest.Options{})
	name := acctest.Name(t, "pool")
	config := func(parts string) string {
		return on(members[0], fill(poolConfig, "NAME", name, "ARGUMENTS", "members = {"+parts+"}"))
	}
	const (
		at  = "lab_storage_pool.p"
		all = `m1 = { size = "5GiB" }, m2 = { size = "5GiB" }, m3 = { size = "5GiB" }`
	)
	left := func(t *testing.T) { t.Helper(); gone(members[0], "storage-pools/"+name)(t) }
	apply(t, func(t *testing.T) {
		t.Helper()
		left(t)
		for _, member := range members {
			nothingAt(t, filepath.Join(member.Dir, "disks", name+".img"), filepath.Join(member.Dir, "storage-pools", name))
		}
	},
		resource.TestStep{
			Config: config(`m1 = { size = "5GiB" }, m3 = {}`), PlanOnly: true,
			ExpectError: regexp.MustCompile(`Host\s+refused:\s+cluster(.|\n)*none\s+is\s+asked\s+for\s+on\s+m2`),
		},
		resource.TestStep{Config: config(all), ExpectError: regexp.MustCompile(`Unable\s+to\s+create\s+storage\s+pool(.|\n)*mkfs\.btrfs`)},
		resource.TestStep{
			PreConfig:        func() { left(t); members[1].AddTools(t) },
			Config:           config(all),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: creates}),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(at, tfjsonpath.New("verification").AtMapKey("restore").AtMapKey("verdict"), knownvalue.StringExact("proven")),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("members").AtMapKey("m2").AtMapKey("size"), knownvalue.StringExact("5GiB")),
			},
		},
		resource.TestStep{Config: config(`m1 = { size = "5GiB" }, m2 = { size = "5120MiB" }, m3 = { size = "5GiB" }`), ConfigPlanChecks: nothing()},
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"timings", "members"}},
		resource.TestStep{
			Config:           on(members[1], fill(poolConfig, "NAME", name, "ARGUMENTS", "description = \"seen from another member\"\n  members = {"+all+"}")),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates}),
		},
	)
}
