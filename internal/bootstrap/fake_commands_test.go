// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fakeCommand is what the commands that begin with some words do on a [fakeHost].
type fakeCommand struct {
	words string
	do    func(h *fakeHost, c Command) (string, error)
}

// reads only read.
var reads = []fakeCommand{
	{"apt-cache policy", (*fakeHost).aptPolicy},
	{"dpkg-query --show", (*fakeHost).dpkgQuery},
	{"systemctl show", (*fakeHost).showUnit},
	{"journalctl --unit", func(*fakeHost, Command) (string, error) { return "what the daemon said last", nil }},
	{"getent group", (*fakeHost).getGroup},
	{"id -nG", (*fakeHost).groupsOf},
	{"/usr/bin/lxd waitready", (*fakeHost).waitReady},
	{"runuser -u", (*fakeHost).runUser},
}

// changes change the host. What is not among them does nothing.
var changes = []fakeCommand{
	{"apt-get update", func(h *fakeHost, _ Command) (string, error) { h.lists = true; return "", nil }},
	{"apt-get install", (*fakeHost).aptInstall},
	{"systemctl enable", func(h *fakeHost, _ Command) (string, error) { h.units["lxd.socket"].file = "enabled"; return "", nil }},
	{"systemctl start", func(h *fakeHost, _ Command) (string, error) { h.start(); return "", nil }},
	{"systemctl restart", func(h *fakeHost, _ Command) (string, error) { h.start(); return "", nil }},
	{"systemctl stop", (*fakeHost).resetUnit},
	{"systemctl reset-failed", (*fakeHost).resetUnit},
	{"kill -TERM", func(h *fakeHost, _ Command) (string, error) { h.stop(); return "", nil }},
	{"groupadd", func(h *fakeHost, c Command) (string, error) { h.members[last(c.Args)] = nil; return "", nil }},
	{"usermod", func(h *fakeHost, c Command) (string, error) {
		group := c.Args[len(c.Args)-2]
		h.members[group] = append(h.members[group], last(c.Args))
		return "", nil
	}},
}

func last(words []string) string { return words[len(words)-1] }

var errFake = errors.New("exit status 100")

func (h *fakeHost) Run(ctx context.Context, c Command) (string, error) {
	if h.hangsOn(c) {
		if h.onHang != nil {
			h.onHang()
		}
		<-ctx.Done()
		return "", &CommandError{Command: c, Err: ctx.Err()}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, known := range reads {
		if strings.HasPrefix(strings.Join(c.Args, " "), known.words) {
			return known.do(h, c)
		}
	}
	line := strings.Join(slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return slices.Contains(aptOptions, a) }), " ")
	h.ran = append(h.ran, line)
	for _, failing := range slices.Sorted(maps.Keys(h.fails)) {
		if strings.HasPrefix(line, failing) {
			said := h.fails[failing].Error()
			delete(h.fails, failing)
			return said, &CommandError{Command: c, Output: said, Err: errFake}
		}
	}
	if h.useless != "" && strings.HasPrefix(line, h.useless) {
		return "", nil
	}
	for _, known := range changes {
		if strings.HasPrefix(line, known.words) {
			return known.do(h, c)
		}
	}
	return "", nil
}

func (h *fakeHost) hangsOn(c Command) bool {
	return slices.ContainsFunc(h.hangs, func(words string) bool { return strings.HasPrefix(strings.Join(c.Args, " "), words) })
}

func (h *fakeHost) aptPolicy(c Command) (string, error) {
	var out strings.Builder
	for _, name := range c.Args[2:] {
		if h.lists && slices.Contains(h.available, name) {
			out.WriteString(name + ":\n  Installed: (none)\n  Candidate: 1.0\n  Version table:\n     1.0 500\n")
		}
	}
	return out.String(), nil
}

func (h *fakeHost) dpkgQuery(Command) (string, error) {
	var out strings.Builder
	for _, name := range h.halfDone {
		out.WriteString(name + " half-configured\n")
	}
	return out.String(), nil
}

func (h *fakeHost) showUnit(c Command) (string, error) {
	u := h.units[last(c.Args)]
	if u == nil {
		u = &unit{load: "not-found", active: "inactive"}
	}
	return fmt.Sprintf("LoadState=%s\nActiveState=%s\nResult=%s\nUnitFileState=%s\n", u.load, u.active, u.result, u.file), nil
}

func (h *fakeHost) getGroup(c Command) (string, error) {
	name := last(c.Args)
	switch name {
	case "0":
		return "root:x:0:\n", nil
	case itoa(fakeGID):
		name = h.socketGroup
	}
	if _, ok := h.members[name]; !ok {
		return "", &CommandError{Command: c, Err: errFake}
	}
	return fmt.Sprintf("%s:x:%d:%s\n", name, fakeGID, strings.Join(h.members[name], ",")), nil
}

func (h *fakeHost) groupsOf(c Command) (string, error) {
	groups := []string{last(c.Args)}
	for _, group := range slices.Sorted(maps.Keys(h.members)) {
		if slices.Contains(h.members[group], last(c.Args)) {
			groups = append(groups, group)
		}
	}
	return strings.Join(groups, " ") + "\n", nil
}

func (h *fakeHost) waitReady(c Command) (string, error) {
	if h.server == nil {
		return "", &CommandError{Command: c, Err: errFake}
	}
	return "", nil
}

func (h *fakeHost) runUser(c Command) (string, error) {
	if !slices.Contains(h.members[h.socketGroup], c.Args[2]) {
		return "", &CommandError{Command: c, Err: errFake}
	}
	return "", nil
}

func (h *fakeHost) aptInstall(c Command) (string, error) {
	names := slices.DeleteFunc(slices.Clone(c.Args[1:]), func(a string) bool {
		return strings.HasPrefix(a, "--") || slices.Contains(aptOptions, a) || a == "install"
	})
	c.Status("dlstatus:1:50:Retrieving file 1 of 2")
	c.Status("pmstatus:lxd:50:Unpacking lxd (amd64)")
	h.install(names...)
	var out strings.Builder
	out.WriteString("Setting up libfoo:amd64 (1.2) ...\nupdate-initramfs: Generating /boot/initrd.img-6.1\n")
	for _, name := range names {
		out.WriteString("Setting up " + name + " (1.0) ...\n")
	}
	return out.String(), nil
}

func (h *fakeHost) resetUnit(c Command) (string, error) {
	if !h.stays {
		h.stop()
		h.units[last(c.Args)].result = "success"
	}
	return "", nil
}
