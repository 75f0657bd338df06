// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planned is what a test looks at of a plan.
type planned struct {
	State State
	Steps []string // titles
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const all = "install lxd, btrfs-progs, dnsmasq-base, nftables, iproute2"
	for name, test := range map[string]struct {
		host *fakeHost
		// change makes the host differ.
		change func(*fakeHost)
		ask    ask
		want   planned
	}{
		"nothing is missing": {host: newFakeLab(), want: planned{State: Adequate}},

		// Not installed.
		"nothing is installed": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.lists = true },
			want: planned{NotInstalled, []string{all, "start the daemon"}},
		},
		"lists were never fetched": {
			host: newFakeDebian(),
			want: planned{NotInstalled, []string{"fetch the lists of packages", all, "start the daemon"}},
		},
		"nothing is installed, no systemd": {
			host: newFakeDebian().withoutSystemd(), change: func(h *fakeHost) { h.lists = true },
			want: planned{NotInstalled, []string{all, "start the daemon"}},
		},
		"for a person": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.lists, h.invoker.User = true, "alice" },
			want: planned{NotInstalled, []string{all, "start the daemon", "let alice use the daemon"}},
		},
		"packages only": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.lists, h.invoker.User = true, "alice" }, ask: ask{packagesOnly: true},
			want: planned{NotInstalled, []string{all}},
		},
		"the kernel confines": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.lists, h.files["/sys/module/apparmor/parameters/enabled"] = true, "Y\n" },
			want: planned{NotInstalled, []string{"install lxd, apparmor, btrfs-progs, dnsmasq-base, nftables, iproute2", "start the daemon"}},
		},
		"Debian without LXD": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.lists = true; h.available = h.available[1:] },
			want: planned{NotInstalled, []string{"install incus-base, btrfs-progs, dnsmasq-base, nftables, iproute2", "start the daemon"}},
		},
		"Ubuntu": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.lists, h.files["/etc/os-release"] = true, "ID=ubuntu\n" },
			want: planned{NotInstalled, []string{"install snapd", "install the snap lxd"}},
		},
		"Ubuntu with snapd": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.files["/etc/os-release"] = "ID=ubuntu\n"; h.install("snapd") },
			want: planned{NotInstalled, []string{"install the snap lxd"}},
		},
		"interrupted installation": {
			host: newFakeLab(), change: func(h *fakeHost) { h.halfDone = []string{"lxd", "nftables"} },
			want: planned{NotInstalled, []string{"install lxd, nftables"}},
		},

		// Installed but not available.
		"stopped": {
			host: newFakeLab(), change: (*fakeHost).stop,
			want: planned{NotAvailable, []string{"start the daemon"}},
		},
		"stopped, no systemd, with a socket left": {
			host: newFakeLab().withoutSystemd(), change: (*fakeHost).stop,
			want: planned{NotAvailable, []string{"start the daemon"}},
		},
		"disabled and stopped": {
			host: newFakeLab(), change: func(h *fakeHost) { h.stop(); h.units["lxd.socket"].file = "disabled" },
			want: planned{NotAvailable, []string{"start the daemon"}},
		},
		"disabled but running": {
			host: newFakeLab(), change: func(h *fakeHost) { h.units["lxd.socket"].file = "disabled" },
			want: planned{NotAvailable, []string{"enable the daemon"}},
		},
		"no group": {
			host: newFakeLab(), change: func(h *fakeHost) {
				h.stop()
				delete(h.members, "lxd")
				delete(h.files, "/var/lib/lxd/unix.socket")
			},
			want: planned{NotAvailable, []string{"make the group lxd", "start the daemon"}},
		},
		"not in the group": {
			host: newFakeLab(), change: func(h *fakeHost) { h.invoker.User = "alice" },
			want: planned{NotAvailable, []string{"let alice use the daemon"}},
		},
		"not in the group, and not allowed to ask": {
			host: newFakeLab(), change: func(h *fakeHost) { h.invoker, h.denied = Invoker{User: "alice"}, true },
			want: planned{NotAvailable, []string{"let alice use the daemon"}},
		},
		"a directory that is named, without a daemon": {
			host: newFakeLab(), change: func(h *fakeHost) { h.env["LXD_DIR"] = "/srv/lxd" },
			want: planned{NotAvailable, []string{"start the daemon"}},
		},
		"the snap is stopped": {
			host: newFakeDebian(), change: func(h *fakeHost) {
				h.files["/snap/bin/lxd"], h.members["lxd"] = "", nil
				h.units["snap.lxd.daemon.service"] = &unit{load: "loaded", active: "inactive"}
			},
			want: planned{NotAvailable, []string{"start the daemon"}},
		},

		// Available but not adequate.
		"offers only dir": {
			host: newFakeLab(), change: func(h *fakeHost) { h.server.Drivers = []string{"dir"} },
			want: planned{NotAdequate, []string{"make the daemon look for its storage drivers again"}},
		},
		"no btrfs tools": {
			host: newFakeLab(), change: func(h *fakeHost) { delete(h.programs, "mkfs.btrfs"); h.server.Drivers = []string{"dir"} },
			want: planned{NotAdequate, []string{"install btrfs-progs", "make the daemon look for its storage drivers again"}},
		},
		"no firewall": {
			host: newFakeLab(), change: func(h *fakeHost) { delete(h.programs, "nft") },
			want: planned{NotAdequate, []string{"install nftables"}},
		},
		"another firewall": {
			host: newFakeLab(), change: func(h *fakeHost) { delete(h.programs, "nft"); h.programs["iptables"] = true },
			want: planned{State: Adequate},
		},
		"a snap brings its own tools": {
			host: newFakeDebian(), change: func(h *fakeHost) {
				h.start()
				h.files["/snap/bin/lxd"], h.files["/var/snap/lxd/common/lxd/unix.socket"], h.members["lxd"] = "", "", nil
				h.server.Drivers = []string{"btrfs"}
			},
			want: planned{State: Adequate},
		},
		"a daemon of another host": {
			host: newFakeDebian(), change: func(h *fakeHost) { h.start(); h.server.Drivers = []string{"btrfs"} },
			want: planned{State: Adequate},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.change != nil {
				test.change(test.host)
			}
			steps := planFor(t, test.host, test.ask, nil)
			got := planned{State: stateOf(steps)}
			for _, s := range steps {
				got.Steps = append(got.Steps, s.Title)
				if len(s.Reasons) == 0 || len(s.Commands) == 0 || s.Name == "" || s.do == nil {
					t.Errorf("step %q is incomplete: %+v", s.Title, s)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if len(test.host.ran) > 0 {
				t.Errorf("looking and planning changed the host: %q", test.host.ran)
			}
		})
	}
}

