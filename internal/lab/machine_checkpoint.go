// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"fmt"
	"maps"

	"github.com/canonical/lxd/shared"
)

// Keys of a virtual machine whose memory can be captured: that it is one, and how much room there is for the memory.
const (
	keyStateful  = "migration.stateful"
	keyStateSize = "size.state"
)

const (
	gibibyte = 1 << 30
	mebibyte = 1 << 20

	// defaultVMMemory and defaultVMDisk are what LXD gives a virtual machine that asks for nothing, in bytes.
	defaultVMMemory = gibibyte
	defaultVMDisk   = 10 * gibibyte
	// stateReserve is room, in bytes, for what is not memory: the state of devices, the firmware's variables, the agent, and
	// the file system that holds them.
	stateReserve = 256 * mebibyte
)

// stateSize is the room for the memory of a virtual machine on a pool of a driver, in LXD's form.
//
// LXD 5 starts no machine whose room is less than its memory. The room must be more: memory that does not compress takes
// as much as it is, and does not lie there alone. On btrfs it is a quota on the memory and the disk together, in which data
// that was overwritten counts until the last of its extent is; LXD's advice is twice the disk.
func stateSize(driver, memory, disk string) string {
	bytes := bytesOf(memory)
	if bytes == 0 {
		bytes = defaultVMMemory
	}
	room := bytes + bytes/8 + stateReserve
	if driver == "btrfs" {
		size := bytesOf(disk)
		if size == 0 {
			size = defaultVMDisk
		}
		room += 2 * size
	}
	return fmt.Sprintf("%dMiB", (room+mebibyte-1)/mebibyte)
}

// fitState gives the root disk among a machine's own devices the room that its memory takes, if that is to be captured.
// More room than that is left as it is.
func (l *Lab) fitState(ctx context.Context, kind string, config map[string]string, devices map[string]map[string]string) error {
	if kind != TypeVirtualMachine || !shared.IsTrue(config[keyStateful]) {
		return nil
	}
	for name, device := range devices {
		if !isRoot(device) {
			continue
		}
		pool, _, err := l.daemon.Pool(ctx, device["pool"])
		if err != nil {
			return err
		}
		size := stateSize(pool.Driver, config["limits.memory"], device["size"])
		if bytesOf(device[keyStateSize]) < bytesOf(size) {
			device = maps.Clone(device)
			device[keyStateSize] = size
			devices[name] = device
		}
	}
	return nil
}
