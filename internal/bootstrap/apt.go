// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"regexp"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// aptEnv keeps apt and its hooks from asking, and from restarting services that have nothing to do with us.
var aptEnv = []string{"DEBIAN_FRONTEND=noninteractive", "APT_LISTCHANGES_FRONTEND=none", "NEEDRESTART_SUSPEND=1", "LC_ALL=C.UTF-8"}

// aptOptions make apt wait for others (automatic upgrades, say), try again on a bad network, keep configuration files
// that somebody changed, and tell how far it is.
var aptOptions = []string{
	"--yes", "--quiet",
	"--option", "DPkg::Lock::Timeout=600",
	"--option", "Acquire::Retries=3",
	"--option", "Dpkg::Options::=--force-confdef",
	"--option", "Dpkg::Options::=--force-confold",
	"--option", "Dpkg::Use-Pty=0",
	"--option", "APT::Status-Fd=3",
}

// dpkgConfigure finishes what an interrupted dpkg had begun.
var dpkgConfigure = []string{"dpkg", "--force-confdef", "--force-confold", "--configure", "-a"}

var (
	aptLocked      = regexp.MustCompile(`(?i)could not get lock`)
	aptInterrupted = regexp.MustCompile(`dpkg --configure -a`)
	aptStale       = regexp.MustCompile(`(?i)failed to fetch|unable to fetch some archives|404 +not found`)
)

func aptUpdate() []string { return []string{"apt-get", "update"} }

func aptInstall(names []string) []string {
	return append([]string{"apt-get", "install", "--no-install-recommends"}, names...)
}

// apt runs apt-get with the options. At is told how far it is.
func (w *work) apt(ctx context.Context, args []string, at func(aptStatus)) (string, error) {
	full := append(append([]string{args[0]}, aptOptions...), args[1:]...)
	return w.host.Run(ctx, Command{Args: full, Env: aptEnv, Status: func(line string) {
		if status, ok := parseAptStatus(line); ok {
			at(status)
		}
	}})
}

// updatePackages fetches apt's lists. Nothing makes apt wait for another one's lock on these, so this does.
func updatePackages(ctx context.Context, w *work) (change, error) {
	err := lxd.Poll(ctx, "apt's lists are free", func(ctx context.Context) (bool, string, error) {
		_, err := w.apt(ctx, aptUpdate(), func(s aptStatus) { w.task.At(s.fraction, s.doing) })
		if aptLocked.MatchString(printed(err)) {
			w.task.At(0, "waiting for another apt")
			return false, lastLines(printed(err), 1), nil
		}
		return true, "", err
	})
	return change{Changed: []string{"fetched apt's lists of packages"}}, err
}

// installPackages installs packages. What an interrupted run left half done is finished first, and lists that are out
// of date are fetched anew.
func installPackages(names []string) func(context.Context, *work) (change, error) {
	return func(ctx context.Context, w *work) (change, error) {
		var done change
		add := func(output string) {
			installed, effects := aptChanges(output, names)
			done.Changed = append(done.Changed, installed...)
			done.SideEffects = append(done.SideEffects, effects...)
		}
		install := func() error {
			out, err := w.apt(ctx, aptInstall(names), func(s aptStatus) {
				fraction := s.fraction / 2 // fetching and installing count half each
				if s.installing {
					fraction += 0.5
				}
				w.task.At(fraction, s.doing)
			})
			add(out)
			return err
		}

		err := install()
		if aptInterrupted.MatchString(printed(err)) {
			out, configureErr := w.host.Run(ctx, Command{Args: dpkgConfigure, Env: aptEnv})
			add(out)
			done.SideEffects = append(done.SideEffects, "finished what an interrupted dpkg had begun")
			if configureErr != nil {
				return done, configureErr
			}
			err = install()
		}
		if aptStale.MatchString(printed(err)) {
			updated, updateErr := updatePackages(ctx, w)
			done.Changed = append(done.Changed, updated.Changed...)
			if updateErr != nil {
				return done, errors.Join(err, updateErr)
			}
			err = install()
		}
		return done, err
	}
}
