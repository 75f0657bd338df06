// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"fmt"
	"io"
	"time"
)

// Progress shows long work to a person.
type Progress interface {
	// Begin shows that work begins.
	Begin(title string) Task
}

// Task is work that is under way.
type Task interface {
	// At shows how far it is, from 0 to 1, and what it is doing.
	At(fraction float64, doing string)
	// End shows that it is over.
	End(err error)
}

// Lines shows progress in lines, for a log.
type Lines struct{ Out io.Writer }

// Begin implements [Progress].
func (l Lines) Begin(title string) Task {
	say(l.Out, "%s ...\n", title)
	return &lineTask{out: l.Out, title: title, begun: time.Now()}
}

// lineTask shows a line whenever another quarter is done.
type lineTask struct {
	out      io.Writer
	title    string
	begun    time.Time
	quarters int
}

func (t *lineTask) At(fraction float64, doing string) {
	if quarters := int(fraction * 4); quarters > t.quarters {
		t.quarters = quarters
		say(t.out, "  %3.0f %% %s\n", fraction*100, doing)
	}
}

func (t *lineTask) End(err error) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	say(t.out, "%s: %s after %s\n", t.title, outcome, time.Since(t.begun).Round(100*time.Millisecond))
}

// say writes to a person. Work does not fail for want of a reader.
func say(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
