// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// newPool makes a storage pool for one test.
func newPool(t *testing.T, h *acctest.Host, driver string, config map[string]string) string {
	t.Helper()
	name := acctest.Name(t, "pool")
	post := api.StoragePoolsPost{Name: name, Driver: driver, StoragePoolPut: api.StoragePoolPut{Description: "of a test", Config: config}}
	if err := h.Client(t).CreateStoragePool(post); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.LXC(t, "storage", "delete", name) })
	return name
}

// holdings lists what is on a daemon, and what a pool is used by.
func holdings(t *testing.T, h *acctest.Host, pool string) []string {
	t.Helper()
	client := h.Client(t)
	names, err := client.GetInstanceNames(api.InstanceTypeAny)
	if err != nil {
		t.Fatal(err)
	}
	images, err := client.GetImageFingerprints()
	if err != nil {
		t.Fatal(err)
	}
	live, _, err := client.GetStoragePool(pool)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(names, images, live.UsedBy)
}

func TestAccProofTellsCopyOnWriteFromCopies(t *testing.T) {
	t.Parallel()
	// The space of directories is that of their disk, on which other tests write and delete unless it is one of its own.
	h := acctest.Start(t, acctest.Options{DiskSize: "8G"})
	_, checker := connect(t, h)

	plain := newPool(t, h, "dir", nil) // and first, since the disk gets back late what a pool on a file of it freed
	bad, err := checker.ProvePool(t.Context(), plain)
	refusal, ok := errors.AsType[*capability.Refusal](err)
	if !ok {
		t.Fatalf("probing the dir pool gave %v, want a refusal", err)
	}
	cow := newPool(t, h, "btrfs", map[string]string{"size": "4GiB"})
	good, err := checker.ProvePool(t.Context(), cow)
	if err != nil {
		t.Fatal(err)
	}
	if !good.CopyOnWrite() {
		t.Errorf("the btrfs pool was not proved: %v", good.Evidence())
	}
	for what, pair := range map[string][2]capability.Measure{
		"snapshot": {good.Snapshot, bad.Snapshot}, "branch": {good.Branch, bad.Branch}, "restore": {good.Restore, bad.Restore},
	} {
		if pair[1].Verdict != capability.Degraded {
			t.Errorf("%s on dir is %s, want %s: %v", what, pair[1].Verdict, capability.Degraded, bad.Evidence())
		}
		if pair[1].Space < 100*pair[0].Space {
			t.Errorf("%s takes %v of the data on btrfs and %v on dir, want a factor of 100 between them", what, pair[0].Space, pair[1].Space)
		}
	}
	if refusal.Capability != capability.Pools || !strings.Contains(refusal.Detail(), "a copy") {
		t.Errorf("the refusal does not say what is wrong:\n%s", refusal.Detail())
	}
	for _, pool := range []string{cow, plain} {
		if left := holdings(t, h, pool); len(left) > 0 {
			t.Errorf("the probe of %s left %q", pool, left)
		}
	}
}

// ensureAtOnce asks for a pool's proof many times at once, through connections of their own, and counts the probes.
func ensureAtOnce(t *testing.T, h *acctest.Host, pool string) int {
	t.Helper()
	var group sync.WaitGroup
	var probes atomic.Int32
	for range 4 {
		_, checker := connect(t, h)
		for range 2 {
			group.Go(func() {
				proof, fresh, err := checker.EnsureProof(t.Context(), pool)
				if err != nil || !proof.CopyOnWrite() {
					t.Errorf("the pool was not proved: %v", err)
				}
				if fresh {
					probes.Add(1)
				}
			})
		}
	}
	group.Wait()
	return int(probes.Load())
}

func TestAccProofIsRecordedAndHolds(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	pool := newPool(t, h, "btrfs", map[string]string{"size": "4GiB"})
	if probes := ensureAtOnce(t, h, pool); probes != 1 {
		t.Errorf("the pool was probed %d times, want once", probes)
	}
	live, etag, err := h.Client(t).GetStoragePool(pool)
	if err != nil {
		t.Fatal(err)
	}
	recorded := capability.RecordedProof(live.Config)
	if recorded == nil || !recorded.CopyOnWrite() {
		t.Fatalf("no proof is recorded: %v", live.Config)
	}
	if live.Description != "of a test" {
		t.Errorf("recording the proof changed the description to %q", live.Description)
	}

	// A configuration that means nothing to the daemon changes nothing; one that does ends the proof.
	put := live.Writable()
	put.Config["user.note"] = "mine"
	if err := h.Client(t).UpdateStoragePool(pool, put, etag); err != nil {
		t.Fatal(err)
	}
	_, checker := connect(t, h)
	proof, fresh, err := checker.EnsureProof(t.Context(), pool)
	if err != nil || fresh || cmp.Diff(recorded, proof) != "" {
		t.Errorf("after a user's key was set: fresh is %v, error is %v, difference is %s", fresh, err, cmp.Diff(recorded, proof))
	}
	put.Config["btrfs.mount_options"] = "noatime"
	if err := h.Client(t).UpdateStoragePool(pool, put, ""); err != nil {
		t.Fatal(err)
	}
	checker.Forget()
	if _, fresh, err := checker.EnsureProof(t.Context(), pool); err != nil || !fresh {
		t.Errorf("after the pool's options changed: fresh is %v, error is %v; want a new probe", fresh, err)
	}
}

