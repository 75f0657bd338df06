// SPDX-License-Identifier: MPL-2.0

package bootstrap_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// guestProgram is the program under test, in a guest.
const guestProgram = "/usr/local/bin/terraform-provider-lab"

// guestProxy is where a guest finds the way to apt's sources.
const guestProxy = "127.0.0.1:3142"

// bootTimeout bounds the start of a guest.
const bootTimeout = 2 * time.Minute

// guest is a container that is a clean Debian host: a daemon can run in it, and apt works.
type guest struct {
	host *acctest.Host
	name string
	conf string // of the lxc client
}

// image is one that the guests of a package share.
type image struct {
	sync.Once
	err error
}

var images = map[string]*image{"12": {}, "13": {}}

// debianImage gives the alias of the image of a Debian release.
func debianImage(t *testing.T, h *acctest.Host, release string) string {
	t.Helper()
	name := "debian-" + release
	i := images[release]
	i.Do(func() {
		built := runCommand(t.Context(), t, nil, filepath.Join("..", "..", "examples", "images", "debian.sh"), release)
		if built.code != 0 {
			i.err = fmt.Errorf("build the image: exit code %d\n%s", built.code, built.errOut)
			return
		}
		files := filepath.Join(strings.TrimSpace(built.out), name)
		h.LXC(t, "image", "import", files+".tar.xz", files+".squashfs", "--alias", name)
	})
	if i.err != nil {
		t.Fatalf("Unable to get the image of Debian %s: %v", release, i.err)
	}
	return name
}

// guestConfig lets a container mount what a daemon in it mounts: it is root's equal, so only for a test.
const guestConfig = `lxc.apparmor.profile = unconfined
lxc.cgroup.devices.allow = b 7:* rwm
lxc.cgroup2.devices.allow = b 7:* rwm
`

//go:embed testdata/guest.sh
var guestSetup string

// startGuest starts a guest with the program in it. Without systemd its first process does nothing.
func startGuest(t *testing.T, release string, systemd bool) *guest {
	t.Helper()
	h := acctest.Shared(t)
	if h.Dir == "" {
		t.Skip("needs a daemon of its own: no project of somebody else's may have containers that are root's equal")
	}
	g := &guest{host: h, name: acctest.Name(t, "boot"), conf: t.TempDir()}
	config := guestConfig
	if !systemd {
		config += "lxc.init.cmd = /bin/sleep infinity\n"
	}
	h.LXC(t, "init", debianImage(t, h, release), g.name, "--storage", h.Pool(t),
		"--config", "security.privileged=true", "--config", "security.nesting=true", "--config", "raw.lxc="+config)
	t.Cleanup(func() { h.LXC(t, "delete", "--force", g.name) })
	h.LXC(t, "config", "device", "add", g.name, "loop", "unix-char", "path=/dev/loop-control")
	h.LXC(t, "config", "device", "add", g.name, "apt", "proxy", "bind=instance", "listen=tcp:"+guestProxy, "connect=tcp:"+startAptProxy(t))
	h.LXC(t, "start", g.name)
	h.LXC(t, "file", "push", "--mode", "0755", buildProgram(t), g.name+guestProgram)
	g.wait(t, systemd)
	g.run(t, "sh", "-c", guestSetup, "sh", "http://"+guestProxy)
	return g
}

// wait waits until the guest has booted.
func (g *guest) wait(t *testing.T, systemd bool) {
	t.Helper()
	command := []string{"true"}
	if systemd {
		command = []string{"systemctl", "is-system-running", "--wait"}
	}
	ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
	defer cancel()
	err := lxd.Poll(ctx, g.name+" has booted", func(ctx context.Context) (bool, string, error) {
		got := g.tryWithin(ctx, t, command...)
		state := strings.TrimSpace(got.out)
		return got.code == 0 || state == "degraded", state + got.errOut, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// try runs a command in the guest, as root.
func (g *guest) try(t *testing.T, command ...string) result {
	t.Helper()
	return g.tryWithin(t.Context(), t, command...)
}

func (g *guest) tryWithin(ctx context.Context, t *testing.T, command ...string) result {
	t.Helper()
	env := []string{"LXD_SOCKET=" + g.host.Socket(), "LXD_CONF=" + g.conf}
	return runCommand(ctx, t, env, append([]string{"lxc", "exec", "--disable-stdin", "--force-noninteractive", g.name, "--"}, command...)...)
}

// tryAs runs a command as somebody whose session knows of no group but their own.
func (g *guest) tryAs(t *testing.T, user string, command ...string) result {
	t.Helper()
	as := []string{"env", "HOME=/home/" + user, "FOO=bar", "setpriv", "--reuid", user, "--regid", user, "--clear-groups"}
	return g.try(t, append(as, command...)...)
}

// run runs a command, which must not fail, and gives its output without the last line break.
func (g *guest) run(t *testing.T, command ...string) string {
	t.Helper()
	got := g.try(t, command...)
	if got.code != 0 {
		t.Fatalf("%v: exit code %d\n%s%s", command, got.code, got.out, got.errOut)
	}
	return strings.TrimSuffix(got.out, "\n")
}

// bootstrap runs the program as root; it must end with a code and say some words.
func (g *guest) bootstrap(t *testing.T, code int, words []string, args ...string) {
	t.Helper()
	checkResult(t, g.try(t, append([]string{guestProgram, "bootstrap"}, args...)...), code, words...)
}

// steps gives the steps in the receipt.
func (g *guest) steps(t *testing.T) []string {
	t.Helper()
	var steps []string
	for line := range strings.Lines(g.run(t, "cat", receiptPath)) {
		var entry struct{ Step, Error string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Error != "" {
			t.Fatalf("the receipt has %s (%v)", line, err)
		}
		steps = append(steps, entry.Step)
	}
	return steps
}
