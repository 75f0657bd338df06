// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// lateConfig is a scenario whose machines change, when late is true, after their snapshots were taken.
const lateConfig = `
provider "lab" {
  address = "ADDRESS"
}

variable "run" {
  default = "0"
}

variable "late" {
  default = false
}

resource "lab_machine" "m" {
  for_each    = toset(["a", "b"])
  name        = "PREFIX-${each.key}"
  image       = "IMAGE"
  pool        = "POOL"
  networks    = { eth0 = { network = "NETWORK" } }
  memory      = var.late && each.key == "a" ? "512MiB" : "256MiB"
  description = var.late && each.key == "a" ? "late" : "early"
  ready       = { address = "ipv4", command = var.late ? ["test", "-d", "/root"] : ["true"] }
}

resource "lab_snapshot" "clean" {
  for_each = lab_machine.m
  machine  = each.value.id
  name     = "clean"
}

resource "lab_reset" "r" {
  snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  triggers  = { run = var.run }
}

output "snapshots" {
  value = lab_reset.r.snapshots
}
`

// late is a scenario in a state of its own, which terraform applies as a process of its own.
type late struct {
	*acctest.CLI
	scenario
	keys []string
}

// newLate stands a scenario up at an address and changes the machines after their snapshots.
func newLate(t *testing.T, host *acctest.Host, address string) late {
	t.Helper()
	s := late{scenario: scenario{host: host, prefix: acctest.Name(t, "s"), t: t}, keys: []string{"a", "b"}}
	s.CLI = acctest.NewCLI(t, fill(lateConfig, "ADDRESS", address, "PREFIX", s.prefix, "IMAGE", host.Tiny(t).Fingerprint,
		"POOL", host.Pool(t), "NETWORK", host.Network(t)))
	t.Cleanup(func() {
		s.Destroy(t)
		for _, key := range s.keys {
			gone(host, "instances/"+s.prefix+"-"+key)(t)
		}
	})
	s.Run(t, "apply", "-auto-approve", "-no-color")
	s.Run(t, "apply", "-auto-approve", "-no-color", "-var=late=true")
	return s
}

// arguments are those of the apply that resets the scenario.
func (s late) arguments(run string) []string {
	return []string{"apply", "-auto-approve", "-no-color", "-var=late=true", "-var=run=" + run}
}

// applyKilled spoils the machines, begins to reset them, and has the whole of it killed when it is time, which comes
// before it has ended by itself, or never.
func (s late) applyKilled(run string, untilTime func(kill func(), ended <-chan struct{})) {
	s.t.Helper()
	s.mark(s.keys...)
	s.Interrupt(s.t, syscall.SIGKILL, untilTime, s.arguments(run)...)
}

// converges makes sure that a plain apply finishes what was begun: disks, configuration, and nothing left to do.
func (s late) converges(run string) {
	s.t.Helper()
	s.Run(s.t, s.arguments(run)...)
	s.marked(false, s.keys...)
	for _, key := range s.keys {
		live, _, err := s.host.Client(s.t).GetInstance(s.prefix + "-" + key)
		if err != nil {
			s.t.Fatal(err)
		}
		memory, description := "512MiB", "late"
		if key == "b" { // of which only the ready condition changed
			memory, description = "256MiB", "early"
		}
		if live.Config["limits.memory"] != memory || live.Description != description || !strings.Contains(live.Config["user.lab.ready"], "/root") {
			s.t.Errorf("machine %q has the configuration of its snapshot: %v, description %q", key, live.Config, live.Description)
		}
	}
	s.Run(s.t, append([]string{"plan", "-detailed-exitcode"}, s.arguments(run)[2:]...)...)
}
