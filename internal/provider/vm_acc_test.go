// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// liveLab is a virtual machine with a checkpoint and a snapshot of its disk, a branch that goes on from the checkpoint, and
// ways back to both.
const liveLab = `
variable "warm" {
  type    = string
  default = "1"
}

variable "cold" {
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
  setup          = [{ command = ["sh", "-c", "echo clean | tee /dev/shm/mark > /root/mark; cat BOOT > /dev/null; sync"] }]
}

resource "lab_snapshot" "checkpoint" {
  machine  = lab_machine.m.id
  name     = "checkpoint"
  stateful = true
}

resource "lab_snapshot" "disk" {
  machine    = lab_machine.m.id
  name       = "disk"
  depends_on = [lab_snapshot.checkpoint]
}

resource "lab_branch" "b" {
  name     = "NAME-b"
  source   = lab_snapshot.checkpoint.id
  memory   = true
  networks = var.networks
}

resource "lab_reset" "warm" {
  snapshots = { m = lab_snapshot.checkpoint.id }
  triggers  = { run = var.warm }
}

resource "lab_reset" "cold" {
  snapshots = { m = lab_snapshot.disk.id }
  triggers  = { run = var.cold }
}

output "durations" {
  value = {
    machine  = lab_machine.m.timings
    snapshot = lab_snapshot.checkpoint.timings
    branch   = lab_branch.b.timings
    warm     = lab_reset.warm.timings
    cold     = lab_reset.cold.timings
  }
}
`

// bootID is where a kernel tells which boot it is. It makes the id up when it is first read, and what has branched off
// before that makes up its own.
const bootID = "/proc/sys/kernel/random/boot_id"

// What liveLab's guests tell of their memory, their disk and their boot.
const liveLook = "cat /dev/shm/mark /root/mark " + bootID

func dirtied(text string) string {
	return "echo " + text + " > /dev/shm/mark; echo " + text + " > /root/mark; sync; " + liveLook
}

// liveOn is liveLab on a host, which it leaves when the test ends: the machine's name, and terraform with it.
func liveOn(t *testing.T, host *acctest.Host) (name string, terraform *acctest.CLI) {
	t.Helper()
	name = acctest.Name(t, "v")
	terraform = acctest.NewCLI(t, fill(liveLab, "BOOT", bootID, "NAME", name, "IMAGE", host.Guest(t).Fingerprint, "POOL", host.Pool(t), "NETWORK", host.Network(t)))
	terraform.Use(host)
	t.Cleanup(func() { terraform.Destroy(t) })
	return name, terraform
}

// A laboratory with memory is declared, reset, and given away like any other.
func TestVMLab(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachines(t)
	name, terraform := liveOn(t, host)
	want := func(machine, looks string) {
		t.Helper()
		if got := host.In(t, machine, liveLook); got != looks {
			t.Errorf("machine %q is at %q, want %q", machine, got, looks)
		}
	}
	terraform.Apply(t)
	clean := host.In(t, name, liveLook)
	if !strings.HasPrefix(clean, "clean\nclean\n") {
		t.Errorf("the machine is at %q", clean)
	}
	want(name+"-b", clean)

	// The branch gets an interface of its own on the network of its source while the source goes back to its checkpoint.
	host.In(t, name, dirtied("dirty"))
	branched := host.In(t, name+"-b", dirtied("branched"))
	moved := []string{"-var=warm=2", `-var=networks={ eth0 = { network = "` + host.Network(t) + `" } }`}
	terraform.Apply(t, moved...)
	want(name, clean)
	want(name+"-b", branched)
	addresses := host.In(t, name+"-b", "cat /sys/class/net/e*/address")
	if mac := strings.TrimSpace(host.LXC(t, "config", "get", name+"-b", "volatile.eth0.hwaddr")); !strings.Contains(addresses, mac) {
		t.Errorf("the branch has %q, want an interface with %s", addresses, mac)
	}

	// The disk alone comes with a boot.
	host.In(t, name, dirtied("dirty"))
	terraform.Apply(t, append(moved, "-var=cold=2")...)
	lines := strings.Split(host.In(t, name, "test -e /dev/shm/mark && cat /dev/shm/mark; cat /root/mark "+bootID), "\n")
	if len(lines) != 2 || lines[0] != "clean" || strings.HasSuffix(clean, lines[1]) {
		t.Errorf("after the reset of its disk the machine is at %q, want the disk and another boot than in %q", lines, clean)
	}
	wantWarmth(t, terraform)
}

// wantWarmth checks that the way back to a checkpoint is told by its own duration, apart from the way with a boot.
func wantWarmth(t *testing.T, terraform *acctest.CLI) {
	t.Helper()
	output := terraform.Run(t, "output", "-json", "durations")
	t.Log(output)
	var durations struct {
		Warm, Cold struct {
			UsableMS float64 `json:"usable_ms"`
		}
	}
	if err := json.Unmarshal([]byte(output), &durations); err != nil {
		t.Fatal(err)
	}
	warm, cold := durations.Warm.UsableMS, durations.Cold.UsableMS
	if warm <= 0 || cold <= 0 {
		t.Fatalf("the resets took %v and %v ms", warm, cold)
	}
	t.Logf("usable with its memory in %.2f of the time with a boot", warm/cold)
}
