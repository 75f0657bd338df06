// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cowlab/terraform-provider-lab/internal/bench"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const benchLong = `Measure what a lab costs on a host, in one or both of two campaigns (both, unless one is named):

  provisioning   how long it takes to get to a correct result on a new machine: prepared afresh, from an exported image,
                 as a branch of a prepared machine, and on that machine itself; with --type virtual-machine also from
                 that machine's memory: back at a checkpoint, and as a live branch of it
  inner-loop     storage drivers side by side in what a test suite repeats all day: launch, snapshot, restore; the driver
                 "dir" is among them, which no lab uses

Each is run on pools and machines of its own, which it removes again, also when it is interrupted. Every trial is kept as
a row in --out, failures too; the report, which goes there and to the output, is made of these rows alone. Run again with
the same --out, a campaign that was interrupted goes on where it stopped.

The image must have a shell, awk and gzip; it is either one that the daemon has (--image) or in files (--metadata,
--rootfs), as examples/images/debian.sh builds. For figures that mean something, keep the host idle meanwhile.

The daemon is the local one, or the one that --address or the environment names, as for the capability subcommand.

Exit codes: 0 all trials gave what they had to; 1 some did not, or the campaign could not be run to its end.`

// defaultTrials give a p95 that is one of the observations.
const defaultTrials = 20

// benchFlags are the flags of the subcommand.
type benchFlags struct {
	image, metadata, rootfs string
	out, driver, kind       string
	drivers                 []string
	trials                  int
	daemon                  daemonFlags
}

func newBench(version string) *cobra.Command {
	var flags benchFlags
	cmd := &cobra.Command{
		Use:       "bench [flags] [provisioning] [inner-loop]",
		Short:     "Measure what a lab costs on a host",
		Long:      benchLong,
		ValidArgs: []string{bench.ProvisioningName, bench.InnerLoopName},
		Args:      cobra.OnlyValidArgs,
		RunE: func(cmd *cobra.Command, campaigns []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			config, err := flags.daemon.config(os.Getenv)
			if err != nil {
				return err
			}
			config.UserAgent = "terraform-provider-lab/" + version
			if len(campaigns) == 0 {
				campaigns = cmd.ValidArgs
			}
			b := &benching{version: version, flags: flags, cmd: cmd}
			return b.run(cmd.Context(), config, campaigns)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.image, "image", "", "image of the machines: a fingerprint or an alias that the daemon has")
	f.StringVar(&flags.metadata, "metadata", "", "or its file: a unified tarball, or the metadata of an image whose root file system is in --rootfs")
	f.StringVar(&flags.rootfs, "rootfs", "", "root file system of the image in --metadata")
	f.StringVar(&flags.out, "out", "bench-results", "directory for rows and reports, one below it for each campaign")
	f.IntVar(&flags.trials, "trials", defaultTrials, "how many times each path or driver is tried, besides the warm-up")
	f.StringVar(&flags.driver, "driver", capability.DefaultDriver, "storage driver of the provisioning campaign")
	f.StringVar(&flags.kind, "type", lab.TypeContainer, "type of the provisioning campaign's machines: container or virtual-machine")
	f.StringSliceVar(&flags.drivers, "drivers", bench.DefaultDrivers(), "storage drivers that the inner-loop campaign compares")
	flags.daemon.register(f)
	return cmd
}

// check refuses what cannot be, before anything is touched.
func (f *benchFlags) check() error {
	switch {
	case (f.image == "") == (f.metadata == ""):
		return errors.New("name the image of the machines: either by --image, or by --metadata and --rootfs; examples/images/debian.sh builds one and prints where it is")
	case f.rootfs != "" && f.metadata == "":
		return errors.New("--rootfs goes with --metadata")
	case f.trials < 1:
		return fmt.Errorf("--trials is %d: there must be one at least", f.trials)
	case f.kind != lab.TypeContainer && f.kind != lab.TypeVirtualMachine:
		return fmt.Errorf("--type is %q: it must be %s or %s", f.kind, lab.TypeContainer, lab.TypeVirtualMachine)
	case len(f.drivers) == 0:
		return errors.New("--drivers names none")
	}
	return nil
}

// benching is one run of the subcommand.
type benching struct {
	version string
	flags   benchFlags
	cmd     *cobra.Command
}

// run runs campaigns one after the other. One whose trials failed does not keep the next from being run.
func (b *benching) run(ctx context.Context, config lxd.Config, campaigns []string) error {
	daemon, err := lxd.Connect(ctx, config)
	if err != nil {
		return err
	}
	facts, err := bench.ReadFacts(ctx, daemon)
	if err != nil {
		return err
	}
	var file *lab.ImageFile
	if b.flags.metadata != "" {
		file = &lab.ImageFile{Metadata: b.flags.metadata, Rootfs: b.flags.rootfs}
	}
	ground, err := bench.NewGround(ctx, lab.New(daemon, capability.New(daemon)), b.flags.image, file)
	if err != nil {
		return err
	}
	provisioning, err := bench.NewProvisioning(ctx, ground, b.flags.driver, b.flags.kind)
	if err != nil {
		return err
	}
	var errs []error
	for _, campaign := range []bench.Campaign{
		provisioning,
		&bench.InnerLoop{Ground: ground, Drivers: b.flags.drivers},
	} {
		if slices.Contains(campaigns, campaign.Name()) && ctx.Err() == nil {
			errs = append(errs, b.measure(ctx, campaign, facts))
		}
	}
	return errors.Join(errs...)
}

// measure runs a campaign, and shows its report.
func (b *benching) measure(ctx context.Context, campaign bench.Campaign, facts bench.Facts) error {
	dir := filepath.Join(b.flags.out, campaign.Name())
	title := campaign.Name()
	task := newProgress(b.cmd.ErrOrStderr()).Begin(strings.ToUpper(title[:1]) + title[1:])
	err := bench.Execute(ctx, campaign, bench.Options{
		Dir: dir, Trials: b.flags.trials, Version: b.version, Host: facts, Progress: task.At,
	})
	task.End(err)
	report := filepath.Join(dir, bench.ReportFile)
	if text, readErr := os.ReadFile(report); readErr == nil {
		say(b.cmd.OutOrStdout(), "%s\n", text)
		say(b.cmd.ErrOrStderr(), "The report is %s, with its plots and the raw rows beside it.\n", report)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", campaign.Name(), err)
	}
	return nil
}
