// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"regexp"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const lvmLab = `
resource "lab_storage_pool" "p" {
  name   = "POOL"
  driver = "lvm"
  size   = "8GiB"
  CONFIG
}

resource "lab_machine" "m" {
  name  = "NAME"
  image = "IMAGE"
  pool  = lab_storage_pool.p.id
  disk  = "256MiB"
  setup = [{ command = ["sh", "-c", "echo clean > /root/mark; sync"] }]
}

resource "lab_snapshot" "s" {
  machine = lab_machine.m.id
  name    = "clean"
}

resource "lab_branch" "b" {
  name   = "NAME-b"
  source = lab_snapshot.s.id
}

variable "run" {
  type    = string
  default = "1"
}

resource "lab_reset" "r" {
  snapshots = { m = lab_snapshot.s.id }
  triggers  = { run = var.run }
}
`

// The host that virtual machines run on has device mapper, which few others under test have: LVM is real there.
func TestVMThinAndThickPools(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachinesAtLength(t)
	name, pool := acctest.Name(t, "m"), acctest.Name(t, "lvm")
	config := func(more string) string {
		return fill(lvmLab, "NAME", name, "IMAGE", host.Tiny(t).Fingerprint, "POOL", pool, "CONFIG", more)
	}
	terraform := acctest.NewCLI(t, config(`config = { "lvm.use_thinpool" = "false" }`))
	terraform.Use(host)
	output, err := terraform.Command(t.Context(), "plan", "-no-color").CombinedOutput()
	if err == nil || !regexp.MustCompile(`Host\s+refused(.|\n)*lvm.use_thinpool(.|\n)*copies\s+every\s+block`).Match(output) {
		t.Errorf("the plan of a thick pool gave %v, want a refusal:\n%s", err, output)
	}

	terraform.Write(t, config(""))
	t.Cleanup(func() { terraform.Destroy(t) })
	terraform.Apply(t)
	for _, machine := range []string{name, name + "-b"} {
		if got := host.In(t, machine, "cat /root/mark"); got != "clean" {
			t.Errorf("machine %q has %q", machine, got)
		}
		host.In(t, machine, "echo dirty > /root/mark; sync")
	}
	terraform.Run(t, "apply", "-auto-approve", "-no-color", "-var=run=2")
	if got := host.In(t, name, "cat /root/mark"); got != "clean" {
		t.Errorf("after the reset the machine has %q", got)
	}
	if got := host.In(t, name+"-b", "cat /root/mark"); got != "dirty" {
		t.Errorf("after the reset of its source the branch has %q", got)
	}
}
