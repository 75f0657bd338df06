// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

// The types of machines, in LXD's words.
const (
	TypeContainer      = "container"
	TypeVirtualMachine = "virtual-machine"
)

// MachineSpec is a machine as it should be.
type MachineSpec struct {
	Name, Type, Description string
	// Image is the fingerprint of the image that the machine is made from.
	Image string
	// Pool is the storage pool of its root disk.
	Pool string
	// CPUs is the number of processors it may use; 0 means all.
	CPUs int64
	// Memory and Disk are limits in LXD's form; empty means none.
	Memory, Disk string
	// Networks holds its network interfaces by name ("eth0").
	Networks map[string]NIC
	// Devices holds further devices in LXD's form.
	Devices  map[string]map[string]string
	Profiles []string
	Config   map[string]string
	// CloudInit is what cloud-init is to do at the first boot.
	CloudInit CloudInit
	// Files are put into the machine before its first start, by path.
	Files map[string]File
	// Setup are the commands that prepare the machine when it has booted for the first time, in order.
	Setup []Setup
	// Ready is when it counts as usable.
	Ready Ready
	// Running says whether it is to be running.
	Running bool
	// Checkpointable makes a virtual machine one whose memory can be captured.
	Checkpointable bool
	// AllowRestart allows a change that needs one to restart the machine.
	AllowRestart bool
	// Target is the cluster member to put it on; empty leaves it to the daemon.
	Target string
}

// NIC is a network interface of a machine.
type NIC struct {
	// Network is the managed network that it is on.
	Network string
	// IPv4Address and IPv6Address are addresses that the network's DHCP reserves for it; empty means any.
	IPv4Address, IPv6Address string
	// HWAddr is its MAC address; empty means one of the daemon's choice.
	HWAddr string
}

// CloudInit is the data that cloud-init reads.
type CloudInit struct{ UserData, NetworkConfig, VendorData string }

// File is a file to put into a machine.
type File struct {
	// Content is what it holds; Base64 says that this is base64, for what is not text.
	Content string
	Base64  bool
	// Source is a file of this host to copy in the place of Content.
	Source string
	// Mode is its permissions, in octal; empty means 0644.
	Mode string
	// UID and GID own it.
	UID, GID int64
}

// bytes gives the content of a file.
func (f File) bytes() ([]byte, error) {
	switch {
	case f.Source != "":
		return os.ReadFile(f.Source)
	case f.Base64:
		return base64.StdEncoding.DecodeString(f.Content)
	default:
		return []byte(f.Content), nil
	}
}

// Setup is a command that prepares a machine.
type Setup struct {
	Command     []string
	Environment map[string]string
	// Directory is where it runs; empty means root's home.
	Directory string
}

// Machine is a machine as the daemon has it.
type Machine struct {
	ID MachineID
	// MachineSpec holds what the daemon knows of it: not what it was prepared with, nor when it is usable.
	MachineSpec
	// Source is the id of what a branch was made from; empty for what is no branch.
	Source string
	// Location is the cluster member that it is on; "none" on a daemon that stands alone.
	Location string
	// Addresses are the global ones, while it runs.
	Addresses Addresses
	// ReadyRecorded says that the ready condition was read from the machine, where it is recorded.
	ReadyRecorded bool
}

// MachineTimings are moments of making a machine, in milliseconds from the start of the work, and the length of the
// setup. A moment that was not reached is 0.
type MachineTimings struct {
	// CreateMS is when the machine existed.
	CreateMS int64
	// LaunchMS is when the daemon's call to start it returned.
	LaunchMS int64
	// UsableMS is when its ready condition held.
	UsableMS int64
	// SetupMS is how long the setup commands took together.
	SetupMS int64
}

// SetupError is a setup command that failed, with what it printed.
type SetupError struct {
	// Index is its place in the list, from 0.
	Index    int
	Command  []string
	ExitCode int
	// Stdout and Stderr are the end of what it printed.
	Stdout, Stderr string
}

func (e *SetupError) Error() string {
	text := fmt.Sprintf("setup command %d, %q, returned %d", e.Index+1, e.Command, e.ExitCode)
	if e.Stdout != "" {
		text += "\n\nIts output:\n" + strings.TrimRight(e.Stdout, "\n")
	}
	if e.Stderr != "" {
		text += "\n\nIts error output:\n" + strings.TrimRight(e.Stderr, "\n")
	}
	return text
}
