// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunDetectsDrivers(t *testing.T) {
	t.Parallel()
	degraded := func(h *fakeHost) *fakeHost {
		h.server.Drivers = []string{"dir"}
		return h
	}
	for name, test := range map[string]struct {
		host     *fakeHost
		change   func(*fakeHost)
		ran      []string
		restarts bool
		err      string
	}{
		"by a pool": {
			host: degraded(newFakeLab()), change: func(h *fakeHost) { h.poolFinds = true },
			ran: []string{"try a pool with btrfs"},
		},
		"by a restart": {
			host: degraded(newFakeLab()), change: func(h *fakeHost) { h.poolErr = errors.New("no tools") }, restarts: true,
			ran: []string{"try a pool with btrfs", "systemctl restart lxd.service"},
		},
		"by a restart, no systemd": {
			host: degraded(newFakeLab().withoutSystemd()), change: func(*fakeHost) {}, restarts: true,
			ran: []string{"try a pool with btrfs", "kill -TERM 77", "/usr/bin/lxd --group lxd"},
		},
		"the process is not ours to end": {
			host: degraded(newFakeLab().withoutSystemd()), change: func(h *fakeHost) { h.files["/proc/77/comm"] = "sshd\n" },
			ran: []string{"try a pool with btrfs"}, err: "process 77",
		},
		"by nothing": {
			host: degraded(newFakeLab()), change: func(h *fakeHost) { h.poolErr, h.kernelLacks = errors.New("no such file system"), true },
			restarts: true,
			ran:      []string{"try a pool with btrfs", "systemctl restart lxd.service"}, err: "no such file system",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.change(test.host)
			receipt := filepath.Join(t.TempDir(), "receipt.jsonl")
			outcome, said, err := runOn(t, test.host, Options{Receipt: receipt})
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("got error %v, want %q\n%s", err, test.err, said)
			}
			if diff := cmp.Diff(test.ran, test.host.ran); diff != "" {
				t.Error(diff)
			}
			if err == nil && (outcome.State != NotAdequate || !outcome.Adequate()) {
				t.Errorf("state %s, adequate %t", outcome.State, outcome.Adequate())
			}
			told := strings.Contains(strings.Join(entries(t, receipt)[0].SideEffects, " "), "restarted the daemon")
			if told != test.restarts {
				t.Errorf("the receipt tells of a restart: %t, want %t", told, test.restarts)
			}
		})
	}
}

func TestRunTakesNoteOfFailures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host   *fakeHost
		change func(*fakeHost)
		words  []string
	}{
		"apt": {
			newFakeDebian(), func(h *fakeHost) { h.fails = map[string]error{"apt-get install": errors.New("E: no space left")} },
			[]string{"unable to install lxd", "exit status 100", "E: no space left"},
		},
		"the daemon ends as it starts": {
			newFakeLab(), func(h *fakeHost) {
				h.stop()
				h.hangs = []string{"systemctl start"}
				h.units["lxd.service"].active, h.units["lxd.service"].result = "activating", "exit-code"
				h.stays = true
			},
			[]string{"unable to start the daemon", "ended as it started", "what the daemon said last"},
		},
		"the daemon ends as it starts, no systemd": {
			newFakeLab().withoutSystemd(), func(h *fakeHost) {
				h.stop()
				h.hangs, h.ended = []string{"/usr/bin/lxd waitready"}, errors.New("exit status 1")
			},
			[]string{"unable to start the daemon", "exit status 1", "what the daemon said last"},
		},
		"access that does not open the socket": {
			newFakeLab(), func(h *fakeHost) { h.invoker.User, h.hangs = "alice", nil; h.useless = "usermod" },
			[]string{"unable to let alice use the daemon", "still closed"},
		},
		"what does not help": {
			newFakeLab(), func(h *fakeHost) { delete(h.programs, "nft"); h.useless = "apt-get install" },
			[]string{"install nftables did not help"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.change(test.host)
			receipt := filepath.Join(t.TempDir(), "receipt.jsonl")
			_, _, err := runOn(t, test.host, Options{Receipt: receipt})
			if err == nil {
				t.Fatal("no error")
			}
			for _, word := range test.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not tell %q: %v", word, err)
				}
			}
			noted := entries(t, receipt)
			if name != "what does not help" && noted[len(noted)-1].Error == "" {
				t.Errorf("the receipt does not tell of the failure: %+v", noted)
			}
		})
	}
}

func TestRunCopesWithApt(t *testing.T) {
	t.Parallel()
	const install = "apt-get install --no-install-recommends nftables"
	for name, test := range map[string]struct {
		fails map[string]error
		lists bool
		ran   []string
	}{
		"an interrupted dpkg": {
			map[string]error{"apt-get install": errors.New("E: dpkg was interrupted, you must manually run 'dpkg --configure -a'")},
			true,
			[]string{install, "dpkg --force-confdef --force-confold --configure -a", install},
		},
		"lists out of date": {
			map[string]error{"apt-get install": errors.New("E: Failed to fetch x.deb  404  Not Found")},
			true,
			[]string{install, "apt-get update", install},
		},
		"lists locked by another apt": {
			map[string]error{"apt-get update": errors.New("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1")},
			false,
			[]string{"apt-get update", "apt-get update", install},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFakeLab()
			delete(h.programs, "nft")
			h.fails, h.lists = test.fails, test.lists
			if _, _, err := runOn(t, h, Options{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.ran, h.ran); diff != "" {
				t.Error(diff)
			}
		})
	}
}
