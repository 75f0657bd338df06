// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
)

// passed are the variables that a run as root needs, and that sudo takes away.
var passed = []string{
	"LAB_ADDRESS", "LXD_SOCKET", "LXD_DIR", "INCUS_SOCKET", "INCUS_DIR",
	"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
}

// elevatedGrace is what a run by root may take to end when it is told to.
const elevatedGrace = 30 * time.Second

func (b *bootstrapping) prepare(ctx context.Context) (*bootstrap.Outcome, error) {
	return bootstrap.Run(ctx, bootstrap.System{UserAgent: b.userAgent()}, b.options())
}

// elevate does what is missing in a run by root, through sudo.
func (b *bootstrapping) elevate(ctx context.Context, needed *bootstrap.NeedsRootError) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args := append([]string{self, "bootstrap"}, b.flags.arguments()...)
	sudo, err := exec.LookPath("sudo")
	if err != nil {
		user, _ := bootstrap.System{}.Invoker() // without a name the command is right for root
		if user.User != "" && b.flags.user == "" {
			args = append(args, "--user", user.User)
		}
		return fmt.Errorf("%w. There is no sudo here; run this with root's password:\n  su -c %s", needed, bootstrap.Quote(bootstrap.Command{Args: args}.String()))
	}
	options := []string{"--"}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		options = []string{"--non-interactive", "--"}
	}
	for _, name := range passed {
		if value, ok := os.LookupEnv(name); ok {
			options = append(options, name+"="+value)
		}
	}
	say(b.messages, "%v; asking sudo for it\n", needed)
	cmd := exec.CommandContext(ctx, sudo, append(append(options, args...), "--elevated")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, b.messages, b.messages
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // sudo passes it on
	cmd.WaitDelay = elevatedGrace
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted while root was preparing the host: %w", ctx.Err())
		}
		return fmt.Errorf("%w. It was tried through sudo (%w). If sudo needs a password, run this in a terminal:\n  sudo %s", needed, err, bootstrap.Command{Args: args})
	}
	return nil
}

// arguments gives the flags again, for another run.
func (f bootstrapFlags) arguments() []string {
	var args []string
	if f.check {
		args = append(args, "--check")
	}
	if f.packagesOnly {
		args = append(args, "--packages-only")
	}
	if f.user != "" {
		args = append(args, "--user", f.user)
	}
	if f.receipt != bootstrap.DefaultReceipt {
		args = append(args, "--receipt", f.receipt)
	}
	if f.timeout != defaultTimeout {
		args = append(args, "--timeout", f.timeout.String())
	}
	return args
}

// enterGroup runs this program again in the daemon's group, which the session does not have yet.
func (b *bootstrapping) enterGroup(needed *bootstrap.NeedsGroupError) error {
	if b.flags.inGroup {
		return fmt.Errorf("%w, and `sg %s` did not help: log out and in again", needed, needed.Group)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args := append([]string{self, "bootstrap"}, b.flags.arguments()...)
	args = append(args, "--in-group", "--")
	args = append(args, b.command...)
	say(b.messages, "%v: going on as a member of it\n", needed)
	err = replaceProcess([]string{"sg", needed.Group, "-c", "exec " + bootstrap.Command{Args: args}.String()})
	return fmt.Errorf("%w: log out and in again: %w", needed, err)
}

// replaceProcess becomes another program. It returns only if that cannot be.
func replaceProcess(command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return fmt.Errorf("run %s: %w", strings.Join(command, " "), err)
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, command, os.Environ()))
}
