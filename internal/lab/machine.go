// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// Ask is a specification in the words of package capability; applying says that the machine is made or changed now.
func (s *MachineSpec) Ask(applying bool) capability.MachineAsk {
	return capability.MachineAsk{
		Name: s.Name, Type: api.InstanceType(s.Type), Pool: s.Pool, CPUs: s.CPUs, MemoryBytes: bytesOf(s.Memory),
		Checkpointable: s.Checkpointable, Devices: s.Devices, Applying: applying,
	}
}

// CreateMachine makes a machine, prepares it, and waits until it is usable. A machine that was made and then failed is
// returned beside the error, so that it is not forgotten.
func (l *Lab) CreateMachine(ctx context.Context, spec MachineSpec) (*Machine, MachineTimings, error) {
	timings := MachineTimings{}
	if err := l.checker.AdmitMachine(ctx, spec.Ask(true)); err != nil {
		return nil, timings, err
	}
	if _, _, err := l.checker.EnsureProof(ctx, spec.Pool); err != nil {
		return nil, timings, &ArgumentError{Argument: "pool", Err: err}
	}
	unlock, err := l.daemon.Lock(ctx, spec.Name)
	if err != nil {
		return nil, timings, err
	}
	defer unlock()

	start := time.Now()
	id := uuid.NewString()
	post := spec.post(id)
	if err := l.fitState(ctx, spec.Type, post.Config, post.Devices); err != nil {
		return nil, timings, err
	}
	if err := l.daemon.OnMember(spec.Target).CreateInstance(ctx, post); err != nil {
		return l.machineMadeAnyway(ctx, spec, id), timings, err
	}
	timings.CreateMS = since(start)
	err = l.prepare(ctx, &spec, start, &timings)
	if err != nil {
		return l.machineMadeAnyway(ctx, spec, id), timings, err
	}
	machine, err := l.readMachine(ctx, spec.Name, spec.Config)
	if err != nil {
		return l.machineMadeAnyway(ctx, spec, id), timings, err
	}
	return machine, timings, nil
}

// prepare takes a machine that was just made to the state in which it is used.
func (l *Lab) prepare(ctx context.Context, spec *MachineSpec, start time.Time, timings *MachineTimings) error {
	within, err := l.fill(ctx, spec)
	if err != nil {
		return err
	}
	if !spec.Running && len(spec.Setup) == 0 && !within {
		return nil
	}
	if err := l.power(ctx, spec.Name, true); err != nil {
		return err
	}
	timings.LaunchMS = since(start)
	if timings.SetupMS, err = l.equip(ctx, spec, within); err != nil {
		return err
	}
	timings.UsableMS = since(start)
	if spec.Running {
		return nil
	}
	return l.haltNamed(ctx, spec.Name)
}

// equip takes a machine that was just started to where it is usable: with its files, if they must be put into it from
// within, and its commands run, which took setupMS.
func (l *Lab) equip(ctx context.Context, spec *MachineSpec, within bool) (setupMS int64, err error) {
	if within {
		if err := l.fillFromWithin(ctx, spec); err != nil {
			return 0, err
		}
	}
	if len(spec.Setup) > 0 {
		if err := waitBooted(ctx, l.daemon, spec.Name); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := l.setUp(ctx, spec.Name, spec.Setup); err != nil {
			return 0, err
		}
		setupMS = since(begin)
	}
	return setupMS, waitUsable(ctx, l.daemon, spec.Name, spec.Ready)
}

// setUp runs the commands that prepare a machine, each to its end.
func (l *Lab) setUp(ctx context.Context, machine string, commands []Setup) error {
	for index, setup := range commands {
		result, err := l.daemon.Exec(ctx, machine, lxd.Command{Args: setup.Command, Environment: setup.Environment, Directory: setup.Directory})
		if err != nil {
			return argumentErrorf("setup", "setup command %d: %w", index+1, err)
		}
		if result.ExitCode != 0 {
			return &ArgumentError{Argument: "setup", Err: &SetupError{
				Index: index, Command: setup.Command, ExitCode: result.ExitCode,
				Stdout: string(result.Stdout), Stderr: string(result.Stderr),
			}}
		}
	}
	return nil
}

// machineMadeAnyway finds a machine whose creation failed or seemed to, by the uuid that we gave it.
func (l *Lab) machineMadeAnyway(ctx context.Context, spec MachineSpec, id string) *Machine {
	ctx, cancel := detached(ctx)
	defer cancel()
	// An operation that we stopped waiting for goes on; a machine that comes of it must not be forgotten.
	if err := l.daemon.Idle(ctx, spec.Name); err != nil {
		return nil
	}
	live, _, err := l.daemon.Instance(ctx, spec.Name)
	if err != nil || live.Config[keyUUID] != id {
		return nil
	}
	return machineOf(live, spec.Config)
}

