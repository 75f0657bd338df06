// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// planEvery is how often a plan makes sure that nothing drifted.
const planEvery = 10

// TestAccSoakOfManyResets spoils four Debian machines and resets them through terraform, again and again: all that may
// be called a hundred times a day, with a new provider process and a state that is written each time.
func TestAccSoakOfManyResets(t *testing.T) {
	t.Parallel()
	runs := acctest.Soak(t)
	host := acctest.Shared(t)
	d := newDebians(t, host, debianReset)
	d.reset(1) // the first has written what every one writes at a boot
	was := map[string]string{}
	for _, machine := range d.machines {
		was[machine] = d.look(machine)
		t.Logf("%s is\n%s", machine, was[machine])
	}
	before := d.settledSpace()

	var took []time.Duration
	for run := range runs {
		onAll(d.machines, func(machine string) { host.In(t, machine, spoil) })
		if run == 0 && d.look(d.machines[0]) == was[d.machines[0]] {
			t.Fatal("spoiling a machine changes nothing that is looked at")
		}
		whole, itself := d.reset(run + 2)
		took = append(took, itself)
		onAll(d.machines, func(machine string) {
			if got, ok := d.same(machine, was[machine]); !ok {
				t.Errorf("reset %d: machine %s is\n%s\nand was\n%s", run+1, machine, got, was[machine])
			}
		})
		if run%planEvery == planEvery-1 {
			d.plan(run + 2)
		}
		t.Logf("reset %d took %v, the apply %v", run+1, itself, whole.Round(time.Millisecond))
		if t.Failed() {
			return
		}
	}
	after := d.settledSpace()
	const slack = 16 << 20
	if grown := int64(after) - int64(before); grown > max(slack, int64(before)/50) { //nolint:gosec // bytes of a disk
		t.Errorf("the pool held %d bytes and holds %d", before, after)
	}
	part := min(20, len(took))
	t.Logf("the pool held %d bytes and holds %d; median of the first %d %v, of the last %v; slowest %v",
		before, after, part, acctest.Median(took[:part]), acctest.Median(took[len(took)-part:]), slices.Max(took))
}

// onAll does something to all machines at once.
func onAll(machines []string, do func(machine string)) {
	var all sync.WaitGroup
	for _, machine := range machines {
		all.Go(func() { do(machine) })
	}
	all.Wait()
}