func TestAccProbeNeedsRoom(t *testing.T) {
	t.Parallel()
	h := acctest.Shared(t)
	pool := newPool(t, h, "btrfs", map[string]string{"size": "512MiB"})
	_, checker := connect(t, h)
	_, err := checker.ProvePool(t.Context(), pool)
	refusal, ok := errors.AsType[*capability.Refusal](err)
	if !ok || refusal.Capability != capability.Headroom {
		t.Fatalf("probing a pool of 512 MiB gave %v, want a refusal for want of room", err)
	}
}

// interruptions are the moments at which a probe is interrupted, by what is on the daemon then.
var interruptions = map[string]func(instances []api.Instance) bool{
	"once the machine is there": func(instances []api.Instance) bool { return len(instances) >= 1 },
	"while it branches":         func(instances []api.Instance) bool { return len(instances) >= 3 },
}

// patience bounds the waits of tests; what is waited for takes seconds.
const patience = 2 * time.Minute

// await waits until the daemon's machines are as wanted.
func await(t *testing.T, daemon *lxd.Daemon, what string, wanted func([]api.Instance) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := lxd.Poll(ctx, what, func(ctx context.Context) (bool, string, error) {
		instances, err := daemon.Instances(ctx)
		return wanted(instances), fmt.Sprintf("%d machines", len(instances)), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAccInterruptedProbeLeavesNothing(t *testing.T) {
	t.Parallel()
	for when, reached := range interruptions {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			h := acctest.Start(t, acctest.Options{})
			pool := newPool(t, h, "btrfs", map[string]string{"size": "4GiB"})
			daemon, checker := connect(t, h)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var group sync.WaitGroup
			group.Go(func() {
				if _, err := checker.ProvePool(ctx, pool); !errors.Is(err, context.Canceled) {
					t.Errorf("the interrupted probe gave %v, want %v", err, context.Canceled)
				}
			})
			await(t, daemon, when, reached)
			cancel()
			group.Wait()
			if left := holdings(t, h, pool); len(left) > 0 {
				t.Errorf("it left %q", left)
			}
		})
	}
}

// victimAddress and victimPool make the test binary a process that probes a pool, to be killed.
const (
	victimAddress = "LAB_ACC_VICTIM_ADDRESS"
	victimPool    = "LAB_ACC_VICTIM_POOL"
)

// victim probes a pool again and again until it is killed.
func victim(address, pool string) {
	ctx := context.Background()
	daemon, err := lxd.Connect(ctx, lxd.Config{Address: address})
	for err == nil {
		_, err = capability.New(daemon).ProvePool(ctx, pool)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// startVictim starts a process that probes a pool.
func startVictim(t *testing.T, daemon *lxd.Daemon, pool string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), program)
	process.Env = append(os.Environ(), victimAddress+"="+daemon.Address(), victimPool+"="+pool)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process
}

// kill ends a victim.
func kill(t *testing.T, process *exec.Cmd) {
	t.Helper()
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // it was killed
}

// killProbe starts a process that probes a pool, and kills it once the daemon has a number of machines.
func killProbe(t *testing.T, daemon *lxd.Daemon, pool string, machines int) {
	t.Helper()
	process := startVictim(t, daemon, pool)
	await(t, daemon, fmt.Sprintf("the victim has made %d machines", machines), func(instances []api.Instance) bool { return len(instances) >= machines })
	kill(t, process)
}

// machinesOn names the machines of a daemon.
func machinesOn(t *testing.T, daemon *lxd.Daemon) []string {
	t.Helper()
	instances, err := daemon.Instances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, instance := range instances {
		names = append(names, instance.Name)
	}
	return names
}

func TestAccSweepTakesDeadRunsLeftoversOnly(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	pool := newPool(t, h, "btrfs", map[string]string{"size": "4GiB"})
	daemon, checker := connect(t, h)
	names := func() []string { return machinesOn(t, daemon) }
	var mine []string
	for _, machines := range []int{1, 3, 8} {
		killProbe(t, daemon, pool, len(mine)+machines)
		left := slices.DeleteFunc(names(), func(name string) bool { return slices.Contains(mine, name) })
		if len(left) == 0 {
			t.Fatal("the killed probe left nothing to sweep")
		}
		unlock, err := daemon.Lock(t.Context(), left[0]) // the daemon goes on with what the victim had begun
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		// A user's copies, one with a name as ours, carry the mark but not the identity.
		for _, name := range []string{fmt.Sprintf("mine-%d", machines), left[0] + "-mine"} {
			h.LXC(t, "copy", "--instance-only", left[0], name)
			t.Cleanup(func() { h.LXC(t, "delete", name) })
			mine = append(mine, name)
		}
	}
	if _, err := checker.ProvePool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	slices.Sort(mine)
	if diff := cmp.Diff(mine, slices.Sorted(slices.Values(names()))); diff != "" {
		t.Errorf("after the sweep the machines are not the user's:\n%s", diff)
	}
	if images, err := daemon.Images(t.Context()); err != nil || len(images) > 0 {
		t.Errorf("after the sweep there are images %v (error %v), want none", images, err)
	}
}
