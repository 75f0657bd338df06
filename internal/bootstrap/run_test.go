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
