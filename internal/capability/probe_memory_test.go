// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// disk makes work with data take the time of a disk that moves 256 MiB in a second.
func disk(w lxdtest.Work) time.Duration {
	return time.Duration(float64(w.Bytes) / (256 << 20) * float64(time.Second))
}

// memory starts a daemon in memory with one pool, and gives a checker of it.
func memory(t *testing.T, driver string, config map[string]string) (*lxdtest.Server, *capability.Checker) {
	t.Helper()
	server := lxdtest.New(t, lxdtest.WithDrivers("dir", "btrfs", "zfs", "lvm", "ceph"), lxdtest.WithLatency(disk))
	post := api.StoragePoolsPost{Name: "lab", Driver: driver, StoragePoolPut: api.StoragePoolPut{Config: config}}
	if err := server.Client(t).CreateStoragePool(post); err != nil {
		t.Fatal(err)
	}
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: server.Address()})
	if err != nil {
		t.Fatal(err)
	}
	return server, capability.New(daemon)
}

// leftOn lists what a probe left on a daemon in memory.
func leftOn(t *testing.T, server *lxdtest.Server) []string {
	t.Helper()
	pool, _, err := server.Client(t).GetStoragePool("lab")
	if err != nil {
		t.Fatal(err)
	}
	images, err := server.Client(t).GetImageFingerprints()
	if err != nil {
		t.Fatal(err)
	}
	return append(images, pool.UsedBy...)
}

func TestProveEveryDriver(t *testing.T) {
	t.Parallel()
	const proven, degraded, unproven = capability.Proven, capability.Degraded, capability.Unproven
	for name, test := range map[string]struct {
		driver   string
		config   map[string]string
		verdicts [3]capability.Verdict // of snapshot, branch, restore
	}{
		"btrfs":                 {"btrfs", nil, [3]capability.Verdict{proven, proven, proven}},
		"dir":                   {"dir", nil, [3]capability.Verdict{degraded, degraded, degraded}},
		"zfs":                   {"zfs", nil, [3]capability.Verdict{proven, proven, proven}},
		"zfs, clone_copy false": {"zfs", map[string]string{"zfs.clone_copy": "false"}, [3]capability.Verdict{proven, degraded, proven}},
		"zfs, rebase":           {"zfs", map[string]string{"zfs.clone_copy": "rebase"}, [3]capability.Verdict{proven, degraded, proven}},
		"lvm thin":              {"lvm", nil, [3]capability.Verdict{proven, proven, proven}},
		// It reserves the whole disk again for each snapshot, at once, and writes in place: there space contradicts time.
		"lvm thick":        {"lvm", map[string]string{"lvm.use_thinpool": "false"}, [3]capability.Verdict{unproven, degraded, unproven}},
		"ceph":             {"ceph", nil, [3]capability.Verdict{proven, proven, degraded}},
		"ceph, clone_copy": {"ceph", map[string]string{"ceph.rbd.clone_copy": "false"}, [3]capability.Verdict{proven, degraded, degraded}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, checker := memory(t, test.driver, test.config)
			proof, err := checker.ProvePool(t.Context(), "lab")
			_, refused := errors.AsType[*capability.Refusal](err)
			if err != nil && !refused {
				t.Fatal(err)
			}
			got := [3]capability.Verdict{proof.Snapshot.Verdict, proof.Branch.Verdict, proof.Restore.Verdict}
			if got != test.verdicts {
				t.Errorf("the verdicts are %v, want %v:\n%s", got, test.verdicts, strings.Join(proof.Evidence(), "\n"))
			}
			if refused == proof.CopyOnWrite() {
				t.Errorf("the pool is refused: %v, but copies on write: %v", refused, proof.CopyOnWrite())
			}
			if left := leftOn(t, server); len(left) > 0 {
				t.Errorf("the probe left %q", left)
			}
		})
	}
}

