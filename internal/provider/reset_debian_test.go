// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// debianConfig is the scenario of four Debian machines. Without SNAPSHOTS it is what other providers have: machines.
const debianConfig = `
provider "lab" {
  address = "ADDRESS"
}

variable "run" {
  default = "0"
}

resource "lab_machine" "m" {
  for_each = toset(["a", "b", "c", "d"])
  name     = "PREFIX-${each.key}"
  image    = "IMAGE"
  pool     = "POOL"
  networks = { eth0 = { network = "NETWORK" } }
  setup    = [{ command = ["sh", "-c", "head -c 4M /dev/urandom > /root/data"] }]
  ready    = { systemd = true, address = "ipv4" }
}
`

const debianReset = `
resource "lab_snapshot" "clean" {
  for_each = lab_machine.m
  machine  = each.value.id
  name     = "clean"
}

resource "lab_reset" "r" {
  snapshots = { for key, snapshot in lab_snapshot.clean : key => snapshot.id }
  triggers  = { run = var.run }
}

output "usable_ms" {
  value = try(lab_reset.r.timings.usable_ms, 0)
}
`

// debians are four Debian machines in a state of their own.
type debians struct {
	*acctest.CLI
	tb       testing.TB
	host     *acctest.Host
	machines []string
}

func newDebians(t testing.TB, host *acctest.Host, more string) *debians {
	t.Helper()
	prefix := acctest.Name(t, "d")
	d := &debians{tb: t, host: host}
	for _, key := range []string{"a", "b", "c", "d"} {
		d.machines = append(d.machines, prefix+"-"+key)
	}
	d.CLI = acctest.NewCLI(t, fill(debianConfig+more, "ADDRESS", host.Address(), "PREFIX", prefix, "IMAGE", host.Debian(t).Fingerprint,
		"POOL", host.Pool(t), "NETWORK", host.Network(t)))
	t.Cleanup(func() { d.Destroy(t) })
	d.Run(t, "apply", "-auto-approve", "-no-color")
	return d
}

// reset applies with another trigger and gives how long that took, and how long the reset itself says that it took.
func (d *debians) reset(run int) (whole, itself time.Duration) {
	d.tb.Helper()
	start := time.Now()
	d.Run(d.tb, "apply", "-auto-approve", "-no-color", fmt.Sprintf("-var=run=%d", run))
	whole = time.Since(start)
	text := strings.TrimSpace(d.Run(d.tb, "output", "-raw", "-no-color", "usable_ms"))
	ms, err := strconv.Atoi(text[strings.LastIndexByte(text, '\n')+1:])
	if err != nil {
		d.tb.Fatalf("the reset says that it took %q", text)
	}
	return whole, time.Duration(ms) * time.Millisecond
}

// plan plans what changes nothing, and gives how long that took.
func (d *debians) plan(run int) time.Duration {
	d.tb.Helper()
	start := time.Now()
	d.Run(d.tb, "plan", "-detailed-exitcode", "-no-color", fmt.Sprintf("-var=run=%d", run))
	return time.Since(start)
}

// spoil does to a machine what a test may do.
const spoil = `rm -f /etc/hostname /usr/bin/less
head -c 20M /dev/urandom > /root/data
head -c 10M /dev/urandom > /var/lib/left
echo spoilt >> /etc/passwd
systemctl stop systemd-journald.socket systemd-journald.service 2>/dev/null
systemd-run --quiet --unit=left --remain-after-exit sleep 100000 || setsid sleep 100000 >/dev/null 2>&1 </dev/null &
sync`

// look prints what must be the same after every reset: what files hold that tests change, all other files by size and
// mode, services, the process that was left, addresses.
const look = `cd / && sha256sum /root/data /etc/passwd /etc/hostname
find etc root usr opt home srv var/lib -xdev ! -path 'var/lib/systemd/*' ! -path 'var/lib/dhcp/*' -type f -printf '%p %s %m\n' | sort | sha256sum
systemctl list-units --type=service --state=running --plain --no-legend | awk '{ print $1 }' | sort
cat /proc/[0-9]*/comm | grep -x sleep
cat /sys/class/net/eth0/address
ip -brief address show eth0 | sed 's/@[^ ]*//'`

func (d *debians) look(machine string) string {
	d.tb.Helper()
	return d.host.In(d.tb, machine, look+"; true")
}

// same looks at a machine until it is as it was, for some seconds: services settle.
func (d *debians) same(machine, want string) (got string, ok bool) {
	d.tb.Helper()
	for range 5 {
		if got = d.look(machine); got == want {
			return got, true
		}
		time.Sleep(time.Second)
	}
	return got, false
}

// settledSpace is how much of the pool is used when everything is written and all that was deleted is freed.
func (d *debians) settledSpace() uint64 {
	d.tb.Helper()
	pool := d.host.Pool(d.tb)
	ctx, cancel := context.WithTimeout(d.tb.Context(), 5*time.Minute)
	defer cancel()
	dir := filepath.Join(d.host.Dir, "storage-pools", pool)
	for _, args := range [][]string{{"filesystem", "sync", dir}, {"subvolume", "sync", dir}, {"filesystem", "sync", dir}} {
		command := exec.CommandContext(ctx, "btrfs", args...)
		command.WaitDelay = time.Second
		if output, err := command.CombinedOutput(); err != nil {
			d.tb.Fatalf("btrfs %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	resources, err := d.host.Client(d.tb).GetStoragePoolResources(pool)
	if err != nil {
		d.tb.Fatal(err)
	}
	return resources.Space.Used
}
