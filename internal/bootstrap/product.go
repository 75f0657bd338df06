// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"path/filepath"
	"slices"
)

// product is a daemon in one of the forms that it is installed in.
type product struct {
	// name is for people.
	name string
	// binaries are the places of the daemon's program, apart from PATH.
	binaries []string
	// pkg is its package: apt's, or the snap.
	pkg string
	// snap says that it is a snap, which brings its own tools.
	snap bool
	// service and socketUnit are its systemd units.
	service, socketUnit string
	// socket is where it listens.
	socket string
	// group may use the socket.
	group string
	// dirVariable names another directory for it, in its environment.
	dirVariable string
}

// The products, in the order in which a daemon is looked for.
var (
	lxdSnap = &product{
		name: "LXD (snap)", binaries: []string{"/snap/bin/lxd"}, pkg: "lxd", snap: true,
		service: "snap.lxd.daemon.service", socketUnit: "snap.lxd.daemon.unix.socket",
		socket: "/var/snap/lxd/common/lxd/unix.socket", group: "lxd", dirVariable: "LXD_DIR",
	}
	lxdPackage = &product{
		name: "LXD", binaries: []string{"/usr/bin/lxd", "/usr/local/bin/lxd", "/usr/local/sbin/lxd"}, pkg: "lxd",
		service: "lxd.service", socketUnit: "lxd.socket",
		socket: "/var/lib/lxd/unix.socket", group: "lxd", dirVariable: "LXD_DIR",
	}
	incusPackage = &product{
		name: "Incus", binaries: []string{"/usr/libexec/incus/incusd", "/usr/lib/incus/incusd", "/opt/incus/bin/incusd", "/usr/bin/incusd", "/usr/local/bin/incusd"},
		pkg: "incus-base", service: "incus.service", socketUnit: "incus.socket",
		socket: "/var/lib/incus/unix.socket", group: "incus-admin", dirVariable: "INCUS_DIR",
	}
	products = []*product{lxdSnap, lxdPackage, incusPackage}
)

// installed gives the path of the product's program, or nothing. Only known places count: Ubuntu has an lxd on PATH
// that is a script which would install the snap.
func (p *product) installed(h Host) string {
	for _, path := range p.binaries {
		if h.Exists(path) {
			return path
		}
	}
	return ""
}

// place is where the daemon's socket is, and who says so.
type place struct {
	// Socket is its path.
	Socket string
	// NamedBy is the variable that names it; empty for the product's own place.
	NamedBy string
	// Dir says that the variable names the daemon's directory, so that a daemon can be started in it.
	Dir bool
}

// placeVariables name a place, in the order in which the provider looks at them.
var placeVariables = []struct {
	name, file string
	product    *product
}{
	{"LXD_SOCKET", "", lxdPackage},
	{"LXD_DIR", "unix.socket", lxdPackage},
	{"INCUS_SOCKET", "", incusPackage},
	{"INCUS_DIR", "unix.socket", incusPackage},
}

// namedPlace gives the place that the environment names, and the product that the name speaks of. Naming a product's
// own place is naming none.
func namedPlace(getenv func(string) string) (place, *product) {
	for _, variable := range placeVariables {
		value := getenv(variable.name)
		if value == "" {
			continue
		}
		socket := filepath.Join(value, variable.file)
		if i := slices.IndexFunc(products, func(p *product) bool { return p.socket == socket }); i >= 0 {
			return place{Socket: socket}, products[i]
		}
		return place{Socket: socket, NamedBy: variable.name, Dir: variable.file != ""}, variable.product
	}
	return place{}, nil
}
