// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// argumentKeys are the arguments that people write for configuration keys.
var argumentKeys = map[string]string{"limits.cpu": "cpus", "limits.memory": "memory", keyStateful: "checkpointable"}

// NeedsRestart lists the configuration keys and arguments whose change takes effect only when the machine starts
// anew. It is empty when all of the change is made on the running machine.
func NeedsRestart(before, now MachineSpec) []string {
	old, changed := before.config(), now.config()
	keys := []string{}
	for key := range union(old, changed) {
		if old[key] != changed[key] && !internalKey(key) && !liveOn(now.Type, key) {
			keys = append(keys, cmp.Or(argumentKeys[key], key))
		}
	}
	slices.Sort(keys)
	return keys
}

// liveOn says whether a change of a key takes effect on a running machine of a type.
func liveOn(kind, key string) bool {
	live := liveContainerKeys
	if kind == TypeVirtualMachine {
		live = liveVMKeys
	}
	return slices.ContainsFunc(live, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// NotStartedError is a machine that was found stopped, though it is declared to be running, and could not be started.
type NotStartedError struct {
	Machine string
	Err     error
}

func (e *NotStartedError) Error() string {
	return fmt.Sprintf("machine %q was found stopped and could not be started: %v", e.Machine, e.Err)
}

// Unwrap gives the cause.
func (e *NotStartedError) Unwrap() error { return e.Err }

// UpdateMachine changes a machine in place: limits, configuration, devices, networks, profiles, description, and
// whether it runs.
//
// A machine that was found stopped is started, and that is all: it is not waited for, since power is not readiness, and
// one that cannot be started is returned beside a [NotStartedError], since a reset may be what it needs. A machine
// that is now declared to be running, and was not before, is waited for as at its creation.
func (l *Lab) UpdateMachine(ctx context.Context, id MachineID, before, now MachineSpec) (*Machine, error) {
	return l.update(ctx, id, before, now, func(live *api.Instance) api.InstancePut {
		put := live.Writable()
		put.Description = now.Description
		put.Profiles = nonNil(now.Profiles)
		put.Config = replaced(live.Config, before.config(), now.config())
		put.Devices = now.devices()
		return put
	})
}

// update changes a machine in place to what is made of it as it is.
func (l *Lab) update(ctx context.Context, id MachineID, before, now MachineSpec, rewritten func(live *api.Instance) api.InstancePut) (*Machine, error) {
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
	drifted := !running && live.Config[keyRunning] == "true"
	// A virtual machine takes such a change only while it is stopped.
	if running && (!now.Running || len(restart) > 0) {
		if err := l.halt(ctx, live, shutDownPatience); err != nil {
			return nil, err
		}
		running = false
		if live, etag, err = l.own(ctx, id); err != nil {
			return nil, err
		}
	}
	put := rewritten(live)
	if err := l.rewrite(ctx, live, put, etag); err != nil {
		return nil, err
	}
	now.Ready = decodeReady(put.Config[keyReady])
	failure := l.bringUp(ctx, before, now, running, drifted)
	machine, err := l.Machine(ctx, id, now.Config)
	return machine, errors.Join(failure, err)
}

// bringUp starts a machine after a change, if it is to run and does not, and waits for what the change brings.
func (l *Lab) bringUp(ctx context.Context, before, now MachineSpec, running, drifted bool) error {
	if !now.Running {
		return nil
	}
	if !running {
		if err := l.startUpdated(ctx, now, drifted); err != nil {
			return err
		}
	}
	// New networks bring new addresses; who made an address a condition wants to know it.
	if now.Ready.Address != "" && !maps.Equal(before.Networks, now.Networks) {
		return waitAddress(ctx, l.daemon, now.Name, now.Ready.Address)
	}
	return nil
}

// rewrite writes a machine, with the room that its memory takes, if that changes anything.
func (l *Lab) rewrite(ctx context.Context, live *api.Instance, put api.InstancePut, etag string) error {
	if err := l.fitState(ctx, live.Type, put.Config, put.Devices); err != nil {
		return err
	}
	if sameInstance(live.Writable(), put) {
		return nil
	}
	return l.daemon.ReplaceInstance(ctx, live.Name, put, etag)
}

// startUpdated starts a machine after a change.
func (l *Lab) startUpdated(ctx context.Context, now MachineSpec, drifted bool) error {
	if drifted && now.Type == TypeVirtualMachine && l.unfreeze(ctx, now.Name) == nil {
		return nil // it was only paused: LXD 5.0 shows as stopped what a failed capture of its memory has left
	}
	err := l.power(ctx, now.Name, true)
	if drifted && err != nil && ctx.Err() == nil {
		return &NotStartedError{Machine: now.Name, Err: err}
	}
	if drifted || err != nil {
		return err
	}
	return waitUsable(ctx, l.daemon, now.Name, now.Ready)
}

// sameInstance says whether writing a machine would change nothing.
func sameInstance(a, b api.InstancePut) bool {
	return a.Description == b.Description && slices.Equal(nonNil(a.Profiles), nonNil(b.Profiles)) &&
		maps.Equal(a.Config, b.Config) && sameDevices(a.Devices, b.Devices)
}

func sameDevices(a, b map[string]map[string]string) bool {
	return maps.EqualFunc(a, b, maps.Equal[map[string]string, map[string]string])
}
