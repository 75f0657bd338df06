// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"fmt"
	"slices"
	"strings"
)

// driver is the storage driver that makes a host adequate.
const driver = "btrfs"

// facts are what was found on a host. Nothing in them was tried out; that is for the proof.
type facts struct {
	os      osRelease
	systemd bool
	invoker Invoker
	// apt says that apt-get is there.
	apt bool
	// packages are those that apt knows, of the ones that may be wanted.
	packages map[string]aptPackage
	// product is the daemon's software, and program its path; nil and empty where none is installed.
	product *product
	program string
	place   place
	units   units
	daemon  daemonFacts
	access  accessFacts
	// tools are the programs that were found, of the ones that may be wanted.
	tools map[string]bool
	// confined says that the kernel confines programs with AppArmor.
	confined bool
}

// osRelease is what /etc/os-release says.
type osRelease struct {
	id, name string
	// like are the distributions that this one descends from.
	like []string
}

// is says whether the host runs a distribution, or one of its descendants.
func (o osRelease) is(id string) bool { return o.id == id || slices.Contains(o.like, id) }

// aptPackage is what apt knows of a package.
type aptPackage struct {
	installed, candidate string
	// halfDone says that its installation was interrupted.
	halfDone bool
}

// unit is what systemd says of a unit.
type unit struct {
	load, active, result, file string
}

func (u unit) loaded() bool { return u.load == "loaded" }
func (u unit) masked() bool { return u.load == "masked" || strings.HasPrefix(u.file, "masked") }

// stuck says that the unit's program ended while others still wait for it to become ready.
func (u unit) stuck() bool { return u.active == "activating" && u.failed() }

// failed says that the unit's program did not end well.
func (u unit) failed() bool {
	return u.active == "failed" || u.result != "" && u.result != "success"
}

// units are those of the daemon; zero where there is no systemd, or the daemon's place was named.
type units struct {
	service, socket unit
}

// daemonFacts are what was seen of the daemon.
type daemonFacts struct {
	// answers says that it answered.
	answers bool
	// denied says that its socket is there but closed to this process.
	denied bool
	// trouble says why it did not answer though it seems to run.
	trouble string
	server  Server
}

// offers says whether the daemon lists the driver.
func (d daemonFacts) offers() bool { return slices.Contains(d.server.Drivers, driver) }

// accessFacts say who may use the daemon.
type accessFacts struct {
	// group may use it, and gid is its number; 0 where there is no such group.
	group string
	gid   int
	// member says that the person is in the group by the host's records, and holds that this process is.
	member, holds bool
}

// elsewhere says that the daemon that answers was not installed on this host.
func (f *facts) elsewhere() bool { return f.daemon.answers && f.product == nil }

// needsGroup says that the person may use the daemon, but this process is not in the group yet.
func (f *facts) needsGroup() bool {
	return f.daemon.denied && f.access.member && !f.access.holds && !f.invoker.Root
}

// managed says that systemd runs the daemon.
func (f *facts) managed() bool {
	return f.systemd && f.place.NamedBy == "" && (f.units.service.loaded() || f.units.service.masked())
}

// describe gives the facts in lines for people. Without the daemon it tells only of packages.
func (f *facts) describe(daemon bool) []string {
	init := "no systemd"
	if f.systemd {
		init = "systemd"
	}
	lines := []string{"host: " + f.os.name + ", " + init}
	switch {
	case f.elsewhere():
		lines = append(lines, "daemon: not installed here, but one answers at "+f.place.Socket)
	case f.product == nil:
		return append(lines, "daemon: neither LXD nor Incus is installed")
	default:
		lines = append(lines, fmt.Sprintf("daemon: %s is installed (%s)", f.product.name, f.program))
	}
	switch {
	case !daemon:
	case f.daemon.answers:
		lines = append(lines, fmt.Sprintf("socket: %s %s answers at %s and offers the storage drivers: %s",
			f.daemon.server.Product, f.daemon.server.Version, f.place.Socket, strings.Join(f.daemon.server.Drivers, ", ")))
	case f.daemon.denied:
		lines = append(lines, fmt.Sprintf("socket: %s is closed to %s, who is not acting in the group %s", f.place.Socket, f.invoker.User, f.access.group))
	case f.daemon.trouble != "":
		lines = append(lines, "socket: "+f.daemon.trouble)
	default:
		lines = append(lines, "socket: nobody answers at "+f.place.Socket)
	}
	return lines
}
