// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// Command is something to run in a machine.
type Command struct {
	// Args is the program and its arguments; no shell is involved.
	Args []string
	// Environment is added to the machine's own.
	Environment map[string]string
	// Directory is where it runs; empty means root's home.
	Directory string
	// User and Group run it; 0 is root.
	User, Group uint32
}

// CommandResult is how a command ended.
type CommandResult struct {
	// ExitCode is what it returned; 127 when it was not found, 137 when it was killed.
	ExitCode int
	// Stdout and Stderr hold the end of what it printed, at most 64 KiB each.
	Stdout, Stderr []byte
}

// Exec runs a command in an instance and returns how it ended. A command that ran and failed is no error. When the
// context ends first, the command is killed; processes that it started are not.
func (d *Daemon) Exec(ctx context.Context, instance string, command Command) (*CommandResult, error) {
	ask, started := fmt.Sprintf("run %q in machine %q", command.Args, instance), time.Now()
	result, err := d.exec(ctx, ask, instance, command)
	d.logCall(ctx, ask, started, err)
	return result, err
}

// ExitCode runs a command that ends at once and whose output does not matter, and returns what it returned. It is one
// request and the wait for its end, where [Daemon.Exec] has four streams as well; but nothing can kill the command.
func (d *Daemon) ExitCode(ctx context.Context, instance string, args ...string) (int, error) {
	ask := fmt.Sprintf("run %q in machine %q", args, instance)
	var request outgoing
	response, _, err := d.client(request.watch(ctx)).RawQuery(http.MethodPost, d.path("instances", instance, "exec").String(),
		api.InstanceExecPost{Command: args}, "")
	if err != nil {
		return 0, request.failure(ctx, ask, err)
	}
	ended, err := d.outcome(ctx, ask, response)
	code, ok := exitCode(ended)
	switch {
	case ok:
		return code, nil
	case err == nil:
		return 0, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: errNoExitCode}
	default:
		return 0, err
	}
}

func (d *Daemon) exec(ctx context.Context, ask, instance string, command Command) (*CommandResult, error) {
	var request outgoing
	response, _, err := d.client(request.watch(ctx)).RawQuery(http.MethodPost, d.path("instances", instance, "exec").String(), api.InstanceExecPost{
		Command: command.Args, Environment: command.Environment, Cwd: command.Directory, User: command.User, Group: command.Group,
		WaitForWS: true,
	}, "")
	if err != nil {
		return nil, request.failure(ctx, ask, err)
	}
	operation, err := response.MetadataAsOperation()
	if err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: err}
	}
	streams, err := d.attach(ctx, operation)
	if err != nil {
		return nil, request.failure(ctx, ask, err)
	}
	defer streams.close()

	stop := context.AfterFunc(ctx, streams.kill)
	defer stop()
	wait, cancel := streams.patience(ctx)
	defer cancel()
	ended, err := d.await(wait, ask, operation)
	if cause := ctx.Err(); cause != nil {
		return nil, &Error{Ask: ask, Kind: timeoutKind(cause), Err: &TimeoutError{
			Condition: "the command has ended", LastSeen: streams.lastSeen(ended != nil), Waited: time.Since(request.started), Cause: cause,
		}}
	}
	if ended == nil && wait.Err() != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnsupported, Err: errOutputHeld}
	}
	// A command that is not there gives a failed operation and, beside it, a plain exit code.
	code, ok := exitCode(ended)
	if err != nil && !ok {
		return nil, err
	}
	if !ok {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: errNoExitCode}
	}
	streams.drain()
	result := &CommandResult{ExitCode: code, Stdout: streams.stdout.Bytes(), Stderr: streams.stderr.Bytes()}
	if err != nil && len(result.Stderr) == 0 {
		result.Stderr = []byte(err.Error())
	}
	return result, nil
}

func exitCode(operation *api.Operation) (int, bool) {
	if operation == nil {
		return 0, false
	}
	code, ok := operation.Metadata["return"].(float64)
	return int(code), ok && code >= 0
}

var errNoExitCode = errors.New("the daemon did not tell the exit code")

// errOutputHeld is a command whose exit code an older daemon (LXD 5.0) will not tell before its output is closed.
var errOutputHeld = errors.New("the command has ended, but what it left in the background holds its output open, " +
	"and this daemon does not tell the exit code before that ends: redirect the output of what is to stay, for instance to /dev/null")