// readMachine reads a machine with its addresses.
func (l *Lab) readMachine(ctx context.Context, name string, declared map[string]string) (*Machine, error) {
	live, _, err := l.daemon.Instance(ctx, name)
	if err != nil {
		return nil, err
	}
	machine := machineOf(live, declared)
	if !machine.Running && live.Config[keyRunning] == "true" {
		stopped, err := stopped(ctx, l.daemon, name)
		if err != nil {
			return nil, err
		}
		machine.Running = !stopped
	}
	if machine.Running {
		state, err := l.daemon.InstanceState(ctx, name)
		if err != nil {
			return nil, err
		}
		machine.Addresses = addressesOf(state)
	}
	return machine, nil
}

// RefreshMachine is [Lab.Machine] for many machines at once, which may miss what others changed within the last
// seconds.
func (l *Lab) RefreshMachine(ctx context.Context, id MachineID, declared map[string]string) (*Machine, error) {
	listed, err := l.listed(ctx, id)
	if err != nil {
		return nil, err
	}
	if listed == nil {
		return l.Machine(ctx, id, declared)
	}
	if listed.StatusCode == api.Stopped && listed.Config[keyRunning] == "true" {
		return l.Machine(ctx, id, declared) // what is drift, and what only an operation, is worth a closer look
	}
	machine := machineOf(&listed.Instance, declared)
	machine.Addresses = addressesOf(listed.State)
	return machine, nil
}

// listed finds a machine in the daemon's listing; nil when only a read of it alone can tell what became of it.
func (l *Lab) listed(ctx context.Context, id MachineID) (*api.InstanceFull, error) {
	listed, err := l.daemon.ListedInstance(ctx, id.Name)
	if err != nil || listed == nil || listed.Config[keyUUID] != id.UUID {
		return nil, err
	}
	return listed, nil
}

// Machine reads a machine. The error is [lxd.ErrNotFound] when it is gone, also when another incarnation has its name.
func (l *Lab) Machine(ctx context.Context, id MachineID, declared map[string]string) (*Machine, error) {
	machine, err := l.readMachine(ctx, id.Name, declared)
	if err != nil {
		return nil, err
	}
	if machine.ID.UUID != id.UUID {
		return nil, otherIncarnation(id, machine.ID.UUID)
	}
	return machine, nil
}

// stopped says whether a machine that was seen stopped is. It is not while an operation of the daemon's is at work on
// it, nor if one was that has just ended.
func stopped(ctx context.Context, daemon *lxd.Daemon, name string) (bool, error) {
	doing, err := daemon.Doing(ctx, name)
	if err != nil || doing != "" {
		return false, err
	}
	live, _, err := daemon.Instance(ctx, name)
	return err == nil && live.StatusCode == api.Stopped, err
}

// MachineByName reads a machine by its name, whichever incarnation it is, for an import.
func (l *Lab) MachineByName(ctx context.Context, name string) (*Machine, error) {
	return l.readMachine(ctx, name, nil)
}

func otherIncarnation(id MachineID, found string) error {
	return &lxd.Error{Ask: fmt.Sprintf("read machine %q", id.Name), Kind: lxd.ErrNotFound, Err: fmt.Errorf(
		"the machine with uuid %s is gone; the one of this name now is another (uuid %s)", id.UUID, found)}
}

// own reads the live machine and makes sure that it is the incarnation that is meant.
func (l *Lab) own(ctx context.Context, id MachineID) (*api.Instance, string, error) {
	live, etag, err := l.daemon.Instance(ctx, id.Name)
	if err != nil {
		return nil, "", err
	}
	if live.Config[keyUUID] != id.UUID {
		return nil, "", otherIncarnation(id, live.Config[keyUUID])
	}
	return live, etag, nil
}

// DeleteMachine stops a machine and removes it with its snapshots. One that is gone already is no error;
// another incarnation of the name is left alone.
func (l *Lab) DeleteMachine(ctx context.Context, id MachineID) error {
	unlock, err := l.daemon.Lock(ctx, id.Name)
	if err != nil {
		return err
	}
	defer unlock()
	live, _, err := l.own(ctx, id)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if live.StatusCode != api.Stopped {
		if err := l.halt(ctx, live, partingPatience); err != nil {
			return err
		}
	}
	return deleted(l.daemon.DeleteInstance(ctx, id.Name), func() error {
		_, _, err := l.own(ctx, id)
		return err
	})
}
