// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"slices"
	"strings"
)

// tool is a program that the daemon runs, where it is not a snap that brings its own.
type tool struct {
	// programs are the ones of which one suffices, and pkg has one of them.
	programs []string
	pkg      string
	// use says what the daemon needs it for.
	use string
}

var tools = []tool{
	{[]string{"mkfs.btrfs"}, "btrfs-progs", "the daemon makes btrfs pools with it"},
	{[]string{"dnsmasq"}, "dnsmasq-base", "the daemon gives machines addresses and names with it"},
	{[]string{"nft", "iptables"}, "nftables", "the daemon connects machines to the outside with it"},
	{[]string{"ip"}, "iproute2", "the daemon does not start without it"},
}

// appArmor confines containers, where the kernel can. The daemon works without it, so it is only installed along.
const appArmor = "apparmor"

// snapd installs snaps.
const snapd = "snapd"

// choose says which software is going to be installed on a host that has none.
func choose(f *facts, a ask) (*product, error) {
	known := func(name string) bool { return f.packages[name].candidate != "" }
	switch {
	case f.os.is("ubuntu"): // whose package of the name lxd installs the snap
		return lxdSnap, nil
	case f.apt && known(lxdPackage.pkg):
		return lxdPackage, nil
	case f.apt && known(incusPackage.pkg):
		return incusPackage, nil
	case f.apt && !a.refreshed: // the lists will tell
		return lxdPackage, nil
	case f.apt && known(snapd):
		return lxdSnap, nil
	}
	return nil, &RefusedError{
		Found:  "there is no LXD or Incus on this host, and no known way to install one on " + f.os.name,
		Remedy: "install LXD (5.0 or newer) or Incus with the means of this system, along with btrfs-progs, dnsmasq, nftables and iproute2, then run bootstrap again",
	}
}

// wishes are packages to install, and why.
type wishes struct{ names, reasons []string }

func (w *wishes) add(pkg, reason string) {
	w.names = append(w.names, pkg)
	w.reasons = append(w.reasons, pkg+": "+reason)
}

// addDaemon adds what it takes to have the daemon's program, and says whether that was missing.
func (w *wishes) addDaemon(f *facts, goal *product) (missing bool) {
	switch {
	case goal.snap:
		if f.product == nil && !f.tools[snapd] {
			w.add(snapd, goal.name+" is installed with it")
		}
		return f.product == nil
	case f.product != nil && f.packages[goal.pkg].halfDone:
		w.add(goal.pkg, "its installation was interrupted")
		return true
	case f.product != nil:
		return false
	}
	w.add(goal.pkg, "there is no LXD or Incus on this host")
	if f.confined && !f.tools[appArmor] {
		w.add(appArmor, "the kernel can confine containers, and the daemon needs it for that")
	}
	return true
}

// planPackages installs what is missing of the daemon and its tools.
func planPackages(f *facts, goal *product, a ask) ([]Step, error) {
	var w wishes
	state := NotAdequate
	if w.addDaemon(f, goal) {
		state = NotInstalled
	}
	for _, t := range tools {
		if !goal.snap && !f.tools[t.pkg] {
			w.add(t.pkg, t.use)
		}
	}
	steps, err := planApt(f, w, state, a)
	if err != nil || f.product != nil || !goal.snap {
		return steps, err
	}
	more, err := planSnap(f, goal)
	return append(steps, more...), err
}

// planApt installs packages, and fetches apt's lists first where they do not name them.
func planApt(f *facts, w wishes, state State, a ask) ([]Step, error) {
	if len(w.names) == 0 {
		return nil, nil
	}
	if !f.apt {
		return nil, &RefusedError{
			Found:  "these are missing on " + f.os.name + ": " + strings.Join(w.reasons, "; "),
			Remedy: "install them with the means of this system (there is no apt-get here), then run bootstrap again",
		}
	}
	install := Step{
		Name: "packages", State: state,
		Title:    "install " + list(w.names),
		Reasons:  w.reasons,
		Commands: []string{Command{Args: aptInstall(w.names)}.String()},
		do:       installPackages(w.names),
	}
	unknown := slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return f.packages[name].candidate != "" })
	switch {
	case len(unknown) == 0:
		return []Step{install}, nil
	case a.refreshed:
		return nil, &RefusedError{
			Found:  "apt's sources on this host have no package " + list(unknown),
			Remedy: "add a source that has it to /etc/apt (on Debian, the component main of the release), then run bootstrap again",
		}
	}
	refresh := Step{
		Name: "package-lists", State: state,
		Title:    "fetch the lists of packages",
		Reasons:  []string{"apt does not know " + list(unknown)},
		Commands: []string{Command{Args: aptUpdate()}.String()},
		do:       updatePackages,
	}
	return []Step{refresh, install}, nil
}

// planSnap installs the snap.
func planSnap(f *facts, goal *product) ([]Step, error) {
	if !f.systemd {
		return nil, &RefusedError{
			Found:  "LXD comes as a snap on " + f.os.name + ", and snaps need systemd, which does not run here",
			Remedy: "use a host that runs systemd, or install LXD or Incus by other means",
		}
	}
	commands := [][]string{{"snap", "wait", "system", "seed.loaded"}, {"snap", "install", goal.pkg}}
	step := Step{
		Name: "snap", State: NotInstalled,
		Title:   "install the snap " + goal.pkg,
		Reasons: []string{"there is no LXD or Incus on this host, and " + f.os.name + " has LXD as a snap"},
		do:      runCommands("installed the snap "+goal.pkg, commands...),
	}
	for _, c := range commands {
		step.Commands = append(step.Commands, Command{Args: c}.String())
	}
	return []Step{step}, nil
}

// list joins words for a sentence.
func list(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}
