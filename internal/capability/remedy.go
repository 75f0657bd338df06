// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bootstrapCommand makes this host capable.
const bootstrapCommand = "terraform-provider-lab bootstrap"

// offers says which drivers the daemon has.
func (f *Facts) offers() string {
	drivers := f.drivers()
	if len(drivers) == 0 {
		return fmt.Sprintf("%s %s does not tell which storage drivers it offers", f.product(), f.Environment.ServerVersion)
	}
	return fmt.Sprintf("%s %s offers the storage drivers: %s", f.product(), f.Environment.ServerVersion, strings.Join(drivers, ", "))
}

// product is the daemon's name.
func (f *Facts) product() string {
	if f.Environment.Server == "incus" {
		return "Incus"
	}
	return "LXD"
}

// goodPools names the other pools that copy on write by the facts.
func (f *Facts) goodPools(except string) []string {
	var names []string
	for _, pool := range f.sortedPools() {
		if _, _, bad := f.traits(pool).worst(); !bad && pool.Name != except && canCopyOnWrite(pool.Driver) {
			names = append(names, fmt.Sprintf("%s (%s)", pool.Name, pool.Driver))
		}
	}
	return names
}

// driverRemedy says how to get a driver on the daemon's host.
func (f *Facts) driverRemedy(driver string) string {
	tools, known := driverTools[driver]
	if !known {
		return fmt.Sprintf("Use one of the drivers that copy on write: %s.", strings.Join(copyOnWrite, ", "))
	}
	where := ""
	if f.host == nil {
		where = "on the daemon's host "
	}
	if misplaced := f.host.misplaced(tools.programs); misplaced != "" {
		return fmt.Sprintf("The tools are here (%s), outside the daemon's PATH: start the daemon with that directory on its PATH.", misplaced)
	}
	byHand := fmt.Sprintf("`%s` and `%s`", f.install(tools.packages), f.restart())
	if driver == DefaultDriver {
		return fmt.Sprintf("Run `%s` %sas root, which does %s as far as needed.", bootstrapCommand, where, byHand)
	}
	return fmt.Sprintf("Run %s %sas root, or use driver = %q.", byHand, where, DefaultDriver)
}

// misplaced gives where the tools are when this process finds them and the daemon does not.
func (h *host) misplaced(programs []string) string {
	if h == nil || !h.daemonsPath {
		return ""
	}
	var found []string
	for _, program := range programs {
		if h.find(program) != "" {
			continue
		}
		at := findIn(systemPath, program)
		if at == "" {
			return ""
		}
		found = append(found, at)
	}
	return strings.Join(found, ", ")
}

// systemPath is where distributions put the tools.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// installers are how distributions install packages, by a word of their name.
var installers = map[string]string{
	"debian": "apt-get install ", "ubuntu": "apt-get install ", "fedora": "dnf install ", "red hat": "dnf install ", "centos": "dnf install ",
	"rocky": "dnf install ", "alma": "dnf install ", "arch": "pacman -S ", "alpine": "apk add ", "suse": "zypper install ",
}

// install is the command that installs packages on the daemon's host.
func (f *Facts) install(packages string) string {
	name := strings.ToLower(f.Environment.OSName)
	for _, word := range slices.Sorted(maps.Keys(installers)) {
		if strings.Contains(name, word) {
			return installers[word] + packages
		}
	}
	return "install " + packages
}

// restart is the command that makes the daemon look for its tools again.
func (f *Facts) restart() string {
	switch {
	case f.host != nil && f.host.snap:
		return "snap restart " + cmp.Or(f.Environment.Server, "lxd")
	case f.product() == "Incus":
		return "systemctl restart incus"
	default:
		return "systemctl restart lxd"
	}
}
