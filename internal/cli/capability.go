// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// assessTimeout is enough to probe several pools of a busy host; the facts alone take well under a second.
const assessTimeout = 10 * time.Minute

const capabilityLong = `Tell what a host can do, as data.lab_capability does: whether a lab can rely on it, and what stands in the way.

Without --prove it only asks the daemon and changes nothing. With it each pool that should copy on write, or the one
that --pool names, is put to the proof with small throw-away objects, unless a proof that still holds is recorded on it;
and a throw-away container is started and runs a command. With --prove-virtual-machines a throw-away virtual machine is
started as well, as far as its firmware.

The daemon is the local one, or the one that --address or the environment names: LAB_ADDRESS, LAB_PROJECT,
LAB_CLIENT_CERTIFICATE, LAB_CLIENT_KEY, LAB_SERVER_FINGERPRINT and LAB_TRUST_TOKEN, as for the provider. They count only
without --address. The local daemon is where LXD_SOCKET or LXD_DIR says, or in its usual place.

Exit codes: 0 the host is adequate; 3 it is not (one without a daemon that answers is not), or lacks what --require names;
1 it could not be found out.`

// capabilityFlags are the flags of the subcommand.
type capabilityFlags struct {
	json, prove bool
	proveVMs    bool
	pool        string
	require     []string
	timeout     time.Duration
	daemon      daemonFlags
}

func newCapability(version string) *cobra.Command {
	var flags capabilityFlags
	cmd := &cobra.Command{
		Use:   "capability",
		Short: "Tell what a host can do",
		Long:  capabilityLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := flags.daemon.config(os.Getenv)
			if err != nil {
				return err
			}
			config.UserAgent = "terraform-provider-lab/" + version
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.timeout)
			defer cancel()
			report, err := assess(ctx, config, flags.request())
			if err != nil {
				return err
			}
			show := showReport
			if flags.json {
				show = showJSON
			}
			if err := show(cmd.OutOrStdout(), report); err != nil {
				return fmt.Errorf("write the report: %w", err)
			}
			return verdictOf(report)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.json, "json", false, "write the report as JSON")
	f.BoolVar(&flags.prove, "prove", false, "prove storage pools and containers by doing it, with throw-away objects")
	f.BoolVar(&flags.proveVMs, "prove-virtual-machines", false, "prove virtual machines by starting one that is thrown away")
	f.StringVar(&flags.pool, "pool", "", "storage pool that the verdict is about (default: whether the host can carry a lab at all)")
	f.StringSliceVar(&flags.require, "require", nil, "capabilities that it must have besides: "+strings.Join(requirable(), ", "))
	f.DurationVar(&flags.timeout, "timeout", assessTimeout, "how long all of it may take")
	flags.daemon.register(f)
	return cmd
}

func requirable() []string {
	var names []string
	for _, c := range capability.Requirable() {
		names = append(names, string(c))
	}
	return names
}

// request is what to assess.
func (f *capabilityFlags) request() capability.Request {
	request := capability.Request{Pool: f.pool}
	if f.prove {
		request.Prove = append(request.Prove, capability.CopyOnWrite, string(capability.Containers))
	}
	if f.proveVMs {
		request.Prove = append(request.Prove, string(capability.VirtualMachines))
	}
	for _, name := range f.require {
		request.Require = append(request.Require, capability.Capability(name))
	}
	return request
}

// assess reports on a host. One that cannot be talked to is a report too; what is left as errors are a request that
// cannot be answered, an interrupt and an expiry.
func assess(ctx context.Context, config lxd.Config, request capability.Request) (*capability.Report, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	daemon, err := lxd.Connect(ctx, config)
	var report *capability.Report
	if err == nil {
		report, err = capability.New(daemon).Assess(ctx, request)
	}
	switch {
	case err == nil:
		return report, nil
	case ctx.Err() != nil:
		return nil, err
	default:
		return capability.Unassessed(err), nil
	}
}

// verdictOf turns a report into an exit code.
func verdictOf(report *capability.Report) error {
	switch {
	case report.Adequate:
		return nil
	case report.Undecided():
		return exitError(exitFailure)
	default:
		return exitError(exitMissing)
	}
}
