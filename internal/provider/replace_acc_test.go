// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const stack = `
resource "lab_storage_pool" "p" {
  name = "POOL"
  size = "2GiB"
}

resource "lab_network" "n" {
  name         = "NETWORK"
  ipv4_address = "none"
}

resource "lab_image" "i" {
  file  = { metadata = "IMAGE" }
  pools = [lab_storage_pool.p.id]
}

resource "lab_machine" "m" {
  name     = "MACHINE"
  image    = lab_image.i.fingerprint
  pool     = lab_storage_pool.p.id
  networks = { eth0 = { network = lab_network.n.id } }
}

resource "lab_snapshot" "s" {
  machine = lab_machine.m.id
  name    = "clean"
}
`

func TestReplacedObjectsReplaceWhatStandsOnThem(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	pools := [2]string{acctest.Name(t, "pool"), acctest.Name(t, "pool")}
	networks := [2]string{acctest.Name(t, "net"), acctest.Name(t, "net")}
	machines := [2]string{acctest.Name(t, "m"), acctest.Name(t, "m")}
	images := [2]acctest.Image{acctest.TinyFiles(t), acctest.TinyFiles(t)}
	file := filepath.Join(t.TempDir(), "image.tar")
	copyFile(t, images[0].Unified, file)
	config := func(pool, network, machine int) string {
		return on(host, fill(stack, "POOL", pools[pool], "NETWORK", networks[network], "MACHINE", machines[machine], "IMAGE", file))
	}
	other := statecheck.CompareValue(compare.ValuesDiffer())
	anew := func() []statecheck.StateCheck {
		return []statecheck.StateCheck{other.AddStateValue("lab_snapshot.s", tfjsonpath.New("id"))}
	}
	planned := func(pool, network, image plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return plan(map[string]plancheck.ResourceActionType{
			"lab_storage_pool.p": pool, "lab_network.n": network, "lab_image.i": image, "lab_machine.m": replaces, "lab_snapshot.s": replaces,
		})
	}

	left := []string{"images/" + images[0].Fingerprint, "images/" + images[1].Fingerprint}
	for i := range 2 {
		left = append(left, "storage-pools/"+pools[i], "networks/"+networks[i], "instances/"+machines[i])
	}
	apply(t, gone(host, left...),
		resource.TestStep{Config: config(0, 0, 0), ConfigStateChecks: anew()},
		resource.TestStep{Config: config(0, 0, 1), ConfigPlanChecks: planned(leaves, leaves, leaves), ConfigStateChecks: anew()},
		resource.TestStep{
			PreConfig: func() { copyFile(t, images[1].Unified, file) },
			Config:    config(0, 0, 1), ConfigPlanChecks: planned(leaves, leaves, replaces), ConfigStateChecks: anew(),
		},
		resource.TestStep{Config: config(0, 1, 1), ConfigPlanChecks: planned(leaves, replaces, leaves), ConfigStateChecks: anew()},
		resource.TestStep{Config: config(1, 1, 1), ConfigPlanChecks: planned(replaces, leaves, updates), ConfigStateChecks: anew()},
	)
}