// planFor plans for a host. A refusal must hold the words of refused, if there are any.
func planFor(t *testing.T, h *fakeHost, a ask, refused []string) []Step {
	t.Helper()
	f, err := look(t.Context(), h, Options{PackagesOnly: a.packagesOnly})
	var steps []Step
	if err == nil {
		steps, err = plan(f, a)
	}
	if err != nil && len(refused) == 0 {
		t.Fatal(err)
	}
	if len(refused) == 0 {
		return steps
	}
	if refusal, ok := errors.AsType[*RefusedError](err); !ok || refusal.Remedy == "" {
		t.Fatalf("got %v, want a refusal with a remedy", err)
	}
	for _, word := range refused {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not speak of %q: %v", word, err)
		}
	}
	return nil
}

func TestPlanRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		host   *fakeHost
		change func(*fakeHost)
		ask    ask
		words  []string
	}{
		"no way to install": {
			host: newFakeDebian(),
			change: func(h *fakeHost) {
				delete(h.programs, "apt-get")
				h.files["/etc/os-release"] = "ID=arch\nPRETTY_NAME=\"Arch Linux\"\n"
			},
			words: []string{"Arch Linux", "install LXD"},
		},
		"no way to install tools": {
			host:   newFakeLab(),
			change: func(h *fakeHost) { delete(h.programs, "apt-get"); delete(h.programs, "dnsmasq") },
			words:  []string{"dnsmasq-base", "no apt-get"},
		},
		"a source is missing": {
			host:   newFakeDebian(),
			change: func(h *fakeHost) { h.lists, h.available = true, []string{"lxd", "btrfs-progs", "nftables", "iproute2"} },
			ask:    ask{refreshed: true},
			words:  []string{"no package dnsmasq-base", "/etc/apt"},
		},
		"a snap without systemd": {
			host:   newFakeDebian().withoutSystemd(),
			change: func(h *fakeHost) { h.files["/etc/os-release"] = "ID=ubuntu\n"; h.install("snapd") },
			words:  []string{"systemd"},
		},
		"masked": {
			host:   newFakeLab(),
			change: func(h *fakeHost) { h.stop(); h.units["lxd.socket"].load = "masked" },
			words:  []string{"masked", "systemctl unmask lxd.service lxd.socket"},
		},
		"runs and does not answer": {
			host:   newFakeLab(),
			change: func(h *fakeHost) { h.server = nil; h.trouble = errors.New("broken database") },
			words:  []string{"broken database", "journalctl -u lxd.service"},
		},
		"runs and lost its socket": {
			host:   newFakeLab(),
			change: func(h *fakeHost) { h.server = nil; delete(h.files, "/var/lib/lxd/unix.socket") },
			words:  []string{"connection refused", "systemctl restart lxd.service"},
		},
		"a socket that is named, without a daemon": {
			host:   newFakeLab(),
			change: func(h *fakeHost) { h.env["LXD_SOCKET"] = "/srv/socket" },
			words:  []string{"/srv/socket", "unset LXD_SOCKET"},
		},
		"a daemon for root only": {
			host:   newFakeLab(),
			change: func(h *fakeHost) { h.invoker.User, h.socketGroup, h.members["root"] = "alice", "root", nil },
			words:  []string{"belongs to the group root", "--group lxd"},
		},
		"a daemon of another host": {
			host:   newFakeDebian(),
			change: (*fakeHost).start,
			words:  []string{"not installed on this host", "daemon's own host"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.change(test.host)
			planFor(t, test.host, test.ask, test.words)
		})
	}
}

