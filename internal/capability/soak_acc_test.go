// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// hostileBytes is what the neighbour writes before it syncs.
const hostileBytes = 32 << 20

// disturb writes to a pool, and syncs, until the context ends.
func disturb(ctx context.Context, t *testing.T, h *acctest.Host, pool string) {
	t.Helper()
	data := make([]byte, hostileBytes)
	rand.Read(data)
	path := filepath.Join(h.Dir, "storage-pools", pool, "neighbour")
	for ctx.Err() == nil {
		file, err := os.Create(path)
		if err != nil {
			t.Errorf("the neighbour cannot write: %v", err)
			return
		}
		_, err = file.Write(data)
		if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
			t.Errorf("the neighbour cannot write: %v", err)
			return
		}
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}

// soak probes a pool again and again and counts the outcomes.
func soak(t *testing.T, h *acctest.Host, pool string, runs int) map[capability.Verdict]int {
	t.Helper()
	_, checker := connect(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	var neighbour sync.WaitGroup
	neighbour.Go(func() { disturb(ctx, t, h, pool) })
	defer neighbour.Wait()
	defer cancel()
	outcomes := map[capability.Verdict]int{}
	for range runs {
		proof, err := checker.ProvePool(t.Context(), pool)
		refusal, refused := errors.AsType[*capability.Refusal](err)
		switch {
		case err != nil && !refused || proof == nil:
			t.Fatalf("the probe failed: %v", err)
		case proof.CopyOnWrite():
			outcomes[capability.Proven]++
		case slices.Contains([]capability.Verdict{proof.Snapshot.Verdict, proof.Branch.Verdict, proof.Restore.Verdict}, capability.Degraded):
			outcomes[capability.Degraded]++
		default:
			outcomes[capability.Unproven]++
		}
		t.Logf("%v, refusal %v", proof.Evidence(), refusal)
	}
	return outcomes
}

func TestAccSoakUnderAHostileNeighbour(t *testing.T) {
	t.Parallel()
	runs := acctest.Soak(t)
	for driver, want := range map[string]capability.Verdict{"btrfs": capability.Proven, "dir": capability.Degraded} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			h := acctest.Start(t, acctest.Options{})
			config := map[string]string{}
			if driver == "btrfs" {
				config["size"] = "8GiB"
			}
			pool := newPool(t, h, driver, config)
			outcomes := soak(t, h, pool, runs)
			t.Logf("%s: %v", driver, outcomes)
			if wrong := runs - outcomes[want] - outcomes[capability.Unproven]; wrong > 0 || outcomes[capability.Unproven] > 2 {
				t.Errorf("%s: %v of %d runs, want %s and at most 2 inconclusive", driver, outcomes, runs, want)
			}
			if left := holdings(t, h, pool); len(left) > 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
}

// killWithin is the time within which a victim is killed; an undisturbed probe takes a few seconds.
const killWithin = 10 * time.Second

// leftovers names the machines of dead probes, when the daemon has ended what it was at with them: it goes on with what a
// victim had begun, which may be the sweeping of an earlier one's.
func leftovers(t *testing.T, daemon *lxd.Daemon, mine []string) []string {
	t.Helper()
	notMine := func() []string {
		return slices.DeleteFunc(machinesOn(t, daemon), func(name string) bool { return slices.Contains(mine, name) })
	}
	for _, name := range notMine() {
		unlock, err := daemon.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		unlock()
	}
	return notMine()
}

func TestAccSoakOfKilledProbes(t *testing.T) {
	t.Parallel()
	runs := acctest.Soak(t)
	h := acctest.Start(t, acctest.Options{})
	pool := newPool(t, h, "btrfs", map[string]string{"size": "8GiB"})
	daemon, checker := connect(t, h)
	var mine []string
	for i := range runs {
		victim := startVictim(t, daemon, pool)
		after := mathrand.N(killWithin) //nolint:gosec // no secret
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
		kill(t, victim)
		left := leftovers(t, daemon, mine)
		t.Logf("killed after %v: left %d machines", after, len(left))
		if len(left) == 0 {
			continue
		}
		name := fmt.Sprintf("mine-%d", i)
		h.LXC(t, "copy", "--instance-only", left[0], name)
		t.Cleanup(func() { h.LXC(t, "delete", name) })
		mine = append(mine, name)
	}
	if _, err := checker.ProvePool(t.Context(), pool); err != nil {
		t.Error(err)
	}
	slices.Sort(mine)
	if diff := cmp.Diff(mine, slices.Sorted(slices.Values(machinesOn(t, daemon)))); diff != "" {
		t.Errorf("after the sweep the machines are not the user's:\n%s", diff)
	}
	if images, err := daemon.Images(t.Context()); err != nil || len(images) > 0 {
		t.Errorf("after the sweep there are images %v (error %v), want none", images, err)
	}
}
