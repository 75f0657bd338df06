// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// trialTimeout bounds one trial; one that takes longer has failed.
const trialTimeout = 10 * time.Minute

// Options say how a campaign is run.
type Options struct {
	// Dir is where rows and report go. A campaign that was interrupted there is resumed.
	Dir string
	// Trials is how many times each subject is tried, besides the warm-up.
	Trials int
	// Version is that of this program.
	Version string
	// Host is what the figures were taken on.
	Host Facts
	// Progress is told how far it is, from 0 to 1, and what is being done.
	Progress func(fraction float64, doing string)
}

// Execute runs a campaign, or the rest of one, and writes its report. When the context ends, what was made is removed,
// and the campaign can be resumed in the same directory.
func Execute(ctx context.Context, campaign Campaign, options Options) (err error) {
	store, err := openStore(campaign, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.close()) }()

	e := &engine{campaign: campaign, options: options, store: store, run: &Run{ID: store.manifest.ID, store: store}}
	err = e.sweepAnd(ctx, e.work)
	if err == nil {
		err = store.finish()
	}
	switch failed := store.failed(); {
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted; the same command goes on from here: %w", err)
	case err == nil && failed > 0:
		err = fmt.Errorf("the campaign is complete, but %d of its trials failed; the report tells of each", failed)
	}
	return errors.Join(err, WriteReport(options.Dir))
}

// engine is a campaign under way.
type engine struct {
	campaign Campaign
	options  Options
	store    *store
	run      *Run
}

// sweepAnd does work between two sweeps: there may be remains of a run that was killed, and of this one.
func (e *engine) sweepAnd(ctx context.Context, work func(context.Context) error) (err error) {
	if err := e.campaign.Sweep(ctx, e.run); err != nil {
		return fmt.Errorf("remove what an earlier run has left: %w", err)
	}
	defer func() {
		ctx, cancel := detached(ctx)
		defer cancel()
		if sweepErr := e.campaign.Sweep(ctx, e.run); sweepErr != nil {
			err = errors.Join(err, fmt.Errorf("remove what was made: %w", sweepErr))
		}
	}()
	return work(ctx)
}

// work prepares, tries what is still to be tried, and checks that nothing is left.
func (e *engine) work(ctx context.Context) error {
	todo := e.todo()
	if len(todo) == 0 {
		return nil
	}
	e.progress(todo, 0, "preparing")
	if err := e.campaign.Prepare(ctx, e.run); err != nil {
		return err
	}
	for done, next := range todo {
		e.progress(todo, done, fmt.Sprintf("%s, %s", next.subject, roundName(next.round)))
		if err := e.try(ctx, next); err != nil {
			return err
		}
	}
	e.progress(todo, len(todo), "removing what was made")
	return e.campaign.Finish(ctx, e.run)
}

// turn is one trial that is to be done.
type turn struct {
	subject string
	round   int
}

func roundName(round int) string {
	if round == 0 {
		return "warm-up"
	}
	return fmt.Sprintf("round %d", round)
}

// todo lists the trials that are still to be done, in order.
func (e *engine) todo() []turn {
	var names []string
	for _, subject := range e.store.manifest.Subjects {
		if subject.Unavailable == "" {
			names = append(names, subject.Name)
		}
	}
	return slices.DeleteFunc(turns(names, e.options.Trials), e.store.tried)
}

// turns lists all trials: round 0 is the warm-up, and the order rotates, so that every subject is tried in every place
// equally often.
func turns(subjects []string, trials int) []turn {
	var all []turn
	for round := range trials + 1 {
		for place := range subjects {
			all = append(all, turn{subjects[(round+place)%len(subjects)], round})
		}
	}
	return all
}

// try does one trial and writes its row. An error ends the campaign; that of a failed trial is in its row.
func (e *engine) try(ctx context.Context, next turn) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	row := Row{Kind: KindTrial, Subject: next.subject, Round: next.round, Start: time.Now()}
	values, err := e.campaign.Try(bounded, e.run, next.subject, next.round)
	row.Values = Values{TookMS: time.Since(row.Start).Milliseconds()}
	maps.Copy(row.Values, values)
	if err != nil {
		row.Error, row.Interrupted = err.Error(), ctx.Err() != nil
	}
	if writeErr := e.store.append(row); writeErr != nil {
		return writeErr
	}
	if _, remains := errors.AsType[*RemainsError](err); remains || ctx.Err() != nil {
		return err
	}
	return nil
}

// progress says how far it is, and how long the rest will take if it goes on as before.
func (e *engine) progress(todo []turn, done int, doing string) {
	if e.options.Progress == nil {
		return
	}
	if left, known := e.store.left(todo[done:]); known && left > 0 {
		doing += fmt.Sprintf(", about %s left", left.Round(time.Second))
	}
	e.options.Progress(float64(done)/float64(len(todo)), doing)
}
