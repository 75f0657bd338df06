// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// runCommands runs commands one after the other; done says what they changed.
func runCommands(done string, commands ...[]string) func(context.Context, *work) (change, error) {
	return func(ctx context.Context, w *work) (change, error) {
		for _, c := range commands {
			if err := w.run(ctx, c...); err != nil {
				return change{}, err
			}
		}
		return change{Changed: []string{done}}, nil
	}
}

// startUnit runs commands, the last of which starts the daemon if that is asked for, and waits until it is ready.
func startUnit(goal *product, commands [][]string, start bool) func(context.Context, *work) (change, error) {
	return func(ctx context.Context, w *work) (change, error) {
		var done change
		for i, c := range commands {
			watch := unwatched
			if start && i == len(commands)-1 {
				watch = w.watchUnit(goal.service)
			}
			err := whileHealthy(ctx, func(ctx context.Context) error { return w.run(ctx, c...) }, watch)
			if err != nil {
				return done, w.withJournal(ctx, goal.service, err)
			}
			done.Changed = append(done.Changed, "ran "+Command{Args: c}.String())
		}
		if !start {
			return done, nil
		}
		return done, w.waitReady(ctx, goal, nil, w.watchUnit(goal.service))
	}
}

// startDirectly starts the daemon's program by itself, and waits until it is ready.
func startDirectly(goal *product) func(context.Context, *work) (change, error) {
	return func(ctx context.Context, w *work) (change, error) {
		command, log := daemonCommand(w.facts, goal)
		command.Args[0] = goal.installed(w.host)
		exited, err := w.host.Start(ctx, command, log)
		if err != nil {
			return change{}, err
		}
		err = w.waitReady(ctx, goal, command.Env, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return nil
			case err := <-exited:
				return fmt.Errorf("the daemon ended as it started: %w", err)
			}
		})
		if err != nil {
			said, _ := w.host.ReadFile(log) // without it the error tells less, but it tells
			return change{}, fmt.Errorf("start `%s`: %w\nThe end of its log %s:\n%s", command, err, log, lastLines(string(said), 15))
		}
		return change{Changed: []string{fmt.Sprintf("started `%s`, with its log in %s", command, log)}}, nil
	}
}

// waitReady waits until the daemon has finished starting; its socket answers before that.
func (w *work) waitReady(ctx context.Context, goal *product, env []string, watch func(context.Context) error) error {
	w.task.At(0.5, "waiting until the daemon is ready")
	return whileHealthy(ctx, func(ctx context.Context) error {
		_, err := w.host.Run(ctx, Command{Args: []string{goal.installed(w.host), "waitready"}, Env: env})
		return err
	}, watch)
}

// errStuck says that a unit's program ended while systemd still waits for it to become ready, which it does for minutes.
var errStuck = errors.New("the daemon ended as it started")

// watchUnit watches a unit until its program is found to have failed.
func (w *work) watchUnit(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		err := lxd.Poll(ctx, name+" fails", func(ctx context.Context) (bool, string, error) {
			out, err := w.host.Run(ctx, Command{Args: []string{"systemctl", "show", "--property=ActiveState,Result", "--", name}})
			if err == nil && parseUnit(out).stuck() {
				return true, "", errStuck
			}
			return false, "", nil
		})
		if errors.Is(err, errStuck) {
			return err
		}
		return nil
	}
}

// withJournal adds what a unit said last to an error.
func (w *work) withJournal(ctx context.Context, name string, err error) error {
	out, journalErr := w.host.Run(ctx, Command{Args: []string{"journalctl", "--unit", name, "--lines", "10", "--no-pager", "--output", "cat"}})
	if journalErr != nil || strings.TrimSpace(out) == "" {
		return err
	}
	return fmt.Errorf("%w\nThe end of the journal of %s:\n%s", err, name, strings.TrimSpace(out))
}

// whileHealthy does something, and gives it up as soon as watch finds out that it will never succeed.
func whileHealthy(ctx context.Context, do, watch func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := watch(ctx); err != nil {
			cancel(err)
		}
	})
	err := do(ctx)
	cause := context.Cause(ctx)
	cancel(nil)
	watching.Wait()
	if err != nil && cause != nil {
		return cause
	}
	return err
}

// unwatched is for what cannot fail unnoticed.
func unwatched(context.Context) error { return nil }

