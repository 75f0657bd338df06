// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"fmt"
	"slices"
	"strings"
)

// column is one figure of a subject.
type column struct {
	title, measure string
	of             func(Summary) int64
	// stage is the beginning of the title of the stage that it is an observation of, where it is not one of trials.
	stage string
}

// table is a table of a report.
type table struct {
	title, intro string
	columns      []column
	// turned has a row for each figure in the place of one for each subject.
	turned bool
}

func median(s Summary) int64 { return s.Median }
func p95(s Summary) int64    { return s.P95 }

// table writes one. What could not be measured says so.
func (r *report) table(t table) {
	names := r.tried()
	cell := func(name string, c column) string {
		if c.stage != "" {
			return r.observed(c.stage+name, c.measure)
		}
		s := summaryOf(r.rows, name, c.measure)
		if s.Count == 0 {
			return notMeasured
		}
		return unit(c.measure)(c.of(s))
	}
	head := []string{r.layout.subject}
	var lines [][]string
	if t.turned {
		head = append([]string{""}, names...)
		for _, c := range t.columns {
			line := []string{c.title}
			for _, name := range names {
				line = append(line, cell(name, c))
			}
			lines = append(lines, line)
		}
	} else {
		for _, c := range t.columns {
			head = append(head, c.title)
		}
		for _, name := range names {
			line := []string{name}
			for _, c := range t.columns {
				line = append(line, cell(name, c))
			}
			lines = append(lines, line)
		}
	}
	r.printf("\n### %s\n\n", t.title)
	if t.intro != "" {
		r.printf("%s\n\n", t.intro)
	}
	r.printf("| %s |\n| --- |%s\n", strings.Join(head, " | "), strings.Repeat(" ---: |", len(head)-1))
	for _, line := range lines {
		r.printf("| %s |\n", strings.Join(line, " | "))
	}
}

// observed is what was measured at a stage, the last time that it was done.
func (r *report) observed(stage, measure string) string {
	for i := range slices.Backward(r.rows) {
		row := &r.rows[i]
		if value, measured := row.Values[measure]; measured && row.Kind == KindStage && row.Subject == stage && row.Error == "" {
			return unit(measure)(value)
		}
	}
	return notMeasured
}

const notMeasured = "not measured"

// unit is how values of a measure are shown.
func unit(measure string) func(int64) string {
	switch {
	case strings.HasSuffix(measure, "_bytes"):
		return mebibytes
	case measure == hostLoad:
		return hundredths
	default:
		return seconds
	}
}

// measureName is a measure in words.
func measureName(measure string) string {
	name := strings.TrimSuffix(strings.TrimSuffix(measure, "_ms"), "_bytes")
	return strings.ReplaceAll(name, "_", " ")
}

func seconds(ms int64) string { return fmt.Sprintf("%.3f s", float64(ms)/1000) }

func mebibytes(bytes int64) string { return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20)) }

func hundredths(centi int64) string { return fmt.Sprintf("%.2f", float64(centi)/100) }
