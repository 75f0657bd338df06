// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// WriteReport writes the report and the plots of a campaign into its directory, from its rows.
func WriteReport(dir string) error {
	manifest, rows, err := Load(dir)
	if err != nil {
		return err
	}
	for name := range plots {
		svg, err := svgOf(name, &manifest, rows)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), svg, 0o600); err != nil {
			return err
		}
	}
	text, err := Report(&manifest, rows, "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ReportFile), []byte(text), 0o600)
}

// Report tells of a campaign in Markdown, from its rows. The prefix goes before the names of the plots.
func Report(manifest *Manifest, rows []Row, plotPrefix string) (string, error) {
	layout, ok := layouts[manifest.Campaign]
	if !ok {
		return "", fmt.Errorf("there is no campaign %q", manifest.Campaign)
	}
	r := &report{manifest: manifest, rows: rows, layout: layout}
	r.printf("## %s\n\n%s\n", layout.title, layout.intro)
	r.state()
	r.subjects()
	r.compare()
	r.printf("\n![Distribution: %s](%s%s)\n", layout.primaryTitle, plotPrefix, distributionPlot)
	r.printf("\n![Breakdown: %s](%s%s)\n", layout.stepsTitle, plotPrefix, breakdownPlot)
	for _, table := range layout.tables {
		r.table(table)
	}
	r.stages()
	r.conditions()
	r.failures()
	r.list("What the numbers show, and what not", layout.limits)
	return r.text.String(), nil
}

// report is one that is being written.
type report struct {
	manifest *Manifest
	rows     []Row
	layout   *layout
	text     strings.Builder
}

func (r *report) printf(format string, args ...any) { fmt.Fprintf(&r.text, format, args...) }

func (r *report) list(title string, lines []string) {
	r.printf("\n### %s\n\n", title)
	for _, line := range lines {
		r.printf("- %s\n", line)
	}
}

// state says whether the campaign was completed, and how.
func (r *report) state() {
	switch {
	case !r.manifest.Complete:
		r.printf("\n**This campaign is incomplete**: it was interrupted or has failed, and the same command resumes it.\n")
	case r.manifest.Runs > 1:
		r.printf("\nThis campaign was interrupted and resumed: it took %d runs.\n", r.manifest.Runs)
	}
	if r.manifest.Host.emulated() {
		r.printf("\n**The processors of this host are emulated by software**: its times are to be compared with those of no other host.\n")
	}
}

// tried are the subjects that this host can try.
func (r *report) tried() []string { return available(r.manifest) }

func available(manifest *Manifest) []string {
	var names []string
	for _, subject := range manifest.Subjects {
		if subject.Unavailable == "" {
			names = append(names, subject.Name)
		}
	}
	return names
}

// subjects says what was tried, and what could not be.
func (r *report) subjects() {
	r.printf("\n| %s | what it is | trials | failed |\n| --- | --- | ---: | ---: |\n", r.layout.subject)
	for _, subject := range r.manifest.Subjects {
		if subject.Unavailable != "" {
			r.printf("| %s | %s | not available on this host: %s | |\n", subject.Name, subject.Meaning, subject.Unavailable)
			continue
		}
		good, failed := 0, 0
		for i := range r.rows {
			row := &r.rows[i]
			switch {
			case row.Kind != KindTrial || row.Subject != subject.Name || row.Round == 0 || row.Interrupted:
			case row.Error != "":
				failed++
			default:
				good++
			}
		}
		r.printf("| %s | %s | %d | %d |\n", subject.Name, subject.Meaning, good, failed)
	}
}

// compare sets every subject beside the one that all are measured against. Ranges that overlap are not ranked.
func (r *report) compare() {
	reference := r.layout.reference
	base := summaryOf(r.rows, reference, r.layout.primary)
	var lines []string
	for _, name := range r.tried() {
		if name == reference {
			continue
		}
		lines = append(lines, comparison(name, summaryOf(r.rows, name, r.layout.primary), reference, base))
	}
	r.list("Compared: "+r.layout.primaryTitle, append(lines, r.overlapping()...))
}

