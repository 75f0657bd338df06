// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"fmt"
	"path/filepath"
)

// planDaemon gets the daemon to run, now and after the next boot.
func planDaemon(f *facts, goal *product) ([]Step, error) {
	if f.daemon.denied {
		return nil, nil // It runs; the rest of it can only be judged by somebody who may ask it.
	}
	if f.daemon.trouble != "" {
		return nil, refuseTrouble(f)
	}
	switch {
	case f.place.NamedBy != "" && f.daemon.answers:
		return nil, nil
	case f.place.NamedBy != "" && !f.place.Dir:
		return nil, &RefusedError{
			Found:  fmt.Sprintf("nobody answers at %s, which %s names", f.place.Socket, f.place.NamedBy),
			Remedy: fmt.Sprintf("start the daemon that belongs there, or unset %s to use this host's own", f.place.NamedBy),
		}
	case f.managed() && goal.snap, f.product == nil && goal.snap:
		return planSnapService(f, goal)
	case f.managed():
		return planUnits(f, goal)
	case f.product == nil && f.systemd && f.place.NamedBy == "":
		return []Step{unitStep(f, goal, "one that was just installed does not run by itself", nil, true)}, nil
	case f.daemon.answers:
		return nil, nil
	}
	return []Step{directStep(f, goal)}, nil
}

// refuseTrouble refuses to touch a daemon that runs and does not answer: only a person knows what it is doing.
func refuseTrouble(f *facts) error {
	remedy := "look into its log, and restart it"
	if f.managed() {
		remedy = fmt.Sprintf("`journalctl -u %s` says more, and `systemctl restart %s` restarts it", f.product.service, f.product.service)
	}
	return &RefusedError{
		Found:  fmt.Sprintf("the daemon at %s does not answer as it should: %s", f.place.Socket, f.daemon.trouble),
		Remedy: remedy,
	}
}

// planUnits enables and starts the daemon's units.
func planUnits(f *facts, goal *product) ([]Step, error) {
	if f.units.service.masked() || f.units.socket.masked() {
		return nil, &RefusedError{
			Found:  fmt.Sprintf("the systemd unit %s or %s is masked, which somebody did on purpose", goal.service, goal.socketUnit),
			Remedy: fmt.Sprintf("undo it if it is no longer meant (`systemctl unmask %s %s`), then run bootstrap again", goal.service, goal.socketUnit),
		}
	}
	var commands [][]string
	reason := ""
	if f.units.socket.file == "disabled" {
		reason = goal.socketUnit + " is disabled, so that nothing starts the daemon after a boot"
		commands = append(commands, []string{"systemctl", "enable", goal.service})
	}
	if f.daemon.answers && reason == "" {
		return nil, nil
	}
	if !f.daemon.answers {
		if reason != "" {
			reason += "; "
		}
		reason += fmt.Sprintf("%s is %s", goal.service, f.units.service.active)
		if f.units.service.failed() {
			reason += " (" + f.units.service.result + ")"
		}
	}
	return []Step{unitStep(f, goal, reason, commands, !f.daemon.answers)}, nil
}

// unitStep runs commands, and starts the daemon's unit if that is asked for.
func unitStep(f *facts, goal *product, reason string, commands [][]string, start bool) Step {
	step := Step{Name: "daemon", State: NotAvailable, Title: "enable the daemon", Reasons: []string{reason}}
	if start {
		step.Title = "start the daemon"
		if f.units.service.stuck() { // a start would join the one that waits for a dead program
			commands = append(commands, []string{"systemctl", "stop", goal.service})
		}
		if f.units.service.failed() {
			commands = append(commands, []string{"systemctl", "reset-failed", goal.service})
		}
		commands = append(commands, []string{"systemctl", "start", goal.service})
	}
	for _, c := range commands {
		step.Commands = append(step.Commands, Command{Args: c}.String())
	}
	step.do = startUnit(goal, commands, start)
	return step
}

// planSnapService starts a snap's services. Installing a snap does that by itself.
func planSnapService(f *facts, goal *product) ([]Step, error) {
	if f.product == nil || f.daemon.answers && f.units.socket.file != "disabled" {
		return nil, nil
	}
	command := []string{"snap", "start", "--enable", goal.pkg}
	return []Step{{
		Name: "daemon", State: NotAvailable,
		Title:    "start the daemon",
		Reasons:  []string{fmt.Sprintf("%s is %s", goal.service, f.units.service.active)},
		Commands: []string{Command{Args: command}.String()},
		do:       startUnit(goal, [][]string{command}, true),
	}}, nil
}

// directStep starts the daemon's program, where there is no systemd that would.
func directStep(f *facts, goal *product) Step {
	command, log := daemonCommand(f, goal)
	reason := "it does not run, and this host has no systemd that would start it"
	if f.place.NamedBy != "" {
		reason = fmt.Sprintf("nobody answers at %s, which %s names", f.place.Socket, f.place.NamedBy)
	}
	return Step{
		Name: "daemon", State: NotAvailable,
		Title:    "start the daemon",
		Reasons:  []string{reason},
		Commands: []string{fmt.Sprintf("%s >>%s 2>&1 &", command, log)},
		Note:     "nothing starts it again after a boot; run bootstrap again then",
		do:       startDirectly(goal),
	}
}

// daemonCommand is how a daemon is started without systemd, and where its log goes.
func daemonCommand(f *facts, goal *product) (command Command, log string) {
	program := f.program
	if program == "" {
		program = goal.binaries[0]
	}
	command = Command{Args: []string{program, "--group", goal.group}}
	log = filepath.Join("/var/log", filepath.Base(filepath.Dir(goal.socket)), "daemon.log")
	if f.place.NamedBy != "" {
		dir := filepath.Dir(f.place.Socket)
		command.Env = []string{goal.dirVariable + "=" + dir}
		log = filepath.Join(dir, "daemon.log")
	}
	return command, log
}
