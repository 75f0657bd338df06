// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

func TestAccSourceOfTheUsersIsRefusedAndLeft(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	_, checker := connect(t, h)
	source := t.TempDir()
	file := filepath.Join(source, "thesis.txt")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: "lab", Source: source})
	refusal, ok := errors.AsType[*capability.Refusal](err)
	if !ok || refusal.Argument != "source" || !strings.Contains(refusal.Detail(), file) {
		t.Fatalf("a source with a file gave %v, want a refusal that names it", err)
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "mine" {
		t.Errorf("the file is %q now (error %v)", content, err)
	}
	if err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: "lab", Source: t.TempDir()}); err != nil {
		t.Errorf("an empty source gave %v", err)
	}
}

func TestAccSourceOfAnotherPoolIsRefused(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	source := t.TempDir()
	pool := newPool(t, h, "dir", map[string]string{"source": source})
	_, checker := connect(t, h)
	err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: "lab", Source: source})
	if refusal, ok := errors.AsType[*capability.Refusal](err); !ok || !strings.Contains(refusal.Found, pool) {
		t.Errorf("the source of pool %s gave %v, want a refusal that names it", pool, err)
	}
}

func TestAccDaemonWithoutTools(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{WithoutTools: []string{"btrfs", "mkfs.btrfs"}})
	_, checker := connect(t, h)
	err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: "lab"})
	refusal, ok := errors.AsType[*capability.Refusal](err)
	if !ok || refusal.Argument != "driver" {
		t.Fatalf("a btrfs pool without the tools gave %v, want a refusal of the driver", err)
	}
	for _, part := range []string{"offers the storage drivers: dir", "not on the PATH of the daemon: btrfs, mkfs.btrfs"} {
		if !strings.Contains(refusal.Detail(), part) {
			t.Errorf("the refusal does not say %q:\n%s", part, refusal.Detail())
		}
	}
	report, err := checker.Assess(t.Context(), capability.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Adequate || !strings.Contains(report.Summary, "btrfs") {
		t.Errorf("the host is reported adequate: %v, %s", report.Adequate, report.Summary)
	}

	// The tools come; the daemon still lists what it found when it started, but can do it.
	h.AddTools(t)
	checker.Forget()
	if err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: "lab"}); err != nil {
		t.Errorf("with the tools at hand: %v", err)
	}
	pool := newPool(t, h, "btrfs", map[string]string{"size": "4GiB"})
	if _, _, err := checker.EnsureProof(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

func TestAccDiskNearlyFull(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{DiskSize: "512M"})
	_, checker := connect(t, h)
	for _, bytes := range []int64{0, 200 << 20, 20 << 30} {
		err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: "lab", SizeBytes: bytes})
		if refusal, ok := errors.AsType[*capability.Refusal](err); !ok || refusal.Argument != "size" {
			t.Errorf("a pool of %d bytes on a disk of 512 MiB gave %v, want a refusal of its size", bytes, err)
		}
	}
	// One made behind our back promises what its disk has not.
	newPool(t, h, "btrfs", map[string]string{"size": "20GiB"})
	checker.Forget()
	report, err := checker.Assess(t.Context(), capability.Request{})
	if err != nil {
		t.Fatal(err)
	}
	for _, finding := range report.Findings {
		if finding.Capability == capability.Headroom && finding.Verdict != capability.Degraded {
			t.Errorf("headroom of %q is %s, want %s", finding.Subject, finding.Verdict, capability.Degraded)
		}
	}
}

func TestAccResizeThatIsALie(t *testing.T) {
	t.Parallel()
	h := acctest.Shared(t)
	pool := newPool(t, h, "btrfs", map[string]string{"size": "1GiB"})
	daemon, checker := connect(t, h)
	if daemon.HasExtension("storage_pool_loop_resize") {
		t.Skip("this daemon can grow a pool")
	}
	err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: pool, SizeBytes: 2 << 30, Update: true})
	if refusal, ok := errors.AsType[*capability.Refusal](err); !ok || refusal.Capability != capability.Resize {
		t.Errorf("growing a pool gave %v, want a refusal", err)
	}
	if err := checker.AdmitPool(t.Context(), capability.PoolAsk{Name: pool, SizeBytes: 1 << 30, Update: true}); err != nil {
		t.Errorf("the same size gave %v", err)
	}
}