// comparison puts two subjects beside each other in words.
func comparison(name string, of Summary, reference string, base Summary) string {
	switch {
	case of.Count == 0 || base.Count == 0:
		return fmt.Sprintf("%s and %s: not both were measured.", name, reference)
	case of.Overlaps(base):
		return fmt.Sprintf("%s and %s overlap (%s and %s), so they are not ranked.", name, reference, span(of), span(base))
	case of.Median < base.Median:
		return fmt.Sprintf("**%s** took less than %s every time (%s against %s); by the medians it is %.1f times as fast.",
			name, reference, span(of), span(base), float64(base.Median)/float64(max(of.Median, 1)))
	default:
		return fmt.Sprintf("**%s** took more than %s every time (%s against %s); by the medians it is %.1f times as slow.",
			name, reference, span(of), span(base), float64(of.Median)/float64(max(base.Median, 1)))
	}
}

func span(s Summary) string { return seconds(s.Min) + " to " + seconds(s.Max) }

// overlapping names the other pairs that are not ranked.
func (r *report) overlapping() []string {
	var lines []string
	names := slices.DeleteFunc(r.tried(), func(name string) bool { return name == r.layout.reference })
	for i, name := range names {
		for _, other := range names[i+1:] {
			a, b := summaryOf(r.rows, name, r.layout.primary), summaryOf(r.rows, other, r.layout.primary)
			if a.Count > 0 && b.Count > 0 && a.Overlaps(b) {
				lines = append(lines, comparison(name, a, other, b))
			}
		}
	}
	return lines
}

// stages lists what is done once for many trials. Each is one observation.
func (r *report) stages() {
	r.printf("\n### Preparation and lifecycle\n\nEach of these is a single observation, not a distribution.\n\n| stage | took | besides |\n| --- | ---: | --- |\n")
	for i := range r.rows {
		row := &r.rows[i]
		if row.Kind != KindStage {
			continue
		}
		var besides []string
		for _, measure := range slices.Sorted(maps.Keys(row.Values)) {
			if measure != TookMS {
				besides = append(besides, measureName(measure)+" "+unit(measure)(row.Values[measure]))
			}
		}
		if row.Error != "" {
			besides = append(besides, "**failed**")
		}
		r.printf("| %s | %s | %s |\n", row.Subject, seconds(row.Values[TookMS]), strings.Join(besides, ", "))
	}
}

// conditions says what the figures depend on.
func (r *report) conditions() {
	m := r.manifest
	lines := []string{
		fmt.Sprintf("terraform-provider-lab %s, begun at %s.", m.Version, m.Started.UTC().Format(time.RFC3339)),
		fmt.Sprintf("%s on %s, %s; %s, %d processors (%s), %s of memory.", m.Host.Daemon, m.Host.OS, m.Host.Kernel, m.Host.Kind, m.Host.CPUs, m.Host.CPU, mebibytes(int64(m.Host.MemoryBytes))), //nolint:gosec // bytes of memory
		fmt.Sprintf("%d trials of each, after one that warms up and is kept in the rows but not counted; the order rotates from round to round.", m.Trials),
	}
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		lines = append(lines, fmt.Sprintf("%s: %s.", name, m.Settings[name]))
	}
	var load []int64
	for _, name := range r.tried() {
		load = append(load, observations(r.rows, name, hostLoad)...)
	}
	if s := Summarize(load); s.Count > 0 {
		lines = append(lines, fmt.Sprintf("Load average of the host when a trial began: median %s, from %s to %s.", hundredths(s.Median), hundredths(s.Min), hundredths(s.Max)))
	} else {
		lines = append(lines, "Load average of the host: not measured.")
	}
	r.list("Conditions", lines)
}

// failures lists what went wrong; nothing is left out.
func (r *report) failures() {
	var lines []string
	for i := range r.rows {
		row := &r.rows[i]
		if row.Error == "" {
			continue
		}
		what := row.Subject
		if row.Kind == KindTrial {
			what += ", " + roundName(row.Round)
		}
		if row.Interrupted {
			what += ", interrupted"
		}
		lines = append(lines, fmt.Sprintf("%s: %s", what, strings.Join(strings.Fields(row.Error), " ")))
	}
	if len(lines) == 0 {
		lines = []string{"None. Every trial gave what it had to, and what it made was gone afterwards."}
	}
	r.list("Failures", lines)
}
