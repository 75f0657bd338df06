// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// showJSON writes a report for a program.
func showJSON(out io.Writer, report *capability.Report) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

// showReport writes a report for a person: the verdicts as a table, each bad one with why and what helps, and then what
// that comes to.
func showReport(out io.Writer, report *capability.Report) error {
	var text bytes.Buffer
	if server := report.Server; server.Product != "" {
		fmt.Fprintf(&text, "%s %s on %s, kernel %s\n%s, project %s\n\n",
			server.Product, server.Version, server.OS, server.Kernel, server.Address, server.Project)
	}
	rows, err := table(report.Findings)
	if err != nil {
		return err
	}
	fmt.Fprintln(&text, rows[0])
	for i, finding := range report.Findings {
		fmt.Fprintln(&text, rows[i+1])
		more := i+1 < len(report.Findings) && alike(finding, report.Findings[i+1])
		if !finding.Verdict.Usable() && !more {
			explain(&text, finding)
		}
	}
	fmt.Fprintf(&text, "\n%s\n", conclusion(report))
	_, err = out.Write(text.Bytes())
	return err
}

// table gives a row for each finding, below a row of titles.
func table(findings []capability.Finding) ([]string, error) {
	rows := []string{"CAPABILITY\tOF\tVERDICT\tJUDGED"}
	for _, finding := range findings {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", finding.Capability, subject(finding), finding.Verdict, finding.Judged))
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, strings.Join(rows, "\n")); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return strings.Split(text.String(), "\n"), nil
}

// subject is what a finding is about, in words.
func subject(finding capability.Finding) string {
	if finding.Subject == "" {
		return "host"
	}
	return "pool " + finding.Subject
}

// alike says whether one explanation serves two findings.
func alike(a, b capability.Finding) bool {
	return a.Subject == b.Subject && a.Verdict == b.Verdict && a.Reason == b.Reason && a.Remedy == b.Remedy && slices.Equal(a.Evidence, b.Evidence)
}

// explain says why a verdict is bad, and what helps.
func explain(text *bytes.Buffer, finding capability.Finding) {
	if finding.Reason != "" {
		fmt.Fprintf(text, "    %s\n", finding.Reason)
	}
	for _, line := range finding.Evidence {
		fmt.Fprintf(text, "    - %s\n", line)
	}
	if finding.Remedy != "" {
		fmt.Fprintf(text, "    What helps: %s\n", finding.Remedy)
	}
}

// conclusion is the summary without the explanations that the table has given already.
func conclusion(report *capability.Report) string {
	if report.Adequate {
		return report.Summary
	}
	text, _, _ := strings.Cut(report.Summary, "\n")
	var lacks []string
	for _, finding := range report.Lacking {
		lacks = append(lacks, fmt.Sprintf("%s of %s (%s)", finding.Capability, subject(finding), finding.Verdict))
	}
	return text + "\nIn the way: " + strings.Join(lacks, ", ")
}
