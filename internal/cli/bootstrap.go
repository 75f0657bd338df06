// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
)

// defaultTimeout is enough for a slow network; a healthy one needs a minute or two.
const defaultTimeout = 30 * time.Minute

const bootstrapLong = `Make this host capable of carrying a lab: install LXD, btrfs-progs and the other programs that LXD needs, start the
daemon, give the invoking user access to it, and prove by doing it that storage copies on write.

It first says what it found and what it is going to do, and takes a note of everything that it changed in a receipt.
Where nothing is missing it changes nothing. COMMAND, if there is one, is run afterwards with access to the daemon, and
its exit code is the result.

Exit codes: 0 the host is adequate; 3 something is missing; 1 it could not be done or found out.

LXD comes from the distribution's package on Debian 12 and 13, which is tested. On Ubuntu it is the snap, which is not
tested. LXD_DIR, LXD_SOCKET and LAB_ADDRESS name another daemon than the host's own.`

// bootstrapFlags are the flags of the subcommand.
type bootstrapFlags struct {
	check, packagesOnly bool
	user, receipt       string
	timeout             time.Duration
	// elevated says that this is a run by root for one by the user, which says and proves everything itself.
	elevated bool
	// inGroup says that this process was put into the daemon's group.
	inGroup bool
}

func newBootstrap(version string) *cobra.Command {
	var flags bootstrapFlags
	cmd := &cobra.Command{
		Use:   "bootstrap [flags] [-- COMMAND ARGUMENT...]",
		Short: "Make this host capable of carrying a lab",
		Long:  bootstrapLong,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
				return fmt.Errorf("unexpected argument %q: the command to run goes after --", args[0])
			case len(args) > 0 && (flags.check || flags.packagesOnly):
				return errors.New("a command is run only when the host was prepared: give either it, or --check or --packages-only")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.timeout)
			defer cancel()
			b := &bootstrapping{version: version, flags: flags, command: args, out: cmd.OutOrStdout(), messages: cmd.ErrOrStderr()}
			return b.run(ctx)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.check, "check", false, "only say what is missing, and change nothing")
	f.BoolVar(&flags.packagesOnly, "packages-only", false, "only install packages; start no daemon and need none")
	f.StringVar(&flags.user, "user", "", "user who gets access to the daemon (default: the invoking user)")
	f.StringVar(&flags.receipt, "receipt", bootstrap.DefaultReceipt, "file that takes note of what was changed, a line of JSON for each step")
	f.DurationVar(&flags.timeout, "timeout", defaultTimeout, "how long all of it may take, without COMMAND")
	f.BoolVar(&flags.elevated, "elevated", false, "")
	f.BoolVar(&flags.inGroup, "in-group", false, "")
	for _, hidden := range []string{"elevated", "in-group"} {
		_ = f.MarkHidden(hidden) // fails only for a flag that does not exist
	}
	return cmd
}

// bootstrapping is one run of the subcommand.
type bootstrapping struct {
	version string
	flags   bootstrapFlags
	command []string
	// out is for what a person asked for, messages for everything else. With a command all goes to messages: the
	// output is the command's.
	out, messages io.Writer
}

func (b *bootstrapping) userAgent() string { return "terraform-provider-lab/" + b.version }

// text is where a person reads what is found and done.
func (b *bootstrapping) text() io.Writer {
	switch {
	case b.flags.elevated:
		return io.Discard
	case len(b.command) > 0:
		return b.messages
	}
	return b.out
}

func (b *bootstrapping) options() bootstrap.Options {
	o := bootstrap.Options{
		Check: b.flags.check, PackagesOnly: b.flags.packagesOnly, User: b.flags.user, Address: os.Getenv("LAB_ADDRESS"),
		Receipt: b.flags.receipt, Prove: b.prove, Out: b.text(), Progress: newProgress(b.messages),
	}
	if b.flags.elevated {
		o.Prove = nil // the user's own run proves that the user can
	}
	return o
}

// run prepares the host, as root where that is needed and possible, and runs the command.
func (b *bootstrapping) run(ctx context.Context) error {
	outcome, err := b.prepare(ctx)
	if needsRoot, ok := errors.AsType[*bootstrap.NeedsRootError](err); ok {
		if err := b.elevate(ctx, needsRoot); err != nil {
			return err
		}
		outcome, err = b.prepare(ctx)
	}
	if needsGroup, ok := errors.AsType[*bootstrap.NeedsGroupError](err); ok {
		return b.enterGroup(needsGroup)
	}
	if err != nil {
		return err
	}
	b.conclude(outcome)
	if !outcome.Adequate() {
		return exitError(exitMissing)
	}
	if len(b.command) > 0 {
		return replaceProcess(b.command)
	}
	return nil
}

// conclude tells how it went.
func (b *bootstrapping) conclude(outcome *bootstrap.Outcome) {
	out := b.text()
	if len(outcome.Done) > 0 {
		say(out, "what was changed is noted in %s\n", b.flags.receipt)
	}
	switch verdict := outcome.Verdict; {
	case b.flags.check && outcome.Adequate():
		say(out, "nothing is missing; only a run without --check proves that it works\n")
	case b.flags.check:
		say(out, "nothing was changed; run without --check to do it\n")
	case verdict == nil:
	default:
		say(out, "%s\n", verdict.Summary)
		for _, line := range verdict.Evidence {
			say(out, "  - %s\n", line)
		}
		if verdict.Remedy != "" {
			say(out, "What helps: %s\n", verdict.Remedy)
		}
	}
}

// say writes to a person. Work does not fail for want of a reader.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
