// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// notYet tells a guest that is not up yet from one that will never be: only the former is asked again. A command that
// left a child behind which holds its output ([lxd.ErrUnsupported] on some daemons) would leave another each time.
func notYet(err error) bool {
	return !errors.Is(err, lxd.ErrNotFound) && !errors.Is(err, lxd.ErrUnreachable) && !errors.Is(err, lxd.ErrUnsupported)
}

// notFoundCode is what a command returns that is not there, by the shell's convention, which LXD follows.
const notFoundCode = 127

// agentAnswers is how often in a row a virtual machine must run a command to count as one that does: its agent is
// restarted in the course of a boot, and may answer just before.
const agentAnswers = 3

// waitExec waits until a command runs. That the command is not there still shows that commands run.
func waitExec(ctx context.Context, daemon *lxd.Daemon, machine string) error {
	return waitAnswers(ctx, daemon, machine, answersWanted)
}

// waitAnswers waits until a command has run as often in a row as is wanted, which is asked for when one has.
func waitAnswers(ctx context.Context, daemon *lxd.Daemon, machine string, wants func(context.Context, *lxd.Daemon, string) (int, error)) error {
	answers, wanted := 0, 0
	err := lxd.Poll(ctx, fmt.Sprintf("a command runs on machine %q", machine), func(ctx context.Context) (bool, string, error) {
		code, err := daemon.ExitCode(ctx, machine, "true")
		if err == nil && code != 0 && code != notFoundCode {
			err = fmt.Errorf("`true` returned %d", code)
		}
		if err != nil {
			answers = 0
			return stopIfDown(ctx, daemon, machine, err)
		}
		if wanted == 0 {
			if wanted, err = wants(ctx, daemon, machine); err != nil {
				return false, "", err
			}
		}
		answers++
		return answers >= wanted, fmt.Sprintf("a command ran %d times in a row, of %d", answers, wanted), nil
	})
	if err != nil && agentOff(err) {
		return fmt.Errorf("%w: its image must bring LXD's agent; without that, leave out setup and files, and give ready nothing but an address or a tcp_port", err)
	}
	return err
}

// answersWanted is how often a command must run on a machine before it counts as one on which commands run.
func answersWanted(ctx context.Context, daemon *lxd.Daemon, machine string) (int, error) {
	if !strings.Contains(daemon.Server().Environment.Driver, "qemu") {
		return 1, nil // it runs containers only: no need to ask
	}
	instance, _, err := daemon.Instance(ctx, machine)
	if err == nil && instance.Type == TypeVirtualMachine {
		return agentAnswers, nil
	}
	return 1, err
}

// agentOff says that a virtual machine's agent does not answer, in the words of LXD 5.0 or newer ones: the guest has not
// started it yet, or has none.
func agentOff(err error) bool {
	text := err.Error()
	return strings.Contains(text, "VM agent") &&
		(strings.Contains(text, "isn't currently running") || strings.Contains(text, "is not currently running"))
}

// stopIfDown ends a wait early when the machine has stopped: it will not become usable by waiting.
func stopIfDown(ctx context.Context, daemon *lxd.Daemon, machine string, execErr error) (done bool, seen string, err error) {
	if !notYet(execErr) {
		return false, "", execErr
	}
	instance, _, err := daemon.Instance(ctx, machine)
	if err != nil {
		return false, execErr.Error(), nil //nolint:nilerr // the next look shows whether it lasts
	}
	if instance.StatusCode == api.Stopped {
		if down, err := stopped(ctx, daemon, machine); err == nil && down {
			return false, "", fmt.Errorf("machine %q has stopped by itself: its init ended (%w); see `lxc info --show-log %s`", machine, execErr, machine)
		}
	}
	return false, fmt.Sprintf("machine is %s, %v", instance.Status, execErr), nil
}
