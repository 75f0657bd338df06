// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// A checkpoint brings back the memory of a virtual machine: the guest goes on where it was, without a boot. The daemon
// resumes it with the configuration of the checkpoint, which is the only one that fits its memory; what was declared since
// and depends on the machine's shape could only come with a boot, and so is refused beforehand.

// reshaped lists how a machine differs now from what it was at a checkpoint, in what its memory depends on.
func reshaped(now *api.Instance, then *api.InstanceSnapshot) []string {
	differences := []string{}
	for key := range union(now.ExpandedConfig, then.ExpandedConfig) {
		old, current := then.ExpandedConfig[key], now.ExpandedConfig[key]
		if !liveOn(TypeVirtualMachine, key) && !internalKey(key) && !sameSetting(key, old, current) {
			differences = append(differences, fmt.Sprintf("%s was %s, and is %s now", key, shownSetting(old), shownSetting(current)))
		}
	}
	names := map[string]bool{}
	for _, devices := range []map[string]map[string]string{now.ExpandedDevices, then.ExpandedDevices} {
		for name := range devices {
			names[name] = true
		}
	}
	for name := range names {
		old, current := shapeOf(then.ExpandedDevices[name]), shapeOf(now.ExpandedDevices[name])
		switch {
		case maps.Equal(old, current):
		case len(old) == 0:
			differences = append(differences, fmt.Sprintf("device %q was added", name))
		case len(current) == 0:
			differences = append(differences, fmt.Sprintf("device %q was removed", name))
		default:
			differences = append(differences, fmt.Sprintf("device %q was changed", name))
		}
	}
	slices.Sort(differences)
	return differences
}

func shownSetting(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}

// sameSetting says whether two values of a key make the same machine, and can stand for each other: a size can be written
// in several ways.
func sameSetting(key, a, b string) bool {
	return a == b || key == "limits.memory" && bytesOf(a) > 0 && bytesOf(a) == bytesOf(b)
}

// shapeOf is what of a device a guest's memory depends on: not how large its root disk may become, and not what the host
// does with the traffic of a network interface. These can be changed while it runs.
func shapeOf(device map[string]string) map[string]string {
	shape := map[string]string{}
	for key, value := range device {
		ofHost := device["type"] == "nic" && (strings.HasPrefix(key, "ipv4.") || strings.HasPrefix(key, "ipv6.") ||
			strings.HasPrefix(key, "limits.") || strings.HasPrefix(key, "security."))
		if !ofHost && !(isRoot(device) && (key == "size" || key == keyStateSize)) {
			shape[key] = value
		}
	}
	if shape["type"] == "none" || shape["type"] == "proxy" {
		return nil // nothing that the guest has
	}
	return shape
}

// resumeFailed tidies up after a restore with memory that failed: the daemon has put back the configuration, and maybe
// the disk, before it found that the memory does not come back. The configuration is made what is declared again.
func (r *machineReset) resumeFailed(ctx context.Context, cause error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := r.lab.daemon.Idle(ctx, r.snapshot.Machine.Name); err != nil {
		return cause
	}
	if _, err := r.putBack(ctx); err != nil {
		return fmt.Errorf("%w (and its configuration could not be made as declared: %w)", cause, err)
	}
	return cause
}

// rewriteTries is how often the configuration of a machine that runs is written: the daemon may note something of its
// own in between.
const rewriteTries = 3

// write makes a machine what is declared, and gives it as it was restored.
func (r *machineReset) write(ctx context.Context) (after *api.Instance, err error) {
	for range rewriteTries {
		if after, err = r.putBack(ctx); !errors.Is(err, lxd.ErrBusy) {
			break
		}
	}
	return after, err
}

// errMemoryLost is a machine whose memory was back, and which then did not stay up: it must not be booted as if nothing
// were amiss.
var errMemoryLost = errors.New("its memory was brought back, and then it stopped by itself")
