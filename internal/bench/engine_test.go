// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fake is a campaign that notes what is done.
type fake struct {
	subjects []string
	settings string
	// try decides how a trial goes; nil is well.
	try  func(turn string) error
	done []string
	// things are what was made and not removed yet.
	things int
}

func (*fake) Name() string { return ProvisioningName }

func (f *fake) Subjects() []Subject {
	subjects := []Subject{{Name: "never", Unavailable: "there is none"}}
	for _, name := range f.subjects {
		subjects = append(subjects, Subject{Name: name})
	}
	return subjects
}

func (f *fake) Settings() map[string]string { return map[string]string{"size": f.settings} }

func (f *fake) Prepare(ctx context.Context, run *Run) error {
	return run.Stage(ctx, "Make a thing", func(context.Context) (Values, error) {
		f.things++
		return Values{"thing_bytes": 5}, nil
	})
}

func (f *fake) Try(ctx context.Context, _ *Run, subject string, round int) (Values, error) {
	name := fmt.Sprint(subject, round)
	f.done = append(f.done, name)
	if f.try != nil {
		if err := f.try(name); err != nil {
			return Values{diskMS: 1}, err
		}
	}
	return Values{memoryMS: int64(round + 1)}, ctx.Err()
}

func (f *fake) Finish(context.Context, *Run) error { f.things--; return nil }

func (f *fake) Sweep(ctx context.Context, _ *Run) error { f.things = 0; return ctx.Err() }

func options(dir string) Options { return Options{Dir: dir, Trials: 2, Version: "1.2.3"} }

// kept reads the campaign back.
func kept(t *testing.T, dir string) (Manifest, []Row) {
	t.Helper()
	manifest, rows, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return manifest, rows
}

// wantError checks that an error says something.
func wantError(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q", err, says)
	}
}

func TestOrderRotates(t *testing.T) {
	t.Parallel()
	places := map[string]int{}
	for i, next := range turns([]string{"a", "b", "c"}, 5) {
		if next.round != i/3 {
			t.Errorf("turn %d is of round %d", i, next.round)
		}
		places[fmt.Sprint(next.subject, i%3)]++
	}
	for place, times := range places {
		if times != 2 { // of six rounds, with the warm-up
			t.Errorf("subject and place %s: %d times", place, times)
		}
	}
	if len(places) != 9 {
		t.Errorf("got %v", places)
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	campaign := &fake{subjects: []string{"a", "b"}}
	o := options(dir)
	var said []string
	o.Progress = func(fraction float64, doing string) { said = append(said, fmt.Sprintf("%.2f %s", fraction, doing)) }
	if err := Execute(t.Context(), campaign, o); err != nil {
		t.Fatal(err)
	}
	manifest, rows := kept(t, dir)
	if !manifest.Complete || manifest.Runs != 1 || campaign.things != 0 {
		t.Errorf("got %+v, %d things are left", manifest, campaign.things)
	}
	if diff := cmp.Diff([]string{"a0", "b0", "b1", "a1", "a2", "b2"}, campaign.done); diff != "" {
		t.Error(diff)
	}
	if rows[0].Kind != KindStage || rows[0].Values["thing_bytes"] != 5 || len(rows) != 7 {
		t.Errorf("got %+v", rows)
	}
	if got := summaryOf(rows, "a", memoryMS); got.Count != 2 || got.Min != 2 {
		t.Errorf("the warm-up is counted: %+v", got)
	}
	if said[0] != "0.00 preparing" || !strings.Contains(said[1], "a, warm-up") || said[len(said)-1] != "1.00 removing what was made" {
		t.Errorf("progress was %q", said)
	}
	wantError(t, Execute(t.Context(), campaign, options(dir)), "complete campaign")
}

func TestFailedTrialsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	campaign := &fake{subjects: []string{"a", "b"}, try: func(turn string) error {
		if turn == "b1" {
			return errors.New("wrong answer")
		}
		return nil
	}}
	wantError(t, Execute(t.Context(), campaign, options(dir)), "1 of its trials failed")
	manifest, rows := kept(t, dir)
	if !manifest.Complete || len(campaign.done) != 6 {
		t.Errorf("it did not go on: %v", campaign.done)
	}
	if got := summaryOf(rows, "b", memoryMS); got.Count != 1 {
		t.Errorf("got %+v", got)
	}
	text, err := Report(&manifest, rows, "")
	if err != nil || !strings.Contains(text, "- b, round 1: wrong answer\n") || !strings.Contains(text, "| b |  | 1 | 1 |") {
		t.Errorf("the report does not tell (%v):\n%s", err, text)
	}
}

func TestRemainsEndTheCampaign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	campaign := &fake{subjects: []string{"a", "b"}, try: func(string) error { return &RemainsError{Err: errors.New("it is still there")} }}
	wantError(t, Execute(t.Context(), campaign, options(dir)), "still there")
	if manifest, _ := kept(t, dir); manifest.Complete || len(campaign.done) != 1 || campaign.things != 0 {
		t.Errorf("complete %v, after %v, %d things are left", manifest.Complete, campaign.done, campaign.things)
	}
}

// interrupted runs a campaign that is interrupted in the first round, after a trial that failed.
func interrupted(t *testing.T, dir string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	campaign := &fake{subjects: []string{"a", "b"}, try: func(turn string) error {
		switch turn {
		case "b0":
			return errors.New("wrong answer")
		case "b1":
			interrupt()
		}
		return nil
	}}
	err := Execute(ctx, campaign, options(dir))
	wantError(t, err, "the same command goes on")
	if !errors.Is(err, context.Canceled) || campaign.things != 0 {
		t.Errorf("got %v, %d things are left", err, campaign.things)
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	interrupted(t, dir)
	manifest, rows := kept(t, dir)
	if manifest.Complete || !rows[len(rows)-1].Interrupted {
		t.Errorf("got %+v, %+v", manifest, rows[len(rows)-1])
	}
	if text, err := Report(&manifest, rows, ""); err != nil || !strings.Contains(text, "**This campaign is incomplete**") {
		t.Errorf("the report does not say so (%v):\n%s", err, text)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	interrupted(t, dir)
	before, _ := kept(t, dir)

	other := &fake{subjects: []string{"a", "b"}, settings: "other"}
	wantError(t, Execute(t.Context(), other, options(dir)), `size was "" and is "other"`)

	again := &fake{subjects: []string{"a", "b"}}
	wantError(t, Execute(t.Context(), again, options(dir)), "1 of its trials failed")
	if diff := cmp.Diff([]string{"b1", "a1", "a2", "b2"}, again.done); diff != "" {
		t.Error(diff)
	}
	after, rows := kept(t, dir)
	if !after.Complete || after.Runs != 2 || after.ID != before.ID {
		t.Errorf("got %+v", after)
	}
	if got := summaryOf(rows, "b", memoryMS); got.Count != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	campaign := &fake{subjects: []string{"a"}}
	campaign.try = func(turn string) error {
		if turn == "a0" {
			if err := Execute(t.Context(), &fake{subjects: []string{"a"}}, options(dir)); err == nil || !strings.Contains(err.Error(), "another run") {
				t.Errorf("got %v", err)
			}
		}
		return nil
	}
	if err := Execute(t.Context(), campaign, options(dir)); err != nil {
		t.Fatal(err)
	}
}
