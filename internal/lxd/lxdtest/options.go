// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
)

//go:embed extensions.txt
var extensions string // those of LXD 5.0.2, one a line

// settings are what a test may choose about the daemon.
type settings struct {
	environment api.ServerEnvironment
	extensions  []string
	resources   api.Resources
	warnings    []api.Warning
	listed      []string // drivers that the daemon names
	usable      []string // drivers whose tools are there
	disk        Disk
	waitErrors  bool
	async       bool
	latency     func(Work) time.Duration
	exec        func(context.Context, Exec) ExecResult

	memoryFaults func(verb string) string
	deaf         bool
	memory       time.Duration // how long an ended operation is remembered
}

// Option is a choice about the daemon.
type Option func(*settings)

// Disk is the host's disk, in bytes: what dir pools and the files of loop pools lie on.
type Disk struct {
	Total, Used int64
}

// Work is something that takes a real daemon time.
type Work struct {
	// Verb is "snapshot", "copy", "restore", "delete", "unpack", "write", "start", "stop", "download" or "publish".
	Verb string
	// Driver is that of the pool.
	Driver string
	// Bytes is what has to be read and written; 0 where the driver shares data instead.
	Bytes int64
}

// Exec is a command that a client runs in an instance.
type Exec struct {
	Project, Instance string
	api.InstanceExecPost
}

// ExecResult is how a command ended. Code 127 makes the operation fail, as that of a command that is not there does.
type ExecResult struct {
	Code           int
	Stdout, Stderr string
	// Err is what the daemon says in the place of running the command.
	Err string
}

const (
	gibibyte = 1 << 30

	// operationMemory is how long LXD remembers an operation that has ended.
	operationMemory = 5 * time.Second
)

// defaults are a host with Debian 12's LXD, which offers dir and btrfs and runs containers only.
func defaults() settings {
	var id [32]byte
	rand.Read(id[:])
	s := settings{
		environment: api.ServerEnvironment{
			Architectures: []string{"x86_64"}, Driver: "lxc", DriverVersion: "5.0.2", Firewall: "nftables",
			CertificateFingerprint: hex.EncodeToString(id[:]),
			Kernel:                 "Linux", KernelArchitecture: "x86_64", KernelVersion: "6.1.0",
			OSName: "Debian GNU/Linux", OSVersion: "12", Project: "default", Server: "lxd",
			ServerEventMode: "full-mesh", ServerName: "memory", ServerPid: 1, ServerVersion: "5.0.2",
		},
		extensions: strings.Fields(extensions),
		disk:       Disk{Total: 100 * gibibyte, Used: 20 * gibibyte},
		exec:       func(context.Context, Exec) ExecResult { return ExecResult{} },
		memory:     operationMemory,
		warnings: []api.Warning{{
			UUID: "00000000-0000-0000-0000-000000000001", Status: "new", Severity: "low", Count: 1, Location: "none",
			Type: "Instance type not operational", LastMessage: "vhost_vsock kernel module not loaded",
		}},
	}
	s.resources.CPU = api.ResourcesCPU{Architecture: "x86_64", Total: 4}
	s.resources.Memory = api.ResourcesMemory{Total: 16 * gibibyte, Used: 2 * gibibyte}
	WithDrivers("dir", "btrfs")(&s)
	return s
}

// WithDrivers makes the daemon offer exactly these storage drivers, and able to use them.
func WithDrivers(names ...string) Option {
	return func(s *settings) { s.listed, s.usable = names, slices.Clone(names) }
}

// WithUsableDrivers makes drivers usable that the daemon need not name: their tools came after it had started. Those
// that it names but that are not given here do not work.
func WithUsableDrivers(names ...string) Option {
	return func(s *settings) { s.usable = names }
}

// WithEnvironment changes what the daemon says of itself: names, versions, kernel.
func WithEnvironment(change func(*api.ServerEnvironment)) Option {
	return func(s *settings) { change(&s.environment) }
}

// WithExtensions adds API extensions.
func WithExtensions(names ...string) Option {
	return func(s *settings) { s.extensions = append(slices.Clone(s.extensions), names...) }
}

// WithoutExtensions removes API extensions.
func WithoutExtensions(names ...string) Option {
	return func(s *settings) {
		s.extensions = slices.DeleteFunc(slices.Clone(s.extensions), func(e string) bool { return slices.Contains(names, e) })
	}
}

// WithAsyncChanges makes the daemon answer changes of pools, networks and profiles with an operation, as LXD 6.8 does.
func WithAsyncChanges() Option {
	return func(s *settings) {
		s.async = true
		WithExtensions("storage_and_profile_operations", "storage_and_network_operations")(s)
	}
}

// WithWaitErrors makes the daemon answer a wait for an operation that failed with the error in the place of the operation,
// under the status of a success, as newer daemons do.
func WithWaitErrors() Option { return func(s *settings) { s.waitErrors = true } }

// WithVirtualMachines makes virtual machines operational.
func WithVirtualMachines() Option {
	return func(s *settings) {
		s.environment.Driver, s.environment.DriverVersion = "lxc | qemu", "5.0.2 | 7.2.0"
		s.warnings = nil
	}
}

// WithResources changes the host's processors and memory.
func WithResources(change func(*api.Resources)) Option {
	return func(s *settings) { change(&s.resources) }
}

// WithDisk gives the host another disk.
func WithDisk(d Disk) Option { return func(s *settings) { s.disk = d } }

// WithLatency makes work take time. Without it everything is done at once.
func WithLatency(f func(Work) time.Duration) Option { return func(s *settings) { s.latency = f } }

// WithExec decides how commands in instances end. The context ends when the client kills the command. Without it every
// command succeeds and prints nothing.
func WithExec(f func(context.Context, Exec) ExecResult) Option {
	return func(s *settings) { s.exec = f }
}

// WithOperationMemory changes how long an operation that has ended can be asked for: five seconds by default.
func WithOperationMemory(d time.Duration) Option { return func(s *settings) { s.memory = d } }
