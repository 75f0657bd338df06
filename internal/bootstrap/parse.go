// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// assignments reads lines of NAME=VALUE, where a value may be quoted as in a shell.
func assignments(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	return values
}

// parseOSRelease reads /etc/os-release.
func parseOSRelease(text string) osRelease {
	values := assignments(text)
	release := osRelease{id: values["ID"], name: values["PRETTY_NAME"], like: strings.Fields(values["ID_LIKE"])}
	if release.name == "" {
		release.name = "an unknown system"
	}
	return release
}

// parsePolicy reads what `apt-cache policy` says of packages. One that apt does not know is absent.
func parsePolicy(text string) map[string]aptPackage {
	packages := map[string]aptPackage{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			current = name
			packages[current] = aptPackage{}
			continue
		}
		field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if value == "(none)" {
			value = ""
		}
		p := packages[current]
		switch {
		case current == "":
			continue
		case field == "Installed":
			p.installed = value
		case field == "Candidate":
			p.candidate = value
		}
		packages[current] = p
	}
	return packages
}

// halfDone picks out of what dpkg-query says the packages that an installation was interrupted at.
func halfDone(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		name, status, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch status {
		case "installed", "not-installed", "config-files", "":
		default:
			names = append(names, name)
		}
	}
	return names
}

// parseUnit reads what `systemctl show` says of a unit.
func parseUnit(text string) unit {
	values := assignments(text)
	return unit{load: values["LoadState"], active: values["ActiveState"], result: values["Result"], file: values["UnitFileState"]}
}

// parseGroup reads a line of the groups' database: NAME:PASSWORD:GID:MEMBERS.
func parseGroup(line string) (name string, gid int, ok bool) {
	fields := strings.Split(strings.TrimSpace(line), ":")
	if len(fields) < 3 {
		return "", 0, false
	}
	gid, err := strconv.Atoi(fields[2])
	return fields[0], gid, err == nil
}

// aptStatus is a line of apt's progress.
type aptStatus struct {
	// installing says that it is past fetching.
	installing bool
	// fraction is how far it is with fetching, or with installing.
	fraction float64
	doing    string
}

// parseAptStatus reads a line that apt writes to its status descriptor.
func parseAptStatus(line string) (status aptStatus, ok bool) {
	fields := strings.SplitN(line, ":", 4)
	if len(fields) != 4 || fields[0] != "dlstatus" && fields[0] != "pmstatus" {
		return aptStatus{}, false
	}
	percent, err := strconv.ParseFloat(fields[2], 64)
	if err != nil {
		return aptStatus{}, false
	}
	return aptStatus{installing: fields[0] == "pmstatus", fraction: percent / 100, doing: strings.TrimSpace(fields[3])}, true
}

// settingUp is how dpkg says that it configures a package.
var settingUp = regexp.MustCompile(`^Setting up (\S+?)(:\S+)? \((\S+)\) \.{3}$`)

// aptChanges picks out of apt's output what it did for the packages that were wanted, and what else.
func aptChanges(output string, wanted []string) (installed, effects []string) {
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		setUp := settingUp.FindStringSubmatch(line)
		switch {
		case len(setUp) > 0 && slices.Contains(wanted, setUp[1]):
			installed = append(installed, "installed "+setUp[1]+" "+setUp[3])
		case len(setUp) > 0:
			effects = append(effects, "installed "+setUp[1]+" "+setUp[3]+" along")
		case strings.HasPrefix(line, "update-initramfs: Generating "):
			effects = append(effects, "rebuilt the initramfs "+strings.TrimPrefix(line, "update-initramfs: Generating "))
		case strings.Contains(line, "policy-rc.d denied execution"):
			effects = append(effects, "a service was not started: "+line)
		}
	}
	return installed, effects
}