// A pool without room for more data gets a second hearing on the same amount.
func TestDoubtOnASmallPool(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		disturbed int32 // restores that the host is busy for, beyond the baseline's
		proven    bool
	}{
		"busy for one measurement": {10, true},
		"busy all the time":        {1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, checker := memory(t, "btrfs", map[string]string{"size": "1GiB"})
			var restores atomic.Int32
			server.Set(lxdtest.WithLatency(func(w lxdtest.Work) time.Duration {
				const baseline = 5
				if w.Verb != "restore" {
					return disk(w)
				}
				if i := restores.Add(1); i%15 != 0 && i%15 <= baseline || i > baseline+test.disturbed {
					return 0
				}
				return 200 * time.Millisecond
			}))
			proof, err := checker.ProvePool(t.Context(), "lab")
			refusal, refused := errors.AsType[*capability.Refusal](err)
			if err != nil && !refused {
				t.Fatal(err)
			}
			if refused == test.proven || proof.CopyOnWrite() != test.proven {
				t.Errorf("proven is %v (%v), want %v:\n%s", proof.CopyOnWrite(), err, test.proven, strings.Join(proof.Evidence(), "\n"))
			}
			if refused && !strings.Contains(refusal.Detail(), "could not be repeated with more data") {
				t.Errorf("the refusal does not say why the doubt stayed:\n%s", refusal.Detail())
			}
		})
	}
}

func TestFactsAreFewRequests(t *testing.T) {
	t.Parallel()
	server, checker := memory(t, "btrfs", nil)
	for _, name := range []string{"a", "b", "c"} {
		if err := server.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: name, Driver: "dir"}); err != nil {
			t.Fatal(err)
		}
	}
	server.ForgetRequests()
	for range 3 {
		if _, err := checker.Assess(t.Context(), capability.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	requests := server.Requests()
	if limit := 5 + 4; len(requests) > limit {
		t.Errorf("facts of 4 pools took %d requests, want at most %d: %v", len(requests), limit, requests)
	}
	for _, request := range requests {
		if request.Method != http.MethodGet {
			t.Errorf("reading facts sent %s %s", request.Method, request.Path)
		}
	}
}

func TestSecondProofIsNoProbe(t *testing.T) {
	t.Parallel()
	server, checker := memory(t, "btrfs", nil)
	if _, fresh, err := checker.EnsureProof(t.Context(), "lab"); err != nil || !fresh {
		t.Fatalf("the first proof: fresh is %v, error is %v", fresh, err)
	}
	server.ForgetRequests()
	if _, fresh, err := checker.EnsureProof(t.Context(), "lab"); err != nil || fresh {
		t.Errorf("the second proof: fresh is %v, error is %v", fresh, err)
	}
	if requests := server.Requests(); len(requests) > 0 {
		t.Errorf("in the same process it took requests: %v", requests)
	}
}

func TestPoolMadeBySomebodyElseSince(t *testing.T) {
	t.Parallel()
	server, checker := memory(t, "btrfs", nil)
	ask := capability.MachineAsk{Name: "a", Pool: "later", Applying: true}
	refusal, ok := errors.AsType[*capability.Refusal](checker.AdmitMachine(t.Context(), ask))
	if !ok || !strings.Contains(refusal.Detail(), "pools of this daemon: lab") {
		t.Fatalf("a pool that is not there gave %v, want a refusal that lists those that are", refusal)
	}
	if err := server.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "later", Driver: "btrfs"}); err != nil {
		t.Fatal(err)
	}
	if err := checker.AdmitMachine(t.Context(), ask); err != nil {
		t.Errorf("the pool that was made since gave %v", err)
	}
}

func TestInterruptedFactsAreNotKept(t *testing.T) {
	t.Parallel()
	_, checker := memory(t, "btrfs", nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := checker.Facts(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("facts with an ended context gave %v, want %v", err, context.Canceled)
	}
	facts, err := checker.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := facts.Pools["lab"]; !ok {
		t.Error("facts of an interrupted reading were kept")
	}
}
