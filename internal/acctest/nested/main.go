// SPDX-License-Identifier: MPL-2.0

// Command nested runs tests of virtual machines on hosts that cannot run any: it boots an emulated Debian whose LXD can,
// tells a command how to reach it (acctest.VirtualMachines reads that), and takes it down again.
//
//	nested -- go test ./...           on the nested host
//	nested -local -- go test ./...    on daemons of this host, which run virtual machines themselves
//
// What it boots is built once by build.sh and cached, until that script changes. An emulated host now and then crashes;
// then all of it is tried once more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

func main() {
	// What the kernel does to a child at its parent's end, it does at the end of the parent's thread.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	local := flag.Bool("local", false, "only build the image of a virtual machine; daemons of this host run it")
	serial := flag.String("serial", "", "keep the nested host's serial console in `FILE` (default: in the cache)")
	flag.Parse()
	err := run(ctx, *local, *serial, flag.Args())
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(max(1, exit.ExitCode())) //nolint:gocritic // Nothing is left to be done.
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nested:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, local bool, serial string, command []string) error {
	if len(command) == 0 {
		return errors.New("give a command to run, as in: nested -- go test")
	}
	images, err := build(ctx, local)
	if err != nil {
		return err
	}
	told := acctest.VMHost{Metadata: images.file("guest.tar.gz"), Disk: images.file("guest.qcow2")}
	if local {
		return with(ctx, told, command)
	}
	if serial == "" {
		serial = images.file("serial.log")
	}
	for last := false; ; last = true {
		err := onHost(ctx, images, serial, told, command)
		if crash := (*crashError)(nil); !errors.As(err, &crash) || last || ctx.Err() != nil {
			if err != nil {
				fmt.Fprintf(os.Stderr, "nested: the serial console of the nested host is in %s\n", serial)
			}
			return err
		}
		fmt.Fprintf(os.Stderr, "nested: %v\nnested: once more from the start\n", err)
	}
}

// onHost boots a nested host, and runs the command beside it.
func onHost(ctx context.Context, images directory, serial string, told acctest.VMHost, command []string) error {
	host, err := boot(ctx, images, serial)
	if err != nil {
		return err
	}
	defer host.stop()
	host.describe(&told)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		<-host.ended
		cancel(host.crash("while the command ran"))
	}()
	err = with(ctx, told, command)
	if crash := (*crashError)(nil); errors.As(context.Cause(ctx), &crash) {
		return crash
	}
	return err
}

// with runs the command, and tells it of a host.
func with(ctx context.Context, told acctest.VMHost, command []string) error {
	dir, err := os.MkdirTemp("", "nested-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "host.json")
	if err := told.Write(file); err != nil {
		return err
	}
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Env = append(os.Environ(), acctest.VMHostVariable+"="+file)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = time.Minute // for tests to clean up
	return run.Run()
}
