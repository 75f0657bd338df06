// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// liveContainerKeys are the prefixes of configuration keys that take effect on a running container.
var liveContainerKeys = []string{
	"limits.", "user.", "boot.", "snapshots.", "environment.", "cluster.", "cloud-init.", "security.protection.",
	"security.devlxd",
}

// liveVMKeys are the same for a virtual machine, whose processors and memory are what it was started with.
var liveVMKeys = []string{"user.", "boot.", "snapshots.", "environment.", "cluster.", "cloud-init.", "security.protection."}

// NeedsRestart lists the configuration keys and arguments whose change takes effect only when the machine starts
// anew. It is empty when all of the change is made on the running machine.
func NeedsRestart(before, now MachineSpec) []string {
	live := liveContainerKeys
	if now.Type == TypeVirtualMachine {
		live = liveVMKeys
	}
	old, changed := before.config(), now.config()
	keys := []string{}
	for key := range union(old, changed) {
		if old[key] == changed[key] || internalKey(key) {
			continue
		}
		if !slices.ContainsFunc(live, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// UpdateMachine changes a machine in place: limits, configuration, devices, networks, profiles, description, and
// whether it runs. It does not wait until the machine is usable: power is not readiness.
func (l *Lab) UpdateMachine(ctx context.Context, id MachineID, before, now MachineSpec) (*Machine, error) {
	if err := l.checker.AdmitMachine(ctx, now.Ask(true)); err != nil {
		return nil, err
	}
	unlock, err := l.daemon.Lock(ctx, id.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	live, etag, err := l.own(ctx, id)
	if err != nil {
		return nil, err
	}
	restart := NeedsRestart(before, now)
	running := live.StatusCode != api.Stopped
	if running && now.Running && len(restart) > 0 && !now.AllowRestart {
		return nil, argumentErrorf("allow_restart", "a change of %s takes effect only when the machine starts anew: set allow_restart = true to have it restarted", strings.Join(restart, ", "))
	}
	// A virtual machine takes such a change only while it is stopped.
	stop := running && (!now.Running || len(restart) > 0)
	if stop {
		if err := l.power(ctx, id.Name, false); err != nil {
			return nil, err
		}
		if live, etag, err = l.own(ctx, id); err != nil {
			return nil, err
		}
	}
	put := live.Writable()
	put.Description = now.Description
	put.Profiles = nonNil(now.Profiles)
	put.Config = replaced(live.Config, before.config(), now.config())
	put.Devices = now.devices()
	if !sameInstance(live.Writable(), put) {
		if err := l.daemon.ReplaceInstance(ctx, id.Name, put, etag); err != nil {
			return nil, err
		}
	}
	if now.Running && (stop || !running) {
		if err := l.power(ctx, id.Name, true); err != nil {
			return nil, err
		}
	}
	// New networks bring new addresses; who made an address a condition wants to know it.
	if now.Running && now.Ready.Address != "" && !maps.Equal(before.Networks, now.Networks) {
		if _, err := waitAddress(ctx, l.daemon, id.Name, now.Ready.Address); err != nil {
			return nil, err
		}
	}
	return l.Machine(ctx, id, now.Config)
}

// sameInstance says whether writing a machine would change nothing.
func sameInstance(a, b api.InstancePut) bool {
	return a.Description == b.Description && slices.Equal(nonNil(a.Profiles), nonNil(b.Profiles)) &&
		maps.Equal(a.Config, b.Config) && maps.EqualFunc(a.Devices, b.Devices, maps.Equal[map[string]string, map[string]string])
}
