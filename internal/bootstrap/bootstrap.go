// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// lockPause is how often a run looks whether another one has ended.
const lockPause = 250 * time.Millisecond

// Options say what is wanted of a host.
type Options struct {
	// Check only says what is missing. Nothing is changed.
	Check bool
	// PackagesOnly installs packages, and neither starts nor asks a daemon.
	PackagesOnly bool
	// User gets access to the daemon; the invoking one if it is empty.
	User string
	// Address names the daemon ("unix:///path/to/unix.socket"); this host's own if it is empty.
	Address string
	// Receipt is the file that takes note of what was changed.
	Receipt string
	// Prove proves that the daemon at an address can carry a lab. Without it nothing is proved.
	Prove func(ctx context.Context, address string) (Verdict, error)
	// Out receives what a person should read.
	Out io.Writer
	// Progress shows long work.
	Progress Progress
}

// Verdict is what a proof came to.
type Verdict struct {
	// Adequate says that the capability was proved.
	Adequate bool
	// Summary says so in a sentence, and Evidence is what it rests on.
	Summary  string
	Evidence []string
	// Remedy is what helps when it was not proved.
	Remedy string
}

// Outcome is what came of a run.
type Outcome struct {
	// State is the host's when the run began.
	State State
	// Missing are the steps that are still to be done: with Check all, else none.
	Missing []Step
	// Done are the steps that were done.
	Done []Entry
	// Address is that of the daemon; empty with PackagesOnly.
	Address string
	// Verdict is the proof's; nil where nothing was proved.
	Verdict *Verdict
}

// Adequate says that nothing is missing, as far as the run was to find out.
func (o *Outcome) Adequate() bool {
	return len(o.Missing) == 0 && (o.Verdict == nil || o.Verdict.Adequate)
}

// NeedsRootError says that steps are missing which only root may do.
type NeedsRootError struct{ Steps []Step }

func (e *NeedsRootError) Error() string {
	titles := make([]string, 0, len(e.Steps))
	for _, s := range e.Steps {
		titles = append(titles, s.Title)
	}
	return "only root may do what is missing here: " + strings.Join(titles, "; ")
}

// NeedsGroupError says that the person may use the daemon through a group that this process is not in, since they
// were put into it after they logged in.
type NeedsGroupError struct{ User, Group string }

func (e *NeedsGroupError) Error() string {
	return fmt.Sprintf("%s is in the group %s, but this session began before", e.User, e.Group)
}

// Run looks at a host, says what is missing, does it, and proves that it was enough. Besides [RefusedError] and the
// failures of steps there are two errors that a caller can do something about: [NeedsRootError] and [NeedsGroupError].
func Run(ctx context.Context, h Host, o Options) (*Outcome, error) {
	r := &run{host: h, options: o}
	f, steps, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	outcome := &Outcome{State: stateOf(steps)}
	if f.needsGroup() {
		return outcome, &NeedsGroupError{User: f.invoker.User, Group: f.access.group}
	}
	r.describe(f, steps)
	switch {
	case o.Check:
		outcome.Missing = steps
		return outcome, nil
	case len(steps) > 0 && !f.invoker.Root:
		return outcome, &NeedsRootError{Steps: steps}
	}
	if len(steps) > 0 {
		unlock, err := r.lock(ctx)
		if err != nil {
			return outcome, err
		}
		defer unlock()
		// Another one may have done it meanwhile.
		if f, steps, err = r.look(ctx); err != nil {
			return outcome, err
		}
	}
	if f, err = r.rounds(ctx, f, steps); err != nil {
		outcome.Done = r.done
		return outcome, err
	}
	outcome.Done = r.done
	if o.PackagesOnly {
		return outcome, nil
	}
	outcome.Address = "unix://" + f.place.Socket
	if o.Prove != nil {
		outcome.Verdict, err = r.prove(ctx, outcome.Address)
	}
	return outcome, err
}

// run is one run.
type run struct {
	host    Host
	options Options
	done    []Entry
}

// look looks at the host, and plans.
func (r *run) look(ctx context.Context) (*facts, []Step, error) {
	f, err := look(ctx, r.host, r.options)
	if err != nil {
		return nil, nil, err
	}
	steps, err := plan(f, ask{packagesOnly: r.options.PackagesOnly, refreshed: r.did("package-lists")})
	return f, steps, err
}

// did says whether a step was done in this run.
func (r *run) did(name string) bool {
	return slices.ContainsFunc(r.done, func(e Entry) bool { return e.Step == name })
}

// rounds does the steps, looks again, and goes on until nothing is missing. A fetch of apt's lists ends its round,
// since it may change what comes after it.
func (r *run) rounds(ctx context.Context, f *facts, steps []Step) (*facts, error) {
	for len(steps) > 0 {
		for _, step := range steps {
			if r.did(step.Name) {
				return f, fmt.Errorf("to %s did not help: %s", step.Title, strings.Join(step.Reasons, "; "))
			}
			if err := r.do(ctx, f, step); err != nil {
				return f, err
			}
			if step.Name == "package-lists" {
				break
			}
		}
		var err error
		if f, steps, err = r.look(ctx); err != nil {
			return f, err
		}
	}
	return f, nil
}

// do does one step and takes note of it.
func (r *run) do(ctx context.Context, f *facts, step Step) error {
	task := r.options.Progress.Begin(step.Title)
	begun := time.Now()
	done, err := step.do(ctx, &work{host: r.host, facts: f, task: task})
	task.End(err)
	entry := Entry{
		Time: time.Now().UTC().Truncate(time.Millisecond), Step: step.Name, Title: step.Title, Reasons: step.Reasons,
		change: done, DurationMS: time.Since(begun).Milliseconds(),
	}
	if err != nil {
		err = fmt.Errorf("unable to %s: %w", step.Title, err)
		entry.Error = err.Error()
	}
	r.done = append(r.done, entry)
	if noteErr := record(r.options.Receipt, entry); noteErr != nil && err == nil {
		return noteErr
	}
	return err
}

// prove has the capability proved.
func (r *run) prove(ctx context.Context, address string) (*Verdict, error) {
	task := r.options.Progress.Begin("prove that the daemon copies on write")
	verdict, err := r.options.Prove(ctx, address)
	task.End(err)
	if err != nil {
		return nil, fmt.Errorf("unable to prove what the daemon can do: %w", err)
	}
	return &verdict, nil
}

// lock keeps two runs from preparing the host at once.
func (r *run) lock(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(filepath.Dir(r.options.Receipt), "bootstrap.lock")
	if err := makeDirFor(path); err != nil {
		return nil, err
	}
	lock := flock.New(path)
	if _, err := lock.TryLockContext(ctx, lockPause); err != nil {
		return nil, fmt.Errorf("wait for another bootstrap (%s): %w", path, err)
	}
	return func() { _ = lock.Unlock() }, nil // the kernel unlocks it at the latest when this process ends
}

// describe tells a person what was found, and what is going to be done.
func (r *run) describe(f *facts, steps []Step) {
	out := r.options.Out
	for _, line := range f.describe(!r.options.PackagesOnly) {
		say(out, "%s\n", line)
	}
	say(out, "state: %s\n", stateOf(steps))
	for i, step := range steps {
		say(out, "%d. %s\n", i+1, step.Title)
		for _, reason := range step.Reasons {
			say(out, "   because %s\n", reason)
		}
		for _, command := range step.Commands {
			say(out, "   $ %s\n", command)
		}
		if step.Note != "" {
			say(out, "   note: %s\n", step.Note)
		}
	}
}
