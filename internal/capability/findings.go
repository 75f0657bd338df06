// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// How verdicts come about.
const (
	byDaemon = "by the daemon's word"
	byFacts  = "by the driver and configuration that the daemon reports"
	byDoing  = "by doing it"
	byLook   = "by a look at the host"
)

// leastFreeBytes is what the daemon's disk must have left for a pool that can at least be probed.
const leastFreeBytes = 1 << 30

// hostFindings are the verdicts on the host as a whole.
func (f *Facts) hostFindings(address string) []Finding {
	return append([]Finding{
		{
			Capability: Daemon, Verdict: Proven, Judged: byDoing,
			Evidence: append([]string{fmt.Sprintf("%s %s answers at %s and trusts this client", f.product(), f.Environment.ServerVersion, address)}, f.Untold...),
		},
		f.typeFinding(Containers, api.InstanceTypeContainer),
		f.typeFinding(VirtualMachines, api.InstanceTypeVM),
		f.checkpointFinding(),
		f.driverFinding(),
		f.keptFinding(),
		f.hostHeadroom(),
	}, f.clusterFinding()...)
}

// typeFinding judges a type of machines. The daemon says that it can run one without having run it.
func (f *Facts) typeFinding(capability Capability, kind api.InstanceType) Finding {
	finding := Finding{
		Capability: capability, Verdict: Reported, Judged: byDaemon,
		Evidence: []string{f.runsWith()},
	}
	refusal := f.refuseType(MachineAsk{Type: kind})
	listed := slices.Contains(f.instanceTypes(), kind)
	switch words := f.notOperational(); {
	case refusal != nil:
		finding.Verdict, finding.Evidence, finding.Reason, finding.Remedy = Absent, refusal.Evidence, refusal.Found, refusal.Remedy
		if listed {
			finding.Verdict = Degraded
		}
	case kind == api.InstanceTypeVM && len(words) > 0:
		finding.Verdict, finding.Reason = Degraded, "a member of the cluster warns that virtual machines do not run"
		finding.Evidence = append(finding.Evidence, words...)
		finding.Remedy = "Give that member's host what the warning names, and restart its daemon."
	case len(f.instanceTypes()) == 0:
		finding.Verdict, finding.Reason = Unproven, "the daemon does not tell what it runs"
	}
	return finding
}

// checkpointFinding judges the keeping of memory, which only virtual machines have.
func (f *Facts) checkpointFinding() Finding {
	finding := Finding{Capability: Checkpoints, Verdict: Unproven, Judged: byDaemon, Reason: "only a stateful snapshot of a running virtual machine proves it"}
	if machines := f.typeFinding(VirtualMachines, api.InstanceTypeVM); !machines.Verdict.Usable() {
		finding.Verdict, finding.Evidence, finding.Remedy = Absent, machines.Evidence, machines.Remedy
		finding.Reason = "only a virtual machine can keep its memory, and the daemon runs none"
	}
	return finding
}

// driverFinding judges whether a pool that copies on write can be made.
func (f *Facts) driverFinding() Finding {
	finding := Finding{Capability: Pools, Verdict: Reported, Judged: byDaemon, Evidence: []string{f.offers()}}
	refusal := f.refusePoolOf(DefaultDriver)
	if refusal == nil {
		if !slices.Contains(f.drivers(), DefaultDriver) {
			finding.Judged = byLook
			finding.Evidence = append(finding.Evidence, fmt.Sprintf("the tools of %s are there; the daemon's list dates from before them", DefaultDriver))
		}
		return finding
	}
	for _, driver := range copyOnWrite {
		if f.refusePoolOf(driver) == nil {
			finding.Evidence = append(finding.Evidence, "usable: "+driver)
			return finding
		}
	}
	finding.Verdict, finding.Evidence = Absent, refusal.Evidence
	finding.Reason, finding.Remedy = refusal.Found, refusal.Remedy
	return finding
}

// refusePoolOf refuses a pool of a driver that cannot be made here.
func (f *Facts) refusePoolOf(driver string) *Refusal {
	ask := PoolAsk{Name: "lab", Driver: driver}
	if refusal := f.refuseMembers(ask); refusal != nil {
		return refusal
	}
	return f.refuseDriver(ask)
}

// hostHeadroom judges whether there is room for a pool at all.
func (f *Facts) hostHeadroom() Finding {
	finding := Finding{Capability: Headroom, Verdict: Unproven, Judged: byDaemon, Reason: "the daemon's disk is on another host and cannot be seen from here"}
	if f.Resources != nil {
		finding.Evidence = append(finding.Evidence, fmt.Sprintf("the host has %d processors and %s of memory, of which %s is in use",
			f.Resources.CPU.Total, size(int64(f.Resources.Memory.Total)), size(int64(f.Resources.Memory.Used)))) //nolint:gosec // bytes of memory
	}
	free, known := f.freeForLoops()
	if !known {
		return finding
	}
	finding.Verdict, finding.Judged, finding.Reason = Reported, byLook, ""
	finding.Evidence = append(finding.Evidence, fmt.Sprintf("free on the disk of %s: %s", f.host.loopDir(), size(free)))
	if free < leastFreeBytes {
		finding.Verdict, finding.Reason = Degraded, fmt.Sprintf("the daemon's disk has less than %s free", size(leastFreeBytes))
		finding.Remedy = "Free some of the disk."
	}
	return finding
}

