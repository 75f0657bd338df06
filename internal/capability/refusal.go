// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"strings"
)

// Refusal is an error: what was asked for cannot be had on this host, or not in the way that a lab relies on.
type Refusal struct {
	// Capability is what is missing.
	Capability Capability
	// Argument is the argument at fault, as a person writes it ("driver", "config"); empty when it is none in particular.
	Argument string
	// Asked is what was asked for, as a noun phrase.
	Asked string
	// Found is what was found instead, as a clause.
	Found string
	// Evidence is what the judgement rests on: figures, and the daemon's own words.
	Evidence []string
	// Remedy is what to do about it, as a sentence, where possible with a command for this host.
	Remedy string
}

// Summary is the refusal in one line, for the title of a diagnostic.
func (r *Refusal) Summary() string { return "Host refused: " + r.Capability.Title() }

// Detail is the refusal in full, in lines: what was asked, what was found, the evidence, and what helps.
func (r *Refusal) Detail() string {
	var text strings.Builder
	if r.Asked != "" {
		fmt.Fprintf(&text, "Asked for: %s.\n", r.Asked)
	}
	fmt.Fprintf(&text, "Found: %s.", r.Found)
	for _, line := range r.Evidence {
		fmt.Fprintf(&text, "\n  - %s", line)
	}
	if r.Remedy != "" {
		fmt.Fprintf(&text, "\n\nWhat helps: %s", r.Remedy)
	}
	return text.String()
}

// Error is the refusal in one line, without its remedy.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("host refused %s: %s", r.Capability.Title(), r.Found)
	if len(r.Evidence) > 0 {
		text += " (" + strings.Join(r.Evidence, "; ") + ")"
	}
	return text
}
