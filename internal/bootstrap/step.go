// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"fmt"
	"strconv"
)

// State is how far a host is from carrying a lab.
type State int

// The states, from far to near.
const (
	// NotInstalled says that there is no daemon.
	NotInstalled State = iota
	// NotAvailable says that one is installed but cannot be used: it is down, its units are disabled, or the person
	// may not.
	NotAvailable
	// NotAdequate says that one can be used, but does not offer what a lab needs.
	NotAdequate
	// Adequate says that nothing is known to be missing.
	Adequate
)

func (s State) String() string {
	switch s {
	case NotInstalled:
		return "not installed"
	case NotAvailable:
		return "installed but not available"
	case NotAdequate:
		return "available but not adequate"
	default:
		return "adequate"
	}
}

// Step is something that is missing on a host, and what is going to be done about it.
type Step struct {
	// Name identifies the step in a receipt.
	Name string
	// Title says what is done, as a verb phrase.
	Title string
	// Reasons say why.
	Reasons []string
	// Commands are what is run, as far as that is known beforehand.
	Commands []string
	// Note is what a person should know before; often empty.
	Note string
	// State is that of the host while the step is missing.
	State State

	do func(ctx context.Context, w *work) (change, error)
}

// change is what a step changed, and what that did to the rest of the host.
type change struct {
	Changed     []string `json:"changed,omitempty"`
	SideEffects []string `json:"side_effects,omitempty"`
}

// work is what a step does its work with.
type work struct {
	host  Host
	facts *facts
	task  Task
}

// run runs a command for a step.
func (w *work) run(ctx context.Context, args ...string) error {
	_, err := w.host.Run(ctx, Command{Args: args})
	return err
}

// stateOf gives the state of a host on which steps are missing.
func stateOf(steps []Step) State {
	state := Adequate
	for _, s := range steps {
		state = min(state, s.State)
	}
	return state
}

// RefusedError says that a host cannot or must not be prepared, and what a person can do.
type RefusedError struct {
	// Found is the cause, with evidence.
	Found string
	// Remedy is the next step.
	Remedy string
	// Err is the error behind it, if there is one.
	Err error
}

func (e *RefusedError) Error() string {
	text := e.Found
	if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text + ". What helps: " + e.Remedy
}

func (e *RefusedError) Unwrap() error { return e.Err }

func itoa(n int) string { return strconv.Itoa(n) }
