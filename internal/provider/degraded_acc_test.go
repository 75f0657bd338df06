// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// degradedLab is what somebody has on a host whose only driver copies everything.
const degradedLab = `
resource "lab_storage_pool" "p" {
  name   = "POOL"
  driver = "dir"
}

resource "lab_machine" "m" {
  name   = "MACHINE"
  image  = "IMAGE"
  pool   = lab_storage_pool.p.id
  memory = "MEMORY"
}

resource "lab_snapshot" "s" {
  machine = lab_machine.m.id
  name    = "clean"
}
`

const degradedImports = `
import {
  to = lab_storage_pool.p
  id = "POOL"
}

import {
  to = lab_machine.m
  id = "MACHINE"
}

import {
  to = lab_snapshot.s
  id = "MACHINE/clean"
}
`

// A lab that is there already can be taken over, read, planned and destroyed on a host on which none of it could be made.
func TestLabOnADegradedHost(t *testing.T) {
	t.Parallel()
	host := acctest.Start(t, acctest.Options{WithoutTools: []string{"btrfs", "mkfs.btrfs"}})
	pool, name, image := acctest.Name(t, "pool"), acctest.Name(t, "m"), host.Tiny(t).Fingerprint
	config := func(text, memory string) string {
		return on(host, fill(text, "POOL", pool, "MACHINE", name, "IMAGE", image, "MEMORY", memory))
	}
	apply(t, gone(host, "instances/"+name, "storage-pools/"+pool),
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "storage", "create", pool, "dir")
				host.LXC(t, "init", image, name, "--no-profiles", "--storage", pool, "-c", "limits.memory=256MiB")
				host.LXC(t, "start", name)
				host.LXC(t, "snapshot", name, "clean")
			},
			Config: config(degradedLab+degradedImports, "256MiB"),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{
				"lab_storage_pool.p": leaves, "lab_machine.m": leaves, "lab_snapshot.s": leaves,
			}),
		},
		resource.TestStep{RefreshState: true},
		resource.TestStep{
			Config:      config(degradedLab, "512MiB"),
			ExpectError: regexp.MustCompile(`Host\s+refused:\s+copy-on-write\s+storage(.|\n)*copies\s+every\s+file(.|\n)*What\s+helps`),
		},
		resource.TestStep{
			Config:      config(strings.ReplaceAll(degradedLab, `"clean"`, `"cleaner"`), "256MiB"),
			ExpectError: regexp.MustCompile(`Host\s+refused:\s+copy-on-write\s+snapshots(.|\n)*copies\s+every\s+file`),
		},
		resource.TestStep{Config: config(degradedLab, "256MiB"), ConfigPlanChecks: nothing()},
	)
}

// The pool that a plan counted on has been replaced by one that copies when the plan is applied.
func TestSavedPlanOnAHostThatDegradedSince(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	pool, name := acctest.Name(t, "pool"), acctest.Name(t, "m")
	host.LXC(t, "storage", "create", pool, "btrfs", "size=1GiB")
	t.Cleanup(func() { host.LXC(t, "storage", "delete", pool) })
	terraform := acctest.NewCLI(t, on(host, fill(`
resource "lab_machine" "m" {
  name  = "NAME"
  image = "IMAGE"
  pool  = "POOL"
}
`, "NAME", name, "IMAGE", host.Tiny(t).Fingerprint, "POOL", pool)))
	terraform.Run(t, "plan", "-out=saved")
	host.LXC(t, "storage", "delete", pool)
	host.LXC(t, "storage", "create", pool, "dir")
	output, err := terraform.Command(t.Context(), "apply", "-no-color", "saved").CombinedOutput()
	if err == nil || !regexp.MustCompile(`Host\s+refused:\s+copy-on-write\s+storage(.|\n)*copies\s+every\s+file`).Match(output) {
		t.Errorf("the apply gave %v, want a refusal:\n%s", err, output)
	}
	gone(host, "instances/"+name)(t)
}