// detectDrivers makes the daemon look for its storage drivers again. Others may be using the daemon, so it is only
// restarted when making a pool does not do it.
func detectDrivers(ctx context.Context, w *work) (change, error) {
	address := "unix://" + w.facts.place.Socket
	poolErr := w.host.TryPool(ctx, address, driver)
	if server, err := w.host.Ask(ctx, address); err != nil {
		return change{}, err
	} else if slices.Contains(server.Drivers, driver) {
		return change{Changed: []string{"the daemon found the storage driver " + driver + " as it made a throw-away pool"}}, nil
	}
	w.task.At(0.5, "restarting the daemon")
	done, err := w.restart(ctx)
	if err != nil {
		return done, err
	}
	server, err := w.host.Ask(ctx, address)
	if err != nil {
		return done, err
	}
	if !slices.Contains(server.Drivers, driver) {
		return done, &RefusedError{
			Found:  fmt.Sprintf("the daemon still offers only %s, after a throw-away %s pool and a restart", list(server.Drivers), driver),
			Remedy: fmt.Sprintf("see that the kernel has %s (`modprobe %s`) and that mkfs.btrfs is on the daemon's PATH", driver, driver),
			Err:    poolErr,
		}
	}
	done.Changed = append(done.Changed, "the daemon found the storage driver "+driver+" as it started")
	return done, nil
}

// restart restarts the daemon in a way that leaves its instances running.
func (w *work) restart(ctx context.Context) (change, error) {
	done := change{SideEffects: []string{"restarted the daemon, since a throw-away pool did not make it look for drivers; its instances kept running"}}
	goal := w.facts.product
	switch {
	case w.facts.managed() && goal.snap: // a restart by snap would stop the instances
		if err := w.run(ctx, "systemctl", "reload", goal.service); err != nil {
			return change{}, w.withJournal(ctx, goal.service, err)
		}
		return done, w.waitReady(ctx, goal, nil, w.watchUnit(goal.service))
	case w.facts.managed():
		restarted, err := startUnit(goal, [][]string{{"systemctl", "restart", goal.service}}, true)(ctx, w)
		done.Changed = append(done.Changed, restarted.Changed...)
		return done, err
	}
	if err := w.stopDirectly(ctx, w.facts.daemon.server.PID); err != nil {
		return change{}, err
	}
	started, err := startDirectly(goal)(ctx, w)
	done.Changed = append(done.Changed, started.Changed...)
	return done, err
}

// stopDirectly ends a daemon's process, which leaves its instances running.
func (w *work) stopDirectly(ctx context.Context, pid int) error {
	process := "/proc/" + itoa(pid)
	name, err := w.host.ReadFile(process + "/comm")
	if err != nil || !slices.Contains([]string{"lxd", "incusd"}, strings.TrimSpace(string(name))) {
		return &RefusedError{
			Found:  fmt.Sprintf("the daemon says that it is process %d, which is none of LXD's or Incus's here", pid),
			Remedy: "restart the daemon by hand, then run bootstrap again",
		}
	}
	if err := w.run(ctx, "kill", "-TERM", itoa(pid)); err != nil {
		return err
	}
	return lxd.Poll(ctx, "the daemon has ended", func(context.Context) (bool, string, error) {
		// An ended process has none: there is nothing to read, or nothing in it where nobody reaps.
		command, _ := w.host.ReadFile(process + "/cmdline")
		return len(command) == 0, "process " + itoa(pid) + " is there", nil
	})
}

// giveAccess puts a person into the group that may use the daemon, and sees that this opens its socket.
func giveAccess(user, group string, command []string) func(context.Context, *work) (change, error) {
	return func(ctx context.Context, w *work) (change, error) {
		if err := w.run(ctx, command...); err != nil {
			return change{}, err
		}
		done := change{
			Changed:     []string{fmt.Sprintf("put %s into the group %s", user, group)},
			SideEffects: []string{fmt.Sprintf("%s is root's equal on this host now: the daemon does as root what its users ask", user)},
		}
		socket := w.facts.place.Socket
		if err := w.run(ctx, "runuser", "-u", user, "--", "test", "-w", socket); err != nil {
			return done, &RefusedError{
				Found:  fmt.Sprintf("%s is in the group %s now, and the socket %s is still closed to them", user, group, socket),
				Remedy: fmt.Sprintf("see which group the socket belongs to (`ls -l %s`): the daemon must be started with `--group %s`", socket, group),
				Err:    err,
			}
		}
		return done, nil
	}
}
