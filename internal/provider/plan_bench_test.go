// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// Snapshots go over the machines as in the examples: Terraform evaluates an index into them by decoding all of them, each
// time.
const manyMachines = `
provider "lab" {
  address = "ADDRESS"
}
resource "lab_machine" "m" {
  for_each = { for i in range(MACHINES) : format("%03d", i) => i }
  name     = "PREFIX-${each.key}"
  image    = "IMAGE"
  pool     = "POOL"
  running  = each.value < RUNNING
}
resource "lab_snapshot" "s" {
  for_each = lab_machine.m
  machine  = each.value.id
  name     = "clean"
}
`

const manyNothings = `
resource "terraform_data" "m" {
  for_each = { for i in range(MACHINES) : format("%03d", i) => i }
  input    = each.value
}
resource "terraform_data" "s" {
  for_each = terraform_data.m
  input    = each.value.id
}
`

// BenchmarkPlanOfMany plans a lab of many machines, a snapshot each, in which nothing changed, with the provider as a
// process of its own. Raw is a plan of as many terraform_data resources, plus the same listing by the raw client. It also
// reports the requests to the daemon that a plan takes:
//
//	TF_ACC=1 go test -run - -bench PlanOfMany -benchtime 1x -timeout 1h ./internal/provider
func BenchmarkPlanOfMany(b *testing.B) {
	for _, size := range []struct{ machines, running int }{{100, 40}, {300, 40}} {
		b.Run(fmt.Sprint(size.machines), func(b *testing.B) {
			host := acctest.Shared(b)
			proxy := lxdtest.NewProxy(b, host.Socket())
			words := []string{
				"ADDRESS", proxy.Address(), "PREFIX", acctest.Name(b, "m"), "IMAGE", host.Tiny(b).Fingerprint, "POOL", host.Pool(b),
				"MACHINES", fmt.Sprint(size.machines), "RUNNING", fmt.Sprint(size.running),
			}
			ours := acctest.NewCLI(b, fill(manyMachines, words...))
			b.Cleanup(func() { ours.Destroy(b) })
			ours.Run(b, "apply", "-auto-approve", "-no-color")
			floor := acctest.NewCLI(b, fill(manyNothings, words...))
			floor.Run(b, "apply", "-auto-approve", "-no-color")

			requests := 0
			acctest.Compare(b, func() {
				proxy.ForgetRequests()
				ours.Run(b, "plan", "-detailed-exitcode", "-no-color")
				requests = max(requests, len(proxy.Requests()))
			}, func() {
				floor.Run(b, "plan", "-detailed-exitcode", "-no-color")
				if _, err := host.Client(b).GetInstancesFull(api.InstanceTypeAny); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(float64(requests), "requests")
		})
	}
}
