// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

const (
	// soakBranches are made at once.
	soakBranches = 8
	// leftBytes is what a round may leave behind of the pool's space, or leftPercent of it, when that is more.
	leftBytes   = 16 << 20
	leftPercent = 2
)

// Eight branches at once from one snapshot, all running and usable, and destroyed again, as often as LAB_ACC_SOAK says:
// no error, no leftover, and the space is back when btrfs has cleaned up.
func TestAccSoakBranches(t *testing.T) {
	t.Parallel()
	rounds := acctest.Soak(t)
	host := acctest.Start(t, acctest.Options{})
	l := connectTo(t, host)
	spec := tiny(t, host)
	spec.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
	spec.Ready = lab.Ready{Address: "ipv4"}
	machine, _ := create(t, l, spec)
	host.In(t, machine.Name, "dd if=/dev/urandom of=/root/data bs=1M count=64 2>/dev/null; sync")
	source := snapshotOf(t, l, machine)
	clean(t, host) // of what proved the pool
	before := used(t, host)
	allowed := max(leftBytes, before*leftPercent/100)
	for round := range rounds {
		fanOut(t, host, l, source)
		clean(t, host)
		left := used(t, host) - before
		t.Logf("round %d: %d KiB left of %d MiB", round+1, left/1024, before>>20)
		if left > allowed {
			t.Errorf("round %d left %d MiB behind", round+1, left>>20)
		}
		names, err := host.Client(t).GetInstanceNames(api.InstanceTypeAny)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) != 1 {
			t.Errorf("round %d left %v", round+1, names)
		}
	}
}

// fanOut makes branches side by side, writes in each while all of them run, and destroys them side by side.
func fanOut(t *testing.T, host *acctest.Host, l *lab.Lab, source lab.SourceID) {
	t.Helper()
	var making, removing sync.WaitGroup
	var made [soakBranches]*lab.Machine
	for index := range made {
		making.Go(func() {
			var err error
			made[index], _, err = l.CreateBranch(t.Context(), running(t, source))
			if err != nil {
				t.Errorf("create: %v", err)
			}
		})
	}
	making.Wait()
	addresses := map[string]string{}
	for _, machine := range made {
		if machine == nil {
			continue
		}
		if other, twice := addresses[machine.Addresses.IPv4]; twice {
			t.Errorf("%s and %s both have %s", machine.Name, other, machine.Addresses.IPv4)
		}
		addresses[machine.Addresses.IPv4] = machine.Name
		host.In(t, machine.Name, "dd if=/dev/urandom of=/root/data bs=1M count=8 conv=notrunc 2>/dev/null; sync")
		removing.Go(func() {
			if err := l.DeleteMachine(t.Context(), machine.ID); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
	removing.Wait()
}

// clean waits until btrfs has freed what was deleted.
func clean(t testing.TB, host *acctest.Host) {
	t.Helper()
	pool := filepath.Join(host.Dir, "storage-pools", host.Pool(t))
	for _, args := range [][]string{{"filesystem", "sync"}, {"subvolume", "sync"}} {
		if out, err := exec.CommandContext(t.Context(), "btrfs", append(args, pool)...).CombinedOutput(); err != nil {
			t.Fatalf("btrfs %v: %v: %s", args, err, out)
		}
	}
}
