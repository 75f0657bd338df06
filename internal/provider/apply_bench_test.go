// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const someMachines = `
terraform {
  required_providers {
    lab = { source = "cowlab/lab" }
  }
}
provider "lab" {
  address = "ADDRESS"
}
resource "lab_machine" "m" {
  count    = MACHINES
  name     = "PREFIX-${count.index}"
  image    = "IMAGE"
  pool     = "POOL"
  networks = { eth0 = { network = "NETWORK" } }
  ready    = { command = READY }
}
`

// BenchmarkApplyAgainstRawClient makes four Debian machines by terraform apply, and through the raw client, up to the
// same ready condition, on a pool that is proved and has the image:
//
//	TF_ACC=1 go test -run - -bench ApplyAgainst -benchtime 1x -timeout 1h ./internal/provider
func BenchmarkApplyAgainstRawClient(b *testing.B) {
	raw := newRawMachines(b, acctest.Shared(b), 4, acctest.Shared(b).Debian(b).Fingerprint, "systemctl", "is-active", "systemd-journald")
	cli := acctest.NewCLI(b, fill(someMachines, raw.words()...))
	b.Cleanup(func() { cli.Destroy(b) })
	cli.Run(b, "apply", "-auto-approve", "-no-color") // proves the pool
	cli.Run(b, "destroy", "-auto-approve", "-no-color")
	acctest.Compare(b, func() { cli.Run(b, "apply", "-auto-approve", "-no-color") }, raw.create, func() {
		cli.Run(b, "destroy", "-auto-approve", "-no-color")
		raw.delete()
	})
}

// BenchmarkApplyOfMany makes a hundred machines, and does the same calls through the raw client. It reports the processor
// time of the provider and of the raw client for each machine, and their ratio:
//
//	TF_ACC=1 go test -run - -bench ApplyOfMany -benchtime 1x -timeout 1h ./internal/provider
func BenchmarkApplyOfMany(b *testing.B) {
	raw := newRawMachines(b, acctest.Shared(b), 100, acctest.Shared(b).Tiny(b).Fingerprint, "true")
	cli := acctest.NewCLI(b, fill(someMachines, raw.words()...))
	pid := attach(b, cli)
	b.Cleanup(func() { cli.Destroy(b) })
	cli.Run(b, "apply", "-auto-approve", "-no-color", "-target=lab_machine.m[0]") // proves the pool
	before := processorTime(b, pid)
	for b.Loop() {
		cli.Run(b, "apply", "-auto-approve", "-no-color")
	}
	ours := processorTime(b, pid) - before
	cli.Run(b, "destroy", "-auto-approve", "-no-color")
	before = processorTime(b, os.Getpid())
	raw.create()
	theirs := processorTime(b, os.Getpid()) - before
	raw.delete()
	b.ReportMetric(ours.Seconds()*1000/99, "ours-cpu-ms/machine")
	b.ReportMetric(theirs.Seconds()*1000/100, "raw-cpu-ms/machine")
	b.ReportMetric(ours.Seconds()/99/(theirs.Seconds()/100), "ours/raw")
}

// attach starts the provider by itself and has terraform use that process.
func attach(b *testing.B, cli *acctest.CLI) (pid int) {
	b.Helper()
	command := cli.Provider(b.Context(), "--debug")
	output, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "TF_REATTACH_PROVIDERS='"); ok {
			cli.Setenv("TF_REATTACH_PROVIDERS", strings.TrimSuffix(value, "'"))
			return command.Process.Pid
		}
	}
	b.Fatalf("the provider did not say how to attach to it: %v", lines.Err())
	return 0
}

// ticksPerSecond is the unit of processor times in /proc, the same on all of Linux.
const ticksPerSecond = 100

// processorTime is what a process has used so far.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	// The fields after the program's name, which is in brackets: the 12th and 13th are user and system time.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	if userErr != nil || systemErr != nil {
		b.Fatalf("unable to read %q", stat)
	}
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// rawMachines makes machines as a small program would, through the official client.
type rawMachines struct {
	b      *testing.B
	host   *acctest.Host
	client lxdclient.InstanceServer
	prefix string
	image  string
	count  int
	ready  []string
}

func newRawMachines(b *testing.B, host *acctest.Host, count int, image string, ready ...string) *rawMachines {
	b.Helper()
	return &rawMachines{b: b, host: host, client: host.Client(b), prefix: acctest.Name(b, "m"), count: count, image: image, ready: ready}
}

func (r *rawMachines) words() []string {
	return []string{
		"ADDRESS", r.host.Address(), "MACHINES", strconv.Itoa(r.count), "PREFIX", r.prefix, "IMAGE", r.image,
		"POOL", r.host.Pool(r.b), "NETWORK", r.host.Network(r.b),
		"READY", `["` + strings.Join(r.ready, `", "`) + `"]`,
	}
}

// parallelism is what terraform does at once by default.
const parallelism = 10

func (r *rawMachines) each(work func(name string) error) {
	var all sync.WaitGroup
	slots := make(chan struct{}, parallelism)
	for index := range r.count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := work(fmt.Sprintf("%s-raw-%d", r.prefix, index)); err != nil {
				r.b.Error(err)
			}
		})
	}
	all.Wait()
}

func (r *rawMachines) create() {
	r.each(func(name string) error {
		post := api.InstancesPost{Name: name, Source: api.InstanceSource{Type: "image", Fingerprint: r.image}}
		post.Profiles = []string{}
		post.Devices = map[string]map[string]string{
			"root": {"type": "disk", "path": "/", "pool": r.host.Pool(r.b)},
			"eth0": {"type": "nic", "name": "eth0", "network": r.host.Network(r.b)},
		}
		if err := done(r.client.CreateInstance(post)); err != nil {
			return err
		}
		if err := done(r.client.UpdateInstanceState(name, api.InstanceStatePut{Action: "start", Timeout: -1}, "")); err != nil {
			return err
		}
		for r.b.Context().Err() == nil {
			operation, err := r.client.ExecInstance(name, api.InstanceExecPost{Command: r.ready}, nil)
			if err == nil && operation.Wait() == nil && operation.Get().Metadata["return"] == float64(0) {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return context.Cause(r.b.Context())
	})
}

func (r *rawMachines) delete() {
	r.each(func(name string) error {
		if err := done(r.client.UpdateInstanceState(name, api.InstanceStatePut{Action: "stop", Force: true, Timeout: -1}, "")); err != nil {
			if api.StatusErrorCheck(err, 404) {
				return nil
			}
			return err
		}
		return done(r.client.DeleteInstance(name))
	})
}

func done(operation lxdclient.Operation, err error) error {
	if err != nil {
		return err
	}
	return operation.Wait()
}
