// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"
)

// askTimeout bounds the question to a daemon that runs. A healthy one answers in milliseconds.
const askTimeout = 20 * time.Second

// look reads the facts of a host. It changes nothing: a daemon that a socket would start is not connected to.
func look(ctx context.Context, h Host, o Options) (*facts, error) {
	f := &facts{
		systemd:  h.Exists("/run/systemd/system"),
		apt:      h.Find("apt-get") != "",
		confined: confinesPrograms(h),
		tools:    map[string]bool{snapd: h.Find("snap") != "", appArmor: h.Find("apparmor_parser") != ""},
	}
	release, err := h.ReadFile("/etc/os-release")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f.os = parseOSRelease(string(release))
	if f.invoker, err = h.Invoker(); err != nil {
		return nil, err
	}
	if o.User != "" {
		f.invoker.User = o.User
	}
	f.packages = lookAtPackages(ctx, h, f.apt)
	for _, t := range tools {
		found := slices.ContainsFunc(t.programs, func(program string) bool { return h.Find(program) != "" })
		f.tools[t.pkg] = found && !f.packages[t.pkg].halfDone
	}
	if err := f.findDaemon(h, o); err != nil || o.PackagesOnly {
		return f, err
	}
	f.units = lookAtUnits(ctx, h, f)
	f.daemon = lookAtDaemon(ctx, h, f)
	if f.access, err = lookAtAccess(ctx, h, f); err != nil {
		return nil, err
	}
	return f, ctx.Err()
}

func confinesPrograms(h Host) bool {
	enabled, err := h.ReadFile("/sys/module/apparmor/parameters/enabled")
	return err == nil && strings.TrimSpace(string(enabled)) == "Y"
}

// lookAtPackages asks apt for the packages that may be wanted. A host whose lists were never fetched knows none.
func lookAtPackages(ctx context.Context, h Host, apt bool) map[string]aptPackage {
	if !apt {
		return nil
	}
	names := []string{snapd, appArmor}
	for _, p := range products {
		if !p.snap {
			names = append(names, p.pkg)
		}
	}
	for _, t := range tools {
		names = append(names, t.pkg)
	}
	plain := []string{"LC_ALL=C"}
	// Where these fail, apt-get says what is wrong when something is to be installed.
	out, _ := h.Run(ctx, Command{Args: append([]string{"apt-cache", "policy"}, names...), Env: plain})
	packages := parsePolicy(out)
	query := []string{"dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n"}
	out, _ = h.Run(ctx, Command{Args: append(query, names...), Env: plain})
	for _, name := range halfDone(out) {
		p := packages[name]
		p.halfDone = true
		packages[name] = p
	}
	return packages
}

// findDaemon finds out which software is installed, and where its socket is or would be.
func (f *facts) findDaemon(h Host, o Options) error {
	named, meant := namedPlace(h.Getenv)
	if o.Address != "" && !o.PackagesOnly {
		socket, ok := strings.CutPrefix(o.Address, "unix://")
		if !ok {
			return &RefusedError{
				Found:  "LAB_ADDRESS names the daemon " + o.Address + ", which is not this host's to prepare",
				Remedy: "run bootstrap on the daemon's own host, or unset LAB_ADDRESS to prepare this one",
			}
		}
		named, meant = place{Socket: socket, NamedBy: "LAB_ADDRESS"}, nil
		if i := slices.IndexFunc(products, func(p *product) bool { return p.socket == socket }); i >= 0 {
			named, meant = place{Socket: socket}, products[i]
		}
	}
	for _, p := range products {
		if meant != nil && p != meant {
			continue
		}
		if program := p.installed(h); program != "" {
			f.product, f.program = p, program
			break
		}
	}
	f.place = named
	switch {
	case f.place.Socket != "":
	case f.product != nil:
		f.place = place{Socket: f.product.socket}
	default:
		f.place = place{Socket: lxdPackage.socket}
		for _, p := range products {
			if h.Exists(p.socket) {
				f.place = place{Socket: p.socket}
				break
			}
		}
	}
	return nil
}

func lookAtUnits(ctx context.Context, h Host, f *facts) units {
	if !f.systemd || f.product == nil || f.place.NamedBy != "" {
		return units{}
	}
	show := func(name string) unit {
		out, err := h.Run(ctx, Command{Args: []string{"systemctl", "show", "--property=LoadState,ActiveState,Result,UnitFileState", "--", name}})
		if err != nil {
			return unit{}
		}
		return parseUnit(out)
	}
	return units{service: show(f.product.service), socket: show(f.product.socketUnit)}
}

// lookAtDaemon asks the daemon who it is, unless the question would start it.
func lookAtDaemon(ctx context.Context, h Host, f *facts) daemonFacts {
	if f.managed() && f.units.service.active != "active" || !f.managed() && !h.Exists(f.place.Socket) {
		return daemonFacts{}
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	server, err := h.Ask(asking, "unix://"+f.place.Socket)
	switch {
	case err == nil:
		return daemonFacts{answers: true, server: server}
	case errors.Is(err, fs.ErrPermission):
		return daemonFacts{denied: true}
	case !f.managed() && (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)):
		return daemonFacts{} // a socket that a dead daemon left
	default:
		return daemonFacts{trouble: err.Error()}
	}
}

// lookAtAccess finds the group that may use the daemon, and whether the person is in it.
func lookAtAccess(ctx context.Context, h Host, f *facts) (accessFacts, error) {
	group := lxdPackage.group
	if f.product != nil {
		group = f.product.group
	}
	// What owns the socket is what counts; without one, what is going to own it.
	key := group
	if gid, err := h.OwningGroup(f.place.Socket); err == nil && h.Exists(f.place.Socket) {
		key = itoa(gid)
	}
	a := accessFacts{group: group}
	if out, err := h.Run(ctx, Command{Args: []string{"getent", "group", key}}); err == nil {
		if name, gid, ok := parseGroup(out); ok {
			a.group, a.gid = name, gid
		}
	}
	if f.invoker.User == "" || f.invoker.User == "root" {
		return a, nil
	}
	out, err := h.Run(ctx, Command{Args: []string{"id", "-nG", "--", f.invoker.User}})
	if err != nil {
		return a, &RefusedError{Found: "this host has no user " + f.invoker.User, Remedy: "name an existing one with --user", Err: err}
	}
	a.member = slices.Contains(strings.Fields(out), a.group)
	a.holds = a.gid != 0 && slices.Contains(f.invoker.Groups, a.gid)
	return a, nil
}