func TestPlanSaysWhatItWillRun(t *testing.T) {
	t.Parallel()
	h := newFakeLab()
	h.stop()
	h.units["lxd.socket"].file = "disabled"
	h.units["lxd.service"].active, h.units["lxd.service"].result = "activating", "exit-code"
	steps := planFor(t, h, ask{}, nil)
	want := []string{"systemctl enable lxd.service", "systemctl stop lxd.service", "systemctl reset-failed lxd.service", "systemctl start lxd.service"}
	if diff := cmp.Diff(want, steps[0].Commands); diff != "" {
		t.Error(diff)
	}

	h = newFakeLab()
	h.env["LXD_DIR"] = "/srv/lxd"
	steps = planFor(t, h, ask{}, nil)
	if diff := cmp.Diff([]string{"LXD_DIR=/srv/lxd /usr/bin/lxd --group lxd >>/srv/lxd/daemon.log 2>&1 &"}, steps[0].Commands); diff != "" {
		t.Error(diff)
	}
}

func TestLookAtAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]place{
		"":                                  {Socket: "/var/lib/lxd/unix.socket"},
		"unix:///srv/other.socket":          {Socket: "/srv/other.socket", NamedBy: "LAB_ADDRESS"},
		"unix:///var/lib/incus/unix.socket": {Socket: "/var/lib/incus/unix.socket"},
	} {
		f, err := look(t.Context(), newFakeLab(), Options{Address: address})
		if err != nil {
			t.Fatal(err)
		}
		if f.place != want {
			t.Errorf("%q leads to %+v, want %+v", address, f.place, want)
		}
	}
	_, err := look(t.Context(), newFakeLab(), Options{Address: "https://far:8443"})
	if _, ok := errors.AsType[*RefusedError](err); !ok {
		t.Errorf("a daemon elsewhere is not refused: %v", err)
	}
	if _, err := look(t.Context(), newFakeLab(), Options{Address: "https://far:8443", PackagesOnly: true}); err != nil {
		t.Errorf("packages for a daemon elsewhere: %v", err)
	}
}
