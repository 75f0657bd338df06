// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/canonical/lxd/shared/api"
)

func TestMain(m *testing.M) { Main(m) }

// launch starts a tiny machine in the shared pool and network and returns its name.
func launch(t *testing.T, h *Host) string {
	t.Helper()
	name := Name(t, "tiny")
	h.LXC(t, "launch", h.Tiny(t).Fingerprint, name, "--storage", h.Pool(t), "--network", h.Network(t))
	t.Cleanup(func() { h.LXC(t, "delete", "--force", name) })
	return name
}

func drivers(t *testing.T, h *Host) []string {
	t.Helper()
	server, _, err := h.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range server.Environment.StorageSupportedDrivers {
		names = append(names, d.Name)
	}
	return names
}

func TestTinyMachinesReachEachOtherByName(t *testing.T) {
	t.Parallel()
	h := Shared(t)
	a, b := launch(t, h), launch(t, h)
	// Addresses come within seconds; the guest's own patience is what bounds the wait.
	script := "for i in $(seq 60); do ping -c 1 -W 1 " + b + " >/dev/null 2>&1 && exit 0; sleep 0.5; done; ip addr; cat /etc/resolv.conf; exit 1"
	h.LXC(t, "exec", a, "--", "sh", "-c", script)
}

func TestTinyStopsInAnOrderlyWay(t *testing.T) {
	t.Parallel()
	h := Shared(t)
	name := launch(t, h)
	// The kernel drops a signal that the first process does not handle yet: it does before it asks for an address.
	h.LXC(t, "exec", name, "--", "sh", "-c", "until test -s /run/udhcpc.eth0; do sleep 0.1; done")
	op, err := h.Client(t).UpdateInstanceState(name, api.InstanceStatePut{Action: "stop", Timeout: 30}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := op.WaitContext(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTinyFilesAreImages(t *testing.T) {
	t.Parallel()
	h := Shared(t)
	unified, split := TinyFiles(t), TinyFiles(t)
	if err := importImage(h.Client(t), unified.Unified, "", api.InstanceTypeContainer); err != nil {
		t.Fatal(err)
	}
	if err := importImage(h.Client(t), split.Metadata, split.Rootfs, api.InstanceTypeContainer); err != nil {
		t.Fatal(err)
	}
	both, err := fingerprint(split.Metadata, split.Rootfs)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{unified.Fingerprint, both} {
		if _, _, err := h.Client(t).GetImage(f); err != nil {
			t.Errorf("image %s: %v", f, err)
		}
	}
}

func TestTwoDaemonsAtOnce(t *testing.T) {
	t.Parallel()
	a, b := Start(t, Options{}), Start(t, Options{})
	// The same names on both, also for what exists once per host.
	for _, h := range []*Host{a, b} {
		h.LXC(t, "launch", h.Tiny(t).Fingerprint, "same", "--storage", h.Pool(t), "--network", h.Network(t))
	}
	a.LXC(t, "delete", "--force", "same")
	if got := b.In(t, "same", "hostname"); got != "same" {
		t.Errorf("hostname prints %q", got)
	}
	if a.Pool(t) == b.Pool(t) || a.Network(t) == b.Network(t) {
		t.Error("two daemons share a pool or a network")
	}
}

func TestDegradedDaemon(t *testing.T) {
	t.Parallel()
	h := Start(t, Options{WithoutTools: []string{"btrfs"}})
	if got := drivers(t, h); !slices.Equal(got, []string{"dir"}) {
		t.Errorf("the daemon offers %q, want only dir", got)
	}
	err := h.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "cow", Driver: "btrfs"})
	if err == nil {
		t.Fatal("a btrfs pool could be created without the tools")
	}
	h.AddTools(t)
	if got := drivers(t, h); !slices.Equal(got, []string{"dir"}) {
		t.Errorf("the daemon offers %q before it could notice the tools", got)
	}
	h.Pool(t)
	if got := drivers(t, h); !slices.Contains(got, "btrfs") {
		t.Errorf("the daemon offers %q after a btrfs pool was made", got)
	}
}

func TestSmallDisk(t *testing.T) {
	t.Parallel()
	h := Start(t, Options{DiskSize: "256M"})
	var stat syscall.Statfs_t
	if err := syscall.Statfs(h.Dir, &stat); err != nil {
		t.Fatal(err)
	}
	if got := stat.Blocks * uint64(max(stat.Bsize, 0)); got > 256<<20 {
		t.Errorf("the daemon's disk has %d bytes, want at most 256 MiB", got)
	}
	h.Pool(t) // Its file lies on that disk, which the clean-up must get right.
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	h := Start(t, Options{HTTPS: true})
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(h.HTTPSAddress(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	h := Start(t, Options{})
	name := launch(t, h)
	h.LXC(t, "exec", name, "--", "sh", "-c", "echo alive >/run/mark")
	h.Kill(t)
	if _, err := new(net.Dialer).DialContext(t.Context(), "unix", h.Socket()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialling a killed daemon: %v, want a refused connection", err)
	}
	h.Restart(t)
	if got := h.In(t, name, "cat /run/mark"); got != "alive" {
		t.Errorf("the machine did not outlive its daemon: %q", got)
	}
}
