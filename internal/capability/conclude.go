// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"slices"
	"strings"
)

// conclude says from the findings whether the host is adequate, and why.
func (r *Report) conclude(facts *Facts, request Request) {
	needed := []Finding{}
	for _, finding := range r.Findings {
		if r.needs(finding, request) {
			needed = append(needed, finding)
		}
	}
	where := fmt.Sprintf("%s %s on %s", r.Server.Product, r.Server.Version, r.Server.OS)
	if request.Pool != "" && !slices.ContainsFunc(r.Pools, func(p PoolReport) bool { return p.Name == request.Pool }) {
		r.Lacking = []Finding{{Capability: Pools, Subject: request.Pool, Verdict: Absent, Judged: byDaemon, Reason: "the daemon has no such pool"}}
		r.Summary = fmt.Sprintf("%s is not adequate: it has no pool %q.", where, request.Pool)
		return
	}
	needed = append(slices.DeleteFunc(needed, func(f Finding) bool { return acceptable(f, request) }), r.unheardOf(request)...)
	if len(needed) > 0 {
		r.Lacking = needed
		r.Summary = fmt.Sprintf("%s is not adequate.%s", where, problems(slices.Clone(needed)))
		return
	}
	r.Adequate = true
	r.Summary = fmt.Sprintf("%s is adequate: %s.", where, r.strengths(facts, request))
}

// problems puts findings in words, those with one reason together.
func problems(findings []Finding) string {
	var text strings.Builder
	for len(findings) > 0 {
		first := findings[0]
		same := func(f Finding) bool {
			return f.Subject == first.Subject && f.Verdict == first.Verdict && f.Reason == first.Reason
		}
		var titles, evidence []string
		for _, finding := range findings {
			if !same(finding) {
				continue
			}
			titles = append(titles, finding.Capability.Title())
			for _, line := range finding.Evidence {
				if !slices.Contains(evidence, line) {
					evidence = append(evidence, line)
				}
			}
		}
		findings = slices.DeleteFunc(findings, same)
		fmt.Fprintf(&text, "\n%s", strings.Join(titles, ", "))
		if first.Subject != "" {
			fmt.Fprintf(&text, " on pool %q", first.Subject)
		}
		fmt.Fprintf(&text, " %s: %s.", first.Verdict, first.Reason)
		for _, line := range evidence {
			fmt.Fprintf(&text, "\n  - %s", line)
		}
		if first.Remedy != "" {
			fmt.Fprintf(&text, "\n  What helps: %s", first.Remedy)
		}
	}
	return text.String()
}

// needs says whether a lab depends on what a finding is about. Without a pool of its own to ask for, it depends on
// being able to make one.
func (r *Report) needs(finding Finding, request Request) bool {
	required := slices.Contains(request.Require, finding.Capability)
	if finding.Subject != "" {
		return finding.Subject == request.Pool && (required || slices.Contains([]Capability{Snapshots, Branches, Restores, Headroom}, finding.Capability))
	}
	switch finding.Capability {
	case Daemon, Containers:
		return true
	case Pools, Headroom:
		return request.Pool == "" || required && finding.Capability == Pools
	default:
		return required
	}
}

// acceptable says whether a verdict will do. What was to be proved must be; room that cannot be seen is given the
// benefit of the doubt.
func acceptable(finding Finding, request Request) bool {
	if finding.Capability == Headroom {
		return finding.Verdict != Degraded && finding.Verdict != Absent
	}
	if finding.Subject != "" && slices.Contains(request.Prove, CopyOnWrite) {
		return finding.Verdict == Proven
	}
	return finding.Verdict.Usable()
}

// strengths says what an adequate host has.
func (r *Report) strengths(facts *Facts, request Request) string {
	for _, pool := range r.Pools {
		if pool.Name == request.Pool {
			return fmt.Sprintf("pool %q (%s) is %s to copy on write", pool.Name, pool.Driver, pool.CopyOnWrite)
		}
	}
	proven := []string{}
	for _, pool := range r.Pools {
		if pool.CopyOnWrite == Proven {
			proven = append(proven, pool.Name)
		}
	}
	text := "it runs containers, and offers the storage drivers: " + strings.Join(facts.drivers(), ", ")
	if len(proven) > 0 {
		text += "; proven to copy on write: pool " + strings.Join(proven, ", ")
	}
	return text
}
