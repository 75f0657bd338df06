// SPDX-License-Identifier: MPL-2.0

package bootstrap_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// localRun runs the program on this host, for the daemon of a directory of its own.
type localRun struct {
	host    *acctest.Host
	program string
	receipt string
}

func newLocalRun(t *testing.T, h *acctest.Host) localRun {
	t.Helper()
	return localRun{host: h, program: buildProgram(t), receipt: filepath.Join(t.TempDir(), "receipt.jsonl")}
}

// bootstrap runs the program, which must end with a code and say some words.
func (r localRun) bootstrap(t *testing.T, code int, words []string, args ...string) {
	t.Helper()
	env := []string{"LXD_DIR=" + r.host.Dir, "LXD_SOCKET=", "LAB_ADDRESS=", "SUDO_USER="}
	got := runCommand(t.Context(), t, env, append([]string{r.program, "bootstrap", "--receipt", r.receipt}, args...)...)
	checkResult(t, got, code, words...)
}

// checkResult checks how a run ended, and that it said some words.
func checkResult(t *testing.T, got result, code int, words ...string) {
	t.Helper()
	if got.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", got.code, code, got.out, got.errOut)
	}
	for _, word := range words {
		if !strings.Contains(got.out+got.errOut, word) {
			t.Errorf("it does not say %q:\n%s%s", word, got.out, got.errOut)
		}
	}
}

// noted gives the receipt.
func (r localRun) noted(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(r.receipt)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

func pidOf(t *testing.T, h *acctest.Host) int {
	t.Helper()
	server, _, err := h.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	return server.Environment.ServerPid
}

func offers(t *testing.T, h *acctest.Host, driver string) bool {
	t.Helper()
	server, _, err := h.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(server.Environment.StorageSupportedDrivers, func(d api.ServerStorageDriverInfo) bool { return d.Name == driver })
}

var btrfsTools = []string{"btrfs", "mkfs.btrfs"}

// TestAccDetectsDriversThroughAPool has a daemon that started before btrfs-progs was installed.
func TestAccDetectsDriversThroughAPool(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{WithoutTools: btrfsTools})
	r := newLocalRun(t, h)
	if offers(t, h, "btrfs") {
		t.Fatal("the daemon offers btrfs though its tools are away")
	}
	h.AddTools(t)
	pid := pidOf(t, h)

	r.bootstrap(t, 3, []string{"state: available but not adequate", "offers dir but not btrfs"}, "--check")
	if offers(t, h, "btrfs") || r.noted(t) != "" {
		t.Error("the check changed something")
	}
	r.bootstrap(t, 0, []string{"proved on a throw-away pool"})
	if !offers(t, h, "btrfs") {
		t.Error("the daemon does not offer btrfs")
	}
	if now := pidOf(t, h); now != pid {
		t.Errorf("the daemon was restarted: process %d, then %d", pid, now)
	}
	if noted := r.noted(t); strings.Count(noted, "\n") != 1 || strings.Contains(noted, "restarted") {
		t.Errorf("receipt:\n%s", noted)
	}
	r.bootstrap(t, 0, []string{"state: adequate"}, "--check")
	if pools := h.LXC(t, "storage", "list", "--format", "csv"); pools != "" {
		t.Errorf("pools left: %s", pools)
	}
}

// TestAccRestartsADaemonThatLacksTools has a daemon that will never find the tools that are here.
func TestAccRestartsADaemonThatLacksTools(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{WithoutTools: btrfsTools})
	r := newLocalRun(t, h)
	h.LXC(t, "storage", "create", "slow", "dir")
	h.LXC(t, "launch", h.Tiny(t).Fingerprint, "guest", "--storage", "slow")
	guest := func() int64 {
		state, _, err := h.Client(t).GetInstanceState("guest")
		if err != nil {
			t.Fatal(err)
		}
		return state.Pid
	}
	pid, guestPID := pidOf(t, h), guest()

	r.bootstrap(t, 0, []string{"state: available but not adequate", "proved on a throw-away pool"})
	if now := pidOf(t, h); now == pid {
		t.Error("the daemon was not restarted")
	}
	if now := guest(); now != guestPID || now <= 0 {
		t.Errorf("the guest did not keep running: process %d, then %d", guestPID, now)
	}
	if noted := r.noted(t); !strings.Contains(noted, "restarted the daemon") {
		t.Errorf("the receipt does not tell of the restart:\n%s", noted)
	}
	r.bootstrap(t, 0, []string{"state: adequate"}, "--check")
}

// TestAccStartsADaemon has a daemon that was killed, without systemd.
func TestAccStartsADaemon(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	r := newLocalRun(t, h)
	h.Kill(t)

	r.bootstrap(t, 3, []string{"state: installed but not available", "nobody answers at " + h.Socket()}, "--check")
	r.bootstrap(t, 0, []string{"start the daemon", "proved"})
	noted := r.noted(t)
	if !strings.Contains(noted, "LXD_DIR="+h.Dir) {
		t.Errorf("the receipt does not tell how the daemon was started:\n%s", noted)
	}
	r.bootstrap(t, 0, []string{"state: adequate"}, "--check")
}
