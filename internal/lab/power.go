// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const (
	// shutDownPatience is how long a guest may take to shut down by itself before it is stopped by force.
	shutDownPatience = 20 * time.Second
	// partingPatience is the same for a guest whose disk goes when it has stopped: what it has to do then is about others.
	partingPatience = 5 * time.Second
)

// power starts a machine, or stops it by force. The daemon's own time limit is the context's, since it has none that
// suits all.
func (l *Lab) power(ctx context.Context, machine string, on bool) error {
	if on {
		return l.daemon.SetInstanceState(ctx, machine, api.InstanceStatePut{Action: "start", Timeout: secondsLeft(ctx)})
	}
	err := l.daemon.SetInstanceState(ctx, machine, api.InstanceStatePut{Action: "stop", Force: true, Timeout: secondsLeft(ctx)})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if ended, look := l.ended(ctx, machine); look == nil && ended {
		return nil // by itself, meanwhile, which the daemon calls an error
	}
	return err
}

// ended says whether a machine has stopped, when it is done with what it is at.
func (l *Lab) ended(ctx context.Context, machine string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, partingPatience)
	defer cancel()
	stopped := false
	err := lxd.Poll(ctx, fmt.Sprintf("machine %q to stop", machine), func(ctx context.Context) (bool, string, error) {
		live, _, err := l.daemon.Instance(ctx, machine)
		if err != nil {
			return false, "", err
		}
		stopped = live.StatusCode == api.Stopped
		return stopped || slices.Contains([]api.StatusCode{api.Running, api.Frozen, api.Error}, live.StatusCode), live.Status, nil
	})
	return stopped, err
}

// unfreeze lets a guest go on that was paused. Of one that does not run it is an error.
func (l *Lab) unfreeze(ctx context.Context, machine string) error {
	return l.daemon.SetInstanceState(ctx, machine, api.InstanceStatePut{Action: "unfreeze", Timeout: secondsLeft(ctx)})
}

// halt stops a machine that is to start again some day, or to go. A virtual machine is asked first, since it keeps in its
// memory what its file systems have not written. A container is stopped by force: the host has that, and a lab is thrown
// away, so a guest that ignores a shutdown need not hold it up.
func (l *Lab) halt(ctx context.Context, machine *api.Instance, patience time.Duration) error {
	if machine.Type == TypeVirtualMachine && machine.StatusCode != api.Frozen {
		return l.shutDown(ctx, machine.Name, patience)
	}
	return l.power(ctx, machine.Name, false)
}

// haltNamed is halt for a machine of which only the name is known.
func (l *Lab) haltNamed(ctx context.Context, name string) error {
	live, _, err := l.daemon.Instance(ctx, name)
	if err != nil {
		return err
	}
	return l.halt(ctx, live, shutDownPatience)
}

// shutDown makes a guest shut down, so that its services write what they hold. One that does not within the patience, or
// half of the time that is left, is stopped by force: it may know no ACPI.
func (l *Lab) shutDown(ctx context.Context, machine string, patience time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	state := api.InstanceStatePut{Action: "stop", Timeout: max(1, int(patience.Seconds()))}
	if err := l.daemon.SetInstanceState(ctx, machine, state); err == nil || ctx.Err() != nil {
		return err
	}
	return l.power(ctx, machine, false)
}

// secondsLeft is the time to the context's deadline, for calls whose limit is in whole seconds; -1 is none.
func secondsLeft(ctx context.Context) int {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return max(1, int(math.Ceil(time.Until(deadline).Seconds())))
}
