// SPDX-License-Identifier: MPL-2.0

// Package cli is the program's command line: the plugin server that Terraform starts, and the subcommands for people.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/spf13/cobra"
)

// Exit codes of the subcommands.
const (
	exitOK      = 0
	exitFailure = 1
	// exitMissing says that the host lacks something.
	exitMissing = 3
)

// exitError ends the program with a code, and without a message, since all is said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Execute runs the command line of this process and returns its exit code. The provider is what is served to Terraform
// when there are no arguments.
func Execute(version string, newProvider func() provider.Provider) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once

	err := newRoot(version, newProvider).ExecuteContext(ctx)
	code, isCode := errors.AsType[exitError](err)
	switch {
	case err == nil:
		return exitOK
	case isCode:
		return int(code)
	default:
		fmt.Fprintln(os.Stderr, "Error:", err)
		return exitFailure
	}
}

func newRoot(version string, newProvider func() provider.Provider) *cobra.Command {
	var underDebugger bool
	root := &cobra.Command{
		Use:   "terraform-provider-lab",
		Short: "Throw-away laboratories on LXD",
		Long: "Terraform provider for throw-away laboratories on LXD. Without arguments this is the plugin that Terraform starts;\n" +
			"the subcommands are for people.",
		Version:       version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Terraform tells its plugins to end by a call. The interrupt that a terminal sends to all of them must not.
			return serve(context.WithoutCancel(cmd.Context()), newProvider, underDebugger)
		},
	}
	root.Flags().BoolVar(&underDebugger, "debug", false, "serve in a way that a debugger can be attached to")
	root.AddCommand(newBootstrap(version), newCapability(version), newBench(version))
	return root
}