// poolFindings are the verdicts on one pool.
func (f *Facts) poolFindings(pool PoolFacts, result probed) []Finding {
	t := f.traits(pool)
	proof := cmp.Or(result.proof, f.proofOf(pool))
	branches := poolFinding(Branches, pool, t.branches)
	branches.Evidence = append(branches.Evidence, f.quotas(pool)...)
	findings := []Finding{poolFinding(Snapshots, pool, t.snapshots), branches, poolFinding(Restores, pool, t.restores)}
	switch {
	case proof != nil:
		for i, measure := range []Measure{proof.Snapshot, proof.Branch, proof.Restore} {
			findings[i].prove(proof, measure)
		}
	case result.refusal != nil:
		for i := range findings {
			findings[i].Verdict, findings[i].Reason, findings[i].Remedy = Unproven, result.refusal.Found, result.refusal.Remedy
			findings[i].Evidence = append(findings[i].Evidence, result.refusal.Evidence...)
		}
	}
	past := []Finding{poolFinding(PastSnapshots, pool, t.pastSnapshots), poolFinding(PastBranches, pool, t.pastBranches)}
	if proof != nil && t.pastSnapshots.verdict == Reported {
		// The probe's restores went back past newer snapshots, and past branches, and came back.
		for i := range past {
			past[i].Verdict, past[i].Judged = Proven, proof.judged()
		}
	}
	return append(append(findings, past...), f.poolHeadroom(pool))
}

// poolFinding is a verdict by the facts.
func poolFinding(capability Capability, pool PoolFacts, j judgement) Finding {
	return Finding{
		Capability: capability, Subject: pool.Name, Verdict: j.verdict, Reason: j.reason, Remedy: j.remedy, Judged: byFacts,
		Evidence: []string{fmt.Sprintf("pool %q has the driver %q", pool.Name, pool.Driver)},
	}
}

// prove puts a measurement in the place of what the facts say.
func (f *Finding) prove(proof *Proof, measure Measure) {
	what := map[Capability]string{Snapshots: "a snapshot", Branches: "a branch", Restores: "a restore"}[f.Capability]
	f.Verdict, f.Judged = measure.Verdict, proof.judged()
	f.Evidence = append(f.Evidence, measure.describe(what, proof.SizeBytes))
	switch measure.Verdict {
	case Proven:
		f.Reason, f.Remedy = "", ""
	case Unproven:
		f.Reason, f.Remedy = "the measurements contradict each other", "Try again when the host is less busy."
	default:
		f.Reason = cmp.Or(f.Reason, "it was done, and what it did was a copy")
		f.Remedy = cmp.Or(f.Remedy, `Use a pool with driver = "btrfs".`)
	}
}

func (p *Proof) judged() string {
	return fmt.Sprintf("%s on %s, by %s", byDoing, p.Date.Format("2006-01-02 15:04 MST"), strings.Join(p.Judged, " and "))
}

// poolHeadroom judges whether the disk below a pool can hold what the pool promises.
func (f *Facts) poolHeadroom(pool PoolFacts) Finding {
	finding := Finding{
		Capability: Headroom, Subject: pool.Name, Verdict: Reported, Judged: byDaemon,
		Evidence: []string{fmt.Sprintf("free in pool %q: %s of %s", pool.Name, size(pool.FreeBytes), size(pool.TotalBytes))},
	}
	if pool.TotalBytes == 0 {
		finding.Verdict, finding.Evidence, finding.Reason = Unproven, nil, "the daemon does not tell the pool's space"
		return finding
	}
	if !onLoopFile(pool.Config["source"]) {
		return finding
	}
	free, known := f.freeForLoops()
	if !known {
		finding.Verdict, finding.Reason = Unproven, "the pool is on a sparse loop file, whose disk cannot be seen from here"
		return finding
	}
	finding.Judged = byLook
	finding.Evidence = append(finding.Evidence, fmt.Sprintf("free on the disk of %s: %s", pool.Config["source"], size(free)))
	if pool.FreeBytes > free {
		finding.Verdict, finding.Reason = Degraded, "the pool is on a sparse loop file and promises more than its disk has left"
		finding.Remedy = "Free some of the disk, or make a smaller pool."
	}
	return finding
}

// worstOf gives the worst verdict on snapshot, branch and restore.
func worstOf(findings []Finding) Verdict {
	order := []Verdict{Absent, Degraded, Unproven, Reported, Proven}
	worst := Proven
	for _, finding := range findings {
		if !slices.Contains([]Capability{Snapshots, Branches, Restores}, finding.Capability) {
			continue
		}
		if slices.Index(order, finding.Verdict) < slices.Index(order, worst) {
			worst = finding.Verdict
		}
	}
	return worst
}
