// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entries reads a receipt.
func entries(t *testing.T, path string) []Entry {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var read []Entry
	for line := range strings.Lines(string(data)) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q of the receipt: %v", line, err)
		}
		if e.Time.IsZero() || e.Step == "" || len(e.Reasons) == 0 {
			t.Errorf("incomplete entry: %s", line)
		}
		read = append(read, e)
	}
	return read
}

func TestRunPreparesACleanHost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host  *fakeHost
		start string
	}{
		"systemd":    {newFakeDebian(), "systemctl start lxd.service"},
		"no systemd": {newFakeDebian().withoutSystemd(), "/usr/bin/lxd --group lxd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := test.host
			h.invoker.User = "alice"
			receipt := filepath.Join(t.TempDir(), "new", "receipt.jsonl")
			proved := ""
			o := Options{Receipt: receipt, Prove: func(_ context.Context, address string) (Verdict, error) {
				proved = address
				return Verdict{Adequate: true, Summary: "proved"}, nil
			}}
			outcome, said, err := runOn(t, h, o)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if outcome.State != NotInstalled || !outcome.Adequate() || proved != "unix:///var/lib/lxd/unix.socket" {
				t.Errorf("state %s, adequate %t, proved %q", outcome.State, outcome.Adequate(), proved)
			}
			want := []string{
				"apt-get update", "apt-get install --no-install-recommends lxd btrfs-progs dnsmasq-base nftables iproute2",
				test.start, "usermod --append --groups lxd alice",
			}
			if diff := cmp.Diff(want, h.ran); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(said, "root's equal") {
				t.Errorf("nobody is told what the group means:\n%s", said)
			}
			noted := entries(t, receipt)
			checkReceipt(t, noted)

			h.ran = nil
			outcome, said, err = runOn(t, h, o)
			if err != nil || outcome.State != Adequate || len(h.ran) > 0 {
				t.Errorf("a second run: state %s, ran %q, error %v\n%s", outcome.State, h.ran, err, said)
			}
			if again := entries(t, receipt); len(again) != len(noted) {
				t.Errorf("a second run took note of %d things", len(again)-len(noted))
			}
		})
	}
}

// checkReceipt checks the receipt of a host that was clean.
func checkReceipt(t *testing.T, noted []Entry) {
	t.Helper()
	steps := map[string]Entry{}
	var order []string
	for _, e := range noted {
		steps[e.Step] = e
		order = append(order, e.Step)
	}
	if diff := cmp.Diff([]string{"package-lists", "packages", "daemon", "access"}, order); diff != "" {
		t.Error(diff)
	}
	if changed := steps["packages"].Changed; !slices.Contains(changed, "installed lxd 1.0") {
		t.Errorf("the receipt does not tell of the daemon: %q", changed)
	}
	effects := steps["packages"].SideEffects
	for _, want := range []string{"installed libfoo 1.2 along", "rebuilt the initramfs /boot/initrd.img-6.1"} {
		if !slices.Contains(effects, want) {
			t.Errorf("the receipt does not tell that it %s: %q", want, effects)
		}
	}
}

func TestRunChecks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*fakeHost)
		want   State
	}{
		"adequate":      {func(*fakeHost) {}, Adequate},
		"not available": {(*fakeHost).stop, NotAvailable},
		"not adequate":  {func(h *fakeHost) { h.server.Drivers = []string{"dir"} }, NotAdequate},
		"not root":      {func(h *fakeHost) { h.stop(); h.invoker = Invoker{User: "alice"} }, NotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFakeLab()
			test.change(h)
			receipt := filepath.Join(t.TempDir(), "receipt.jsonl")
			outcome, said, err := runOn(t, h, Options{Check: true, Receipt: receipt, Prove: func(context.Context, string) (Verdict, error) {
				t.Error("a check proved something, which changes the host")
				return Verdict{}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if outcome.State != test.want || outcome.Adequate() != (test.want == Adequate) {
				t.Errorf("state %s, adequate %t, want %s", outcome.State, outcome.Adequate(), test.want)
			}
			if !strings.Contains(said, "state: "+test.want.String()) {
				t.Errorf("the state is not told:\n%s", said)
			}
			if len(h.ran) > 0 || entries(t, receipt) != nil {
				t.Errorf("a check changed something: %q", h.ran)
			}
		})
	}
}

func TestRunNeedsRoot(t *testing.T) {
	t.Parallel()
	h := newFakeLab()
	h.stop()
	h.invoker = Invoker{User: "alice"}
	_, _, err := runOn(t, h, Options{})
	needed, ok := errors.AsType[*NeedsRootError](err)
	if !ok || len(needed.Steps) != 2 || !strings.Contains(err.Error(), "start the daemon; let alice use the daemon") {
		t.Errorf("got %v", err)
	}
	if len(h.ran) > 0 {
		t.Errorf("ran %q without being root", h.ran)
	}
}

func TestRunNeedsGroup(t *testing.T) {
	t.Parallel()
	h := newFakeLab()
	h.denied, h.members["lxd"] = true, []string{"alice"}
	h.invoker = Invoker{User: "alice", Groups: []int{1000}}
	_, _, err := runOn(t, h, Options{})
	if needed, ok := errors.AsType[*NeedsGroupError](err); !ok || needed.Group != "lxd" || needed.User != "alice" {
		t.Errorf("got %v", err)
	}
	h.invoker.Groups = append(h.invoker.Groups, fakeGID)
	if outcome, _, err := runOn(t, h, Options{}); err != nil || !outcome.Adequate() {
		t.Errorf("in the group: %v", err)
	}
}

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

func TestRunObeysItsContext(t *testing.T) {
	t.Parallel()
	h := newFakeDebian()
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped by the test")
	h.hangs = []string{"apt-get"}
	h.onHang = func() { cancel(stopped) }
	_, err := Run(ctx, h, Options{Receipt: filepath.Join(t.TempDir(), "r"), Out: new(strings.Builder), Progress: noProgress{}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRunTellsAnUnprovenHost(t *testing.T) {
	t.Parallel()
	outcome, _, err := runOn(t, newFakeLab(), Options{Prove: func(context.Context, string) (Verdict, error) {
		return Verdict{Summary: "it copies", Remedy: "another pool"}, nil
	}})
	if err != nil || outcome.Adequate() || outcome.Verdict.Summary != "it copies" {
		t.Errorf("outcome %+v, error %v", outcome, err)
	}
	broken := errors.New("broken")
	if _, _, err := runOn(t, newFakeLab(), Options{Prove: func(context.Context, string) (Verdict, error) { return Verdict{}, broken }}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestRunOnlyInstallsPackages(t *testing.T) {
	t.Parallel()
	h := newFakeDebian()
	h.env["LXD_SOCKET"] = "/nowhere"
	outcome, said, err := runOn(t, h, Options{PackagesOnly: true, Prove: func(context.Context, string) (Verdict, error) {
		t.Error("a daemon was asked")
		return Verdict{}, nil
	}})
	if err != nil || !outcome.Adequate() || h.server != nil || outcome.Address != "" {
		t.Errorf("adequate %t, daemon %v, address %q, error %v\n%s", outcome.Adequate(), h.server, outcome.Address, err, said)
	}
	if last := h.ran[len(h.ran)-1]; !strings.HasPrefix(last, "apt-get install") {
		t.Errorf("ran %q", h.ran)
	}
}
