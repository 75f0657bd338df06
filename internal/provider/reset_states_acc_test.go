// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const otherState = `
provider "lab" {
  address = "ADDRESS"
}

variable "run" {
  default = "0"
}

resource "lab_reset" "r" {
  snapshots = SNAPSHOTS
  triggers  = { run = var.run }
}
`

// engine gives the verbs on a host, as the action and other programs use them.
func engine(t *testing.T, host *acctest.Host) *lab.Lab {
	t.Helper()
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: host.Address(), Project: host.Project()})
	if err != nil {
		t.Fatal(err)
	}
	return lab.New(daemon, capability.New(daemon))
}

// resetByAll resets a scenario from two states and from the engine at once, round after round.
func resetByAll(t *testing.T, rounds int) {
	t.Helper()
	host := acctest.Shared(t)
	s, l := newLate(t, host, host.Address()), engine(t, host)
	ids := s.Run(t, "output", "-json", "snapshots")
	spec := lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{}}
	texts := map[string]string{}
	if err := json.Unmarshal([]byte(ids), &texts); err != nil {
		t.Fatal(err)
	}
	for key, text := range texts {
		id, err := lab.ParseSnapshotID(text)
		if err != nil {
			t.Fatal(err)
		}
		spec.Snapshots[key] = id
	}
	other := acctest.NewCLI(t, fill(otherState, "ADDRESS", host.Address(), "SNAPSHOTS", ids))
	t.Cleanup(func() { other.Destroy(t) })
	others := func(run string) []string {
		return []string{"apply", "-auto-approve", "-no-color", "-var=run=" + run}
	}
	other.Run(t, others("0")...)

	for round := range rounds {
		run := fmt.Sprint(round + 1)
		s.mark(s.keys...)
		var all sync.WaitGroup
		all.Go(func() {
			if output, err := s.Command(t.Context(), s.arguments(run)...).CombinedOutput(); err != nil {
				t.Errorf("round %s, the first state: %v\n%s", run, err, output)
			}
		})
		all.Go(func() {
			if output, err := other.Command(t.Context(), others(run)...).CombinedOutput(); err != nil {
				t.Errorf("round %s, the second state: %v\n%s", run, err, output)
			}
		})
		all.Go(func() {
			if _, err := l.Reset(t.Context(), spec, nil); err != nil {
				t.Errorf("round %s, the engine: %v", run, err)
			}
		})
		all.Wait()
		s.converges(run)
	}
}

// Two states and the engine that reset the same machines at once wait for each other.
func TestStatesThatResetTheSameMachines(t *testing.T) {
	t.Parallel()
	resetByAll(t, 1)
}

func TestAccSoakOfStatesThatResetTheSameMachines(t *testing.T) {
	t.Parallel()
	resetByAll(t, acctest.Soak(t))
}
