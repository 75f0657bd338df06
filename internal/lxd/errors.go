// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// The kinds of failure that callers tell apart, to be tested with [errors.Is].
var (
	// ErrNotFound says that the daemon answered and that the object is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the name is taken.
	ErrExists = errors.New("already exists")
	// ErrBusy says that another operation has hold of the object; trying again later may succeed.
	ErrBusy = errors.New("busy")
	// ErrInUse says that other objects depend on the object.
	ErrInUse = errors.New("in use")
	// ErrRefused says that the daemon understood and will not do it.
	ErrRefused = errors.New("refused by the daemon")
	// ErrUnsupported says that this daemon, or its version, cannot do it at all.
	ErrUnsupported = errors.New("not supported by the daemon")
	// ErrTimeout says that the deadline came before the end; see [TimeoutError].
	ErrTimeout = errors.New("timed out")
	// ErrCalledOff says that the caller gave up, and that the daemon has given up as well: nothing was made.
	ErrCalledOff = errors.New("called off")
	// ErrUnknownOutcome says that the daemon was asked but contact was lost before it told how it went.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrUnreachable says that there is no daemon to talk to at the address.
	ErrUnreachable = errors.New("daemon unreachable")
)

// Error is a failed call: what was asked, what kind of failure it is, and the daemon's own words.
type Error struct {
	// Ask is what was asked, as a verb phrase ("create instance \"a\"").
	Ask string
	// Kind is one of the Err values of this package, or nil when none fits.
	Kind error
	// Err is the cause, with the daemon's own text.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Ask, e.Err) }

// Unwrap gives both the kind and the cause, so that [errors.Is] finds either.
func (e *Error) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// TimeoutError is a wait that ran out of time.
type TimeoutError struct {
	// Condition is what was waited for.
	Condition string
	// LastSeen is the last state observed; empty when nothing was seen.
	LastSeen string
	// Waited is how long it was waited for.
	Waited time.Duration
	// Cause is why the wait ended: the context's error.
	Cause error
}

func (e *TimeoutError) Error() string {
	verb := "gave up"
	if errors.Is(e.Cause, context.Canceled) {
		verb = "interrupted"
	}
	text := fmt.Sprintf("%s after %s waiting until %s", verb, e.Waited.Round(time.Millisecond), e.Condition)
	if e.LastSeen != "" {
		text += "; last seen: " + e.LastSeen
	}
	return text
}

// Unwrap makes a timeout both an [ErrTimeout] (unless it was an interrupt) and its context error.
func (e *TimeoutError) Unwrap() []error {
	if errors.Is(e.Cause, context.Canceled) {
		return []error{e.Cause}
	}
	return []error{ErrTimeout, e.Cause}
}

// textKinds classifies the failures that carry no clear status: errors inside operations are free text with status 400,
// some synchronous ones are 500 for a plain user error, and 409 and 503 mean several things. First match wins. The
// texts are those of LXD 5.0 to 6.x and Incus 6.0.
//
// That something is not there counts only when the text says nothing else: callers take a missing object for one that
// is deleted, and what is missing within a longer text is another thing, such as a program.
var textKinds = []struct {
	pattern *regexp.Regexp
	kind    error
}{
	{regexp.MustCompile(`(?i)already exists|already in use by another`), ErrExists},
	{regexp.MustCompile(`(?i)currently in use|is in use`), ErrInUse},
	{regexp.MustCompile(`(?i)is busy running|operation .* already running|another .* in progress|is shutting down|setup in progress|not ready yet`), ErrBusy},
	{regexp.MustCompile(`(?i)not supported|unsupported|missing the required .* extension|Required tool .* is missing|Unknown driver|Error loading .* module`), ErrUnsupported},
	{regexp.MustCompile(`(?i)^(instance|container|virtual machine|snapshot|instance ?snapshot|image|image alias|network|profile|project|storage (pool|volume))( [^ :]+)? (not found|does not exist)$`), ErrNotFound},
}

// statusKinds classifies what the daemon's HTTP status says clearly.
var statusKinds = map[int]error{
	http.StatusNotFound:           ErrNotFound,
	http.StatusForbidden:          ErrRefused,
	http.StatusUnauthorized:       ErrRefused,
	http.StatusPreconditionFailed: ErrBusy, // the object changed between reading and writing
	http.StatusNotImplemented:     ErrUnsupported,
}

// classify gives a failed call its kind, in this one place.
func classify(ask string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Ask: ask, Kind: timeoutKind(err), Err: err}
	}
	if refused := certificateRefused(err); refused != nil {
		return &Error{Ask: ask, Kind: ErrRefused, Err: refused}
	}
	status, isStatus := api.StatusErrorMatch(err)
	if !isStatus {
		return &Error{Ask: ask, Kind: ErrUnreachable, Err: err}
	}
	if kind, ok := statusKinds[status]; ok {
		return &Error{Ask: ask, Kind: kind, Err: err}
	}
	return &Error{Ask: ask, Kind: kindOfText(err.Error()), Err: err}
}

// classifyOperation gives the failure text of an operation its kind.
func classifyOperation(ask, text string) error {
	return &Error{Ask: ask, Kind: kindOfText(text), Err: errors.New(text)}
}

func kindOfText(text string) error {
	for _, k := range textKinds {
		if k.pattern.MatchString(text) {
			return k.kind
		}
	}
	return ErrRefused
}

func timeoutKind(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrTimeout
	}
	return context.Canceled
}
