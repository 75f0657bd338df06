// SPDX-License-Identifier: MPL-2.0

package bootstrap

import "fmt"

// ask is what a plan is made for.
type ask struct {
	// packagesOnly leaves out everything but packages.
	packagesOnly bool
	// refreshed says that apt's lists were fetched in this run, so that what they lack cannot be had.
	refreshed bool
}

// plan lists, in order, what is missing on a host. It is empty for a host that lacks nothing. Steps that come after an
// installation are foreseen as far as possible; a later look decides. Errors are [RefusedError].
func plan(f *facts, a ask) ([]Step, error) {
	if f.elsewhere() {
		return nil, refuseElsewhere(f)
	}
	goal := f.product
	if goal == nil {
		var err error
		if goal, err = choose(f, a); err != nil {
			return nil, err
		}
	}
	steps, err := planPackages(f, goal, a)
	if err != nil || a.packagesOnly {
		return steps, err
	}
	for _, part := range []func(*facts, *product) ([]Step, error){planGroup, planDaemon, planDrivers, planAccess} {
		more, err := part(f, goal)
		if err != nil {
			return nil, err
		}
		steps = append(steps, more...)
	}
	return steps, nil
}

// refuseElsewhere refuses a daemon that answers here but was installed on another host, if it is not adequate.
func refuseElsewhere(f *facts) error {
	if f.daemon.offers() {
		return nil
	}
	return &RefusedError{
		Found: fmt.Sprintf("%s %s answers at %s and does not offer the storage driver %s, but it was not installed on this host",
			f.daemon.server.Product, f.daemon.server.Version, f.place.Socket, driver),
		Remedy: "run bootstrap on the daemon's own host",
	}
}

// planGroup makes the group that may use the daemon. A package that is still to be installed brings its own.
func planGroup(f *facts, goal *product) ([]Step, error) {
	if f.product == nil || f.access.gid != 0 || f.access.group != goal.group {
		return nil, nil
	}
	command := []string{"groupadd", "--system", goal.group}
	return []Step{{
		Name: "group", State: NotAvailable,
		Title:    "make the group " + goal.group,
		Reasons:  []string{"this host has no such group, and " + goal.name + " opens its socket to it"},
		Commands: []string{Command{Args: command}.String()},
		do:       runCommands("made the group "+goal.group, command),
	}}, nil
}

// planDrivers makes a running daemon look for the storage driver again. One that is still to be started looks anyway.
func planDrivers(f *facts, _ *product) ([]Step, error) {
	if !f.daemon.answers || f.daemon.offers() {
		return nil, nil
	}
	reason := fmt.Sprintf("the daemon offers %s but not %s; it looked for tools when it started", list(f.daemon.server.Drivers), driver)
	return []Step{{
		Name: "drivers", State: NotAdequate,
		Title:   "make the daemon look for its storage drivers again",
		Reasons: []string{reason},
		Commands: []string{
			"make a throw-away " + driver + " pool on the daemon, and remove it",
			"only if that does not do: restart the daemon (its instances keep running)",
		},
		do: detectDrivers,
	}}, nil
}

// planAccess lets the person use the daemon.
func planAccess(f *facts, goal *product) ([]Step, error) {
	user, group := f.invoker.User, f.access.group
	if user == "" || user == "root" || f.access.member {
		return nil, nil
	}
	if group == "root" {
		return nil, &RefusedError{
			Found:  fmt.Sprintf("the socket %s belongs to the group root, and to make %s a member of that would give away more than the daemon", f.place.Socket, user),
			Remedy: fmt.Sprintf("run as root, or restart the daemon with `--group %s`", goal.group),
		}
	}
	command := []string{"usermod", "--append", "--groups", group, user}
	return []Step{{
		Name: "access", State: NotAvailable,
		Title:    fmt.Sprintf("let %s use the daemon", user),
		Reasons:  []string{fmt.Sprintf("%s is not in the group %s, which the daemon's socket is open to", user, group)},
		Commands: []string{Command{Args: command}.String()},
		Note:     fmt.Sprintf("whoever is in the group %s is root's equal on this host", group),
		do:       giveAccess(user, group, command),
	}}, nil
}
