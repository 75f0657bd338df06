// SPDX-License-Identifier: MPL-2.0

// Package bench measures what a lab costs on a host, and says what the figures show. A campaign tries several subjects
// side by side (ways to get a machine, or storage drivers): each once a round, in an order that rotates, after a round
// that warms up and is kept but not counted. Every observation is kept as a raw row; the report is made of the rows and
// of nothing else, so that anybody can make it again.
package bench

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// Values are what was measured, by the name of the measure: times in milliseconds ("…_ms"), sizes in bytes ("…_bytes").
// What could not be measured is missing.
type Values map[string]int64

// Kinds of rows.
const (
	// KindTrial is one try of one subject.
	KindTrial = "trial"
	// KindStage is something that is done once for many trials: a preparation, or what is undone in the end.
	KindStage = "stage"
)

// TookMS is the measure that every row has: how long all of it took, with checks and cleanup.
const TookMS = "took_ms"

// Row is one observation.
type Row struct {
	Kind string `json:"kind"`
	// Subject is what was tried; for a stage it is what was done, in words.
	Subject string `json:"subject"`
	// Round is 0 for the warm-up; stages belong to none.
	Round int `json:"round"`
	// Run tells the parts of a campaign that was interrupted and resumed, from 1.
	Run int `json:"run"`
	// Start is when it began.
	Start  time.Time `json:"start"`
	Values Values    `json:"values"`
	// Error is why it failed; such a row is kept and not counted.
	Error string `json:"error,omitempty"`
	// Interrupted says that it was broken off from outside. It is made up for when the campaign is resumed.
	Interrupted bool `json:"interrupted,omitempty"`
}

// counted says whether the row is an observation that statistics are made of.
func (r *Row) counted() bool { return r.Kind == KindTrial && r.Round > 0 && r.Error == "" }

// Subject is one of the things that a campaign tries side by side.
type Subject struct {
	Name string `json:"name"`
	// Meaning says what it is, for a person.
	Meaning string `json:"meaning"`
	// Unavailable is why this host cannot do it; empty where it can.
	Unavailable string `json:"unavailable,omitempty"`
}

// Campaign is what the engine runs. What it makes on the daemon it marks with [Run.ID], so that a later run finds it.
type Campaign interface {
	// Name says which one it is; reports are laid out by it.
	Name() string
	Subjects() []Subject
	// Settings are what else the figures depend on, by name.
	Settings() map[string]string
	// Prepare makes what the trials need.
	Prepare(ctx context.Context, run *Run) error
	// Try does one trial and removes what it made, also when the context ends. An error that is a [RemainsError] ends
	// the campaign; after any other the next trial goes on.
	Try(ctx context.Context, run *Run, subject string, round int) (Values, error)
	// Finish removes what Prepare made, and checks that nothing is left.
	Finish(ctx context.Context, run *Run) error
	// Sweep removes everything that carries the mark: what a run that was killed or broken off has left.
	Sweep(ctx context.Context, run *Run) error
}

// RemainsError is a trial that could not remove what it made, or that spoilt what other trials stand on.
type RemainsError struct{ Err error }

func (e *RemainsError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *RemainsError) Unwrap() error { return e.Err }

// Run is one run of a campaign, or one part of it where it is interrupted and resumed.
type Run struct {
	// ID marks what the campaign makes.
	ID    string
	store *store
}

// Stage does something that is done once, and writes a row of how long it took and what else was measured.
func (r *Run) Stage(ctx context.Context, title string, work func(ctx context.Context) (Values, error)) error {
	row := Row{Kind: KindStage, Subject: title, Start: time.Now()}
	values, err := work(ctx)
	row.Values = Values{TookMS: time.Since(row.Start).Milliseconds()}
	maps.Copy(row.Values, values)
	if err != nil {
		row.Error, row.Interrupted = err.Error(), ctx.Err() != nil
		err = fmt.Errorf("%s: %w", title, err)
	}
	if writeErr := r.store.append(row); writeErr != nil && err == nil {
		err = writeErr
	}
	return err
}

// cleanTimeout bounds what is removed after a failure or an interrupt.
const cleanTimeout = 5 * time.Minute

// detached is a context for removing things: it outlives its parent, but not by long.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
}
