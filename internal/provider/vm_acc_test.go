// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// liveLab is a virtual machine with a checkpoint, a branch that goes on from it, and a reset.
const liveLab = `
variable "run" {
  type    = string
  default = "1"
}

variable "networks" {
  type    = map(object({ network = string }))
  default = {}
}

resource "lab_machine" "m" {
  name           = "NAME"
  type           = "virtual-machine"
  image          = "IMAGE"
  pool           = "POOL"
  cpus           = 1
  memory         = "256MiB"
  disk           = "256MiB"
  checkpointable = true
  networks       = { eth0 = { network = "NETWORK" } }
  config         = { "security.secureboot" = "false" }
  setup          = [{ command = ["sh", "-c", "echo clean > /dev/shm/mark"] }]
}

resource "lab_snapshot" "s" {
  machine  = lab_machine.m.id
  name     = "checkpoint"
  stateful = true
}

resource "lab_branch" "b" {
  name     = "NAME-b"
  source   = lab_snapshot.s.id
  memory   = true
  networks = var.networks
}

resource "lab_reset" "r" {
  snapshots = { m = lab_snapshot.s.id }
  triggers  = { run = var.run }
}

output "state_bytes" { value = lab_snapshot.s.state_bytes }
output "machine" { value = lab_machine.m.timings }
output "branch" { value = lab_branch.b.timings }
output "reset" { value = lab_reset.r.timings }
`

// A laboratory with memory is declared, reset, and given away like any other.
func TestVMLab(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachines(t)
	name := acctest.Name(t, "v")
	terraform := acctest.NewCLI(t, fill(liveLab, "NAME", name, "IMAGE", host.Guest(t).Fingerprint, "POOL", host.Pool(t), "NETWORK", host.Network(t)))
	terraform.Use(host)
	t.Cleanup(func() { terraform.Destroy(t) })
	apply := func(args ...string) {
		t.Helper()
		terraform.Run(t, append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
		terraform.Run(t, append([]string{"plan", "-detailed-exitcode", "-no-color"}, args...)...)
	}
	apply()
	t.Log(terraform.Run(t, "output", "-json"))
	const look = "cat /dev/shm/mark /proc/sys/kernel/random/boot_id"
	clean := host.In(t, name, look)
	if !strings.HasPrefix(clean, "clean\n") {
		t.Errorf("the machine is at %q", clean)
	}
	if got := host.In(t, name+"-b", look); got != clean {
		t.Errorf("the branch is at %q, want %q", got, clean)
	}

	host.In(t, name, "echo dirty > /dev/shm/mark")
	host.In(t, name+"-b", "echo branch > /dev/shm/mark")
	// The branch gets an interface of its own on the network of its source while the source goes back to its checkpoint.
	apply("-var=run=2", `-var=networks={ eth0 = { network = "`+host.Network(t)+`" } }`)
	if got := host.In(t, name, look); got != clean {
		t.Errorf("after the reset the machine is at %q, want %q", got, clean)
	}
	if got := host.In(t, name+"-b", look); got != strings.Replace(clean, "clean", "branch", 1) {
		t.Errorf("the branch is at %q after the reset of its source", got)
	}
	hardware := host.In(t, name+"-b", "ls /sys/class/net; cat /sys/class/net/e*/address; dmesg | tail -5")
	t.Log(hardware)
	if mac := strings.TrimSpace(host.LXC(t, "config", "get", name+"-b", "volatile.eth0.hwaddr")); !strings.Contains(hardware, mac) {
		t.Errorf("the branch has %q, want an interface with %s", hardware, mac)
	}
}
