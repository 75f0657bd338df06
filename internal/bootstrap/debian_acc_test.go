// SPDX-License-Identifier: MPL-2.0

package bootstrap_test

import (
	"slices"
	"strings"
	"testing"
)

// receiptPath is the receipt in a guest.
const receiptPath = "/var/lib/terraform-provider-lab/receipt.jsonl"

// TestAccPreparesDebian prepares clean Debian hosts, which are containers in which a daemon can run.
func TestAccPreparesDebian(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"12", "13"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			g := startGuest(t, release, true)
			g.isClean(t)
			g.isPrepared(t)
			g.letsAliceIn(t)
			g.recoversItsUnits(t)
			g.refusesBob(t)
		})
	}
}

// TestAccPreparesDebianWithoutSystemd prepares a host that starts nothing by itself.
func TestAccPreparesDebianWithoutSystemd(t *testing.T) {
	t.Parallel()
	g := startGuest(t, "12", false)
	g.isClean(t)
	g.isPrepared(t)
	// Nobody reaps it, so that it leaves an entry without a command line.
	g.run(t, "sh", "-c", "pid=$(pidof lxd) && kill $pid && while grep -q . /proc/$pid/cmdline; do sleep 0.1; done")
	g.bootstrap(t, 3, []string{"state: installed but not available", "no systemd"}, "--check")
	g.bootstrap(t, 0, []string{"lxd --group lxd", "proved on a throw-away pool"})
}

// isClean checks what is said of a host that has nothing.
func (g *guest) isClean(t *testing.T) {
	t.Helper()
	g.bootstrap(t, 3, []string{"state: not installed", "apt-get update", "start the daemon", "nothing was changed"}, "--check")
	if got := g.try(t, "sh", "-c", "command -v lxd || ls "+receiptPath); got.code == 0 {
		t.Errorf("the check changed something: %s", got.out)
	}
}

// isPrepared prepares the host for alice, and checks the receipt.
func (g *guest) isPrepared(t *testing.T) {
	t.Helper()
	checkResult(t, g.try(t, "env", "SUDO_USER=alice", guestProgram, "bootstrap"), 0, "proved on a throw-away pool", "root's equal")
	steps := g.steps(t)
	if want := []string{"package-lists", "packages", "daemon", "access"}; !slices.Equal(steps, want) {
		t.Errorf("the receipt has %q, want %q", steps, want)
	}
	if receipt := g.run(t, "cat", receiptPath); !strings.Contains(receipt, "installed lxd 5.") || !strings.Contains(receipt, " along") {
		t.Errorf("the receipt does not tell what was installed:\n%s", receipt)
	}
	g.bootstrap(t, 0, []string{"state: adequate"}, "--check")
}

// letsAliceIn checks that somebody who logged in before gets in, and that a run on a prepared host changes nothing.
func (g *guest) letsAliceIn(t *testing.T) {
	t.Helper()
	before := g.run(t, "cat", receiptPath)
	got := g.tryAs(t, "alice", guestProgram, "bootstrap", "--", "sh", "-c", `lxc query /1.0 >/dev/null && echo "in as $(id -un), $FOO"; exit 7`)
	checkResult(t, got, 7, "going on as a member", "proved on a throw-away pool")
	if got.out != "in as alice, bar\n" {
		t.Errorf("the command's output is %q", got.out)
	}
	if after := g.run(t, "cat", receiptPath); after != before {
		t.Errorf("a second run changed something:\n%s", after)
	}
	if pools := g.run(t, "lxc", "storage", "list", "--format", "csv"); pools != "" {
		t.Errorf("pools left: %s", pools)
	}
}

// recoversItsUnits disables, stops and breaks the daemon.
func (g *guest) recoversItsUnits(t *testing.T) {
	t.Helper()
	g.run(t, "systemctl", "disable", "--now", "lxd.service", "lxd.socket", "lxd-containers.service")
	g.bootstrap(t, 3, []string{"state: installed but not available", "lxd.socket is disabled", "$ systemctl enable lxd.service"}, "--check")
	if got := g.try(t, "systemctl", "is-active", "lxd.service", "lxd.socket"); got.code == 0 {
		t.Error("the check started the daemon")
	}

	const dropIn = "/run/systemd/system/lxd.service.d/broken.conf"
	g.run(t, "sh", "-c", `mkdir -p "${1%/*}" && printf '[Service]\nExecStart=\nExecStart=/bin/sh -c "echo no luck; exit 4"\n' >"$1" && systemctl daemon-reload`, "sh", dropIn)
	g.bootstrap(t, 1, []string{"unable to start the daemon: the daemon ended as it started", "no luck"})
	g.run(t, "sh", "-c", `rm "$1" && systemctl daemon-reload`, "sh", dropIn)
	g.bootstrap(t, 0, []string{"lxd.service is activating (exit-code)", "proved on a throw-away pool"})
	if got := g.run(t, "systemctl", "is-enabled", "lxd.socket"); got != "enabled" {
		t.Errorf("the socket is %s", got)
	}

	g.run(t, "systemctl", "stop", "lxd.service")
	g.bootstrap(t, 3, []string{"state: installed but not available", "lxd.service is inactive"}, "--check")
	if got := g.try(t, "systemctl", "is-active", "lxd.service"); got.code == 0 {
		t.Error("the check started the daemon through its socket")
	}
}

// refusesBob checks what somebody is told who may not.
func (g *guest) refusesBob(t *testing.T) {
	t.Helper()
	got := g.tryAs(t, "bob", guestProgram, "bootstrap")
	checkResult(t, got, 1, "only root may", "su -c '"+guestProgram+" bootstrap --user bob'")

	g.run(t, "systemctl", "mask", "lxd.service")
	g.bootstrap(t, 1, []string{"masked", "systemctl unmask lxd.service lxd.socket"})
}
