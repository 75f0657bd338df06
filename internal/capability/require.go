// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"slices"
	"strings"
)

// ofPools are the capabilities that each pool has, or has not, by itself.
var ofPools = []Capability{Snapshots, Branches, Restores, PastSnapshots, PastBranches}

// Requirable lists what [Request.Require] may hold, the host's capabilities before the pools'.
func Requirable() []Capability {
	return append([]Capability{Daemon, Containers, VirtualMachines, Checkpoints, KeptSnapshots, Pools, Headroom, Cluster}, ofPools...)
}

// Check says whether a request can be answered at all, on whatever host.
func (r Request) Check() error {
	for _, name := range r.Prove {
		if !slices.Contains(Provable(), name) {
			return fmt.Errorf("cannot prove %q: what can be proved is %s", name, strings.Join(Provable(), ", "))
		}
	}
	for _, capability := range r.Require {
		switch {
		case !slices.Contains(Requirable(), capability):
			return fmt.Errorf("cannot require %q: what can be required is %s", capability, join(Requirable()))
		case r.Pool == "" && slices.Contains(ofPools, capability):
			return fmt.Errorf("cannot require %q of the host: it is judged for each pool by itself, so name the pool", capability)
		}
	}
	return nil
}

func join(capabilities []Capability) string {
	names := make([]string, len(capabilities))
	for i, capability := range capabilities {
		names[i] = string(capability)
	}
	return strings.Join(names, ", ")
}

// unheardOf gives a finding for each required capability that there is none about.
func (r *Report) unheardOf(request Request) []Finding {
	var findings []Finding
	for _, capability := range request.Require {
		if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Capability == capability }) {
			findings = append(findings, Finding{Capability: capability, Verdict: Absent, Judged: byDaemon, Reason: "the daemon has none"})
		}
	}
	return findings
}

// Undecided says that the host is not adequate only because something could not be found out.
func (r *Report) Undecided() bool {
	return len(r.Lacking) > 0 && !slices.ContainsFunc(r.Lacking, func(f Finding) bool { return f.Verdict == Degraded || f.Verdict == Absent })
}
