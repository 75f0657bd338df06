// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

const poolConfig = `
resource "lab_storage_pool" "p" {
  name = "NAME"
  ARGUMENTS
}
`

func TestStoragePool(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	name := acctest.Name(t, "pool")
	config := func(arguments string) string {
		return on(host, fill(poolConfig, "NAME", name, "ARGUMENTS", arguments))
	}
	const at = "lab_storage_pool.p"
	verified := func(operation string) tfjsonpath.Path {
		return tfjsonpath.New("verification").AtMapKey(operation)
	}
	date := statecheck.CompareValue(compare.ValuesSame())

	apply(t, func(t *testing.T) {
		t.Helper()
		gone(host, "storage-pools/"+name)(t)
		nothingAt(t, filepath.Join(host.Dir, "disks", name+".img"), filepath.Join(host.Dir, "storage-pools", name))
	},
		resource.TestStep{
			Config: config(`size = "2GiB"`),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue(at, tfjsonpath.New("driver"), knownvalue.StringExact("btrfs")),
				statecheck.ExpectKnownValue(at, verified("snapshot").AtMapKey("verdict"), knownvalue.StringExact("proven")),
				statecheck.ExpectKnownValue(at, verified("snapshot").AtMapKey("space_ratio"), below(0.01)),
				statecheck.ExpectKnownValue(at, verified("branch").AtMapKey("verdict"), knownvalue.StringExact("proven")),
				statecheck.ExpectKnownValue(at, verified("branch").AtMapKey("space_ratio"), below(0.01)),
				statecheck.ExpectKnownValue(at, verified("restore").AtMapKey("verdict"), knownvalue.StringExact("proven")),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("create_ms"), positive()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("verify_ms"), positive()),
				date.AddStateValue(at, verified("date")),
			},
		},
		resource.TestStep{ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"timings"}},
		resource.TestStep{Config: config(`size = "2GiB"`), ResourceName: at, ImportState: true, ImportStateKind: resource.ImportBlockWithID},
		// Another spelling of the same size is no change.
		resource.TestStep{Config: config(`size = "2048MiB"`), ConfigPlanChecks: nothing()},
		// The proof still holds, as nothing changed that it depends on.
		resource.TestStep{
			Config: config(`size        = "2048MiB"
  description = "of the lab"
  config      = { "user.role" = "a" }`),
			ConfigPlanChecks:  plan(map[string]plancheck.ResourceActionType{at: updates}),
			ConfigStateChecks: []statecheck.StateCheck{date.AddStateValue(at, verified("date"))},
		},
		resource.TestStep{
			PreConfig: func() { host.LXC(t, "storage", "set", name, "user.role", "b") },
			Config: config(`size        = "2048MiB"
  description = "of the lab"
  config      = { "user.role" = "a" }`),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates}),
		},
		resource.TestStep{
			PreConfig:        func() { host.LXC(t, "storage", "delete", name) },
			Config:           config(`size = "2GiB"`),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: creates}),
		},
	)
}

// below expects a number that is less than a limit.
func below(limit float64) knownvalue.Check {
	return knownvalue.Float64Func(func(value float64) error {
		if value >= limit {
			return fmt.Errorf("%g is not below %g", value, limit)
		}
		return nil
	})
}

// nothingAt makes sure that paths do not exist.
func nothingAt(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
}

func TestStoragePoolsThatDoNotDoAreRefusedAtPlan(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	source := t.TempDir()
	precious := filepath.Join(source, "precious")
	if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ arguments, says string }{
		"driver that copies":        {`driver = "dir"`, `Host\s+refused(.|\n)*copies\s+every\s+file(.|\n)*What\s+helps`},
		"driver that is absent":     {`driver = "zfs"`, `Host\s+refused(.|\n)*does\s+not\s+offer\s+the\s+driver\s+"zfs"(.|\n)*What\s+helps`},
		"source that holds a file":  {fill(`source = "SOURCE"`, "SOURCE", source), `Host\s+refused(.|\n)*not\s+empty(.|\n)*precious`},
		"loop file beyond the disk": {`size = "900TiB"`, `Host\s+refused(.|\n)*What\s+helps`},
		"size that is none":         {`size = "20 gigs"`, `not\s+a\s+size`},
		"key of its own argument":   {`config = { size = "1GiB" }`, "Use\\s+the\\s+argument\\s+`size`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := acctest.Name(t, "pool")
			apply(t, gone(host, "storage-pools/"+pool), resource.TestStep{
				Config: on(host, fill(poolConfig, "NAME", pool, "ARGUMENTS", test.arguments)), PlanOnly: true, ExpectError: regexp.MustCompile(test.says),
			})
		})
	}
	t.Cleanup(func() {
		if content, err := os.ReadFile(precious); err != nil || string(content) != "mine" {
			t.Errorf("the file is %q, %v", content, err)
		}
	})
}

func TestStoragePoolOnAHostThatLacksItsTools(t *testing.T) {
	t.Parallel()
	host := acctest.Start(t, acctest.Options{WithoutTools: []string{"btrfs", "mkfs.btrfs"}})
	name := acctest.Name(t, "pool")
	config := on(host, fill(poolConfig, "NAME", name, "ARGUMENTS", `size = "2GiB"`))
	apply(t, gone(host, "storage-pools/"+name),
		resource.TestStep{Config: config, PlanOnly: true, ExpectError: regexp.MustCompile(
			`Host\s+refused:\s+copy-on-write\s+storage(.|\n)*offers\s+the\s+storage\s+drivers:\s+dir(.|\n)*mkfs.btrfs(.|\n)*What\s+helps`)},
		// As when a package was installed.
		resource.TestStep{PreConfig: func() { host.AddTools(t) }, Config: config},
	)
}

func TestStoragePoolOfATakenNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	pool := host.Pool(t)
	apply(t, nil, resource.TestStep{
		Config:      on(host, fill(poolConfig, "NAME", pool, "ARGUMENTS", `size = "2GiB"`)),
		ExpectError: regexp.MustCompile(`already\s+exists(.|\n)*terraform\s+import`),
	})
	if driver := host.LXC(t, "storage", "get", pool, "source"); driver == "" {
		t.Error("the pool is gone")
	}
}
