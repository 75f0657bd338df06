// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// fakeHost is a Debian host in memory. Its commands do to its fields what the real ones do to a host.
type fakeHost struct {
	mu sync.Mutex
	// files hold what ReadFile reads; Exists knows them, too.
	files map[string]string
	// programs are on PATH.
	programs map[string]bool
	env      map[string]string
	invoker  Invoker
	// lists says that apt's lists were fetched, and available which packages they name.
	lists     bool
	available []string
	// halfDone are packages whose installation was interrupted.
	halfDone []string
	// units are what systemd says; nil without systemd.
	units map[string]*unit
	// members of groups; a group exists if it has an entry.
	members map[string][]string
	// server answers at socket if it is not nil, and denied says that only its group may ask.
	server *Server
	denied bool
	// trouble is what asking gives though the daemon runs.
	trouble error
	// socketGroup owns the daemon's socket.
	socketGroup string
	// poolErr is what making a pool gives; poolFinds says that this makes the daemon list btrfs.
	poolErr   error
	poolFinds bool
	// kernelLacks says that the kernel has no btrfs.
	kernelLacks bool
	// fails maps the beginnings of commands to the errors that they give, once each.
	fails map[string]error
	// hangs are the beginnings of commands that run until their context ends.
	hangs []string
	// onHang is called by a command that hangs.
	onHang func()
	// useless is the beginning of commands that succeed and change nothing.
	useless string
	// stays says that restarting and resetting the daemon's unit changes nothing about it.
	stays bool
	// ended is what a daemon that is started directly ends with at once.
	ended error
	// ran are the commands that changed, or would have changed, the host.
	ran []string
}

const fakeGID = 105

// newFakeDebian gives a host with systemd and nothing of ours installed, and root as the invoker.
func newFakeDebian() *fakeHost {
	return &fakeHost{
		files: map[string]string{
			"/etc/os-release":     "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
			"/run/systemd/system": "",
		},
		programs:  map[string]bool{"apt-get": true},
		env:       map[string]string{},
		invoker:   Invoker{Root: true},
		available: []string{"lxd", "btrfs-progs", "dnsmasq-base", "nftables", "iproute2", "apparmor", "snapd", "incus-base"},
		units:     map[string]*unit{},
		members:   map[string][]string{},
	}
}

// newFakeLab gives a host that lacks nothing.
func newFakeLab() *fakeHost {
	h := newFakeDebian()
	h.lists = true
	h.install("lxd", "btrfs-progs", "dnsmasq-base", "nftables", "iproute2")
	h.start()
	return h
}

func (h *fakeHost) withoutSystemd() *fakeHost {
	h.units = nil
	delete(h.files, "/run/systemd/system")
	return h
}

func (h *fakeHost) install(names ...string) {
	for _, name := range names {
		switch name {
		case "lxd":
			h.files["/usr/bin/lxd"] = ""
			h.members["lxd"] = nil
			if h.units != nil {
				h.units["lxd.service"] = &unit{load: "loaded", active: "inactive", result: "success", file: "indirect"}
				h.units["lxd.socket"] = &unit{load: "loaded", active: "active", file: "enabled"}
			}
		case "btrfs-progs":
			h.programs["mkfs.btrfs"] = true
		case "dnsmasq-base":
			h.programs["dnsmasq"] = true
		case "nftables":
			h.programs["nft"] = true
		case "iproute2":
			h.programs["ip"] = true
		case "snapd":
			h.programs["snap"] = true
		}
	}
	h.halfDone = nil
}

// start makes the daemon run.
func (h *fakeHost) start() {
	h.server = &Server{Product: "LXD", Version: "5.0.2", Drivers: []string{"dir"}, PID: 77}
	h.files["/proc/77/comm"], h.files["/proc/77/cmdline"] = "lxd\n", "/usr/bin/lxd"
	if h.programs["mkfs.btrfs"] && !h.kernelLacks {
		h.server.Drivers = []string{"btrfs", "dir"}
	}
	h.files["/var/lib/lxd/unix.socket"] = ""
	h.socketGroup = "lxd"
	if u := h.units["lxd.service"]; u != nil {
		u.active, u.result = "active", "success"
	}
}

func (h *fakeHost) stop() {
	h.server = nil
	h.files["/proc/77/cmdline"] = ""
	if u := h.units["lxd.service"]; u != nil {
		u.active = "inactive"
	}
}

func (h *fakeHost) Start(_ context.Context, c Command, log string) (<-chan error, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran = append(h.ran, c.String())
	exited := make(chan error, 1)
	if h.ended != nil {
		h.files[log] = "what the daemon said last"
		exited <- h.ended
		return exited, nil
	}
	h.start()
	return exited, nil
}

func (h *fakeHost) ReadFile(path string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok := h.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (h *fakeHost) Exists(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.files[path]
	return ok
}

func (h *fakeHost) OwningGroup(path string) (int, error) {
	if !h.Exists(path) {
		return 0, fs.ErrNotExist
	}
	if h.socketGroup == "root" {
		return 0, nil
	}
	return fakeGID, nil
}

func (h *fakeHost) Find(program string) string {
	if h.programs[program] {
		return "/usr/bin/" + program
	}
	return ""
}

func (h *fakeHost) Getenv(name string) string { return h.env[name] }

func (h *fakeHost) Invoker() (Invoker, error) { return h.invoker, nil }

func (h *fakeHost) Ask(_ context.Context, address string) (Server, error) {
	switch {
	case h.trouble != nil:
		return Server{}, h.trouble
	case h.denied && !h.invoker.Root && !slices.Contains(h.invoker.Groups, fakeGID):
		return Server{}, fmt.Errorf("ask %s: %w", address, fs.ErrPermission)
	case h.server == nil:
		return Server{}, fmt.Errorf("ask %s: %w", address, syscall.ECONNREFUSED)
	}
	return *h.server, nil
}

func (h *fakeHost) TryPool(_ context.Context, _, driver string) error {
	h.ran = append(h.ran, "try a pool with "+driver)
	if h.poolFinds {
		h.server.Drivers = append(h.server.Drivers, driver)
	}
	return h.poolErr
}

// noProgress shows progress to nobody.
type noProgress struct{}

func (noProgress) Begin(string) Task  { return noProgress{} }
func (noProgress) At(float64, string) {}
func (noProgress) End(error)          {}

// runOn runs on a host, with a receipt of the test's own.
func runOn(t *testing.T, h Host, o Options) (*Outcome, string, error) {
	t.Helper()
	var said strings.Builder
	o.Out, o.Progress = &said, noProgress{}
	if o.Receipt == "" {
		o.Receipt = t.TempDir() + "/receipt.jsonl"
	}
	outcome, err := Run(t.Context(), h, o)
	return outcome, said.String(), err
}
