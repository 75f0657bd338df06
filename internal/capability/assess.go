// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// CopyOnWrite is what may be asked to be proved: snapshot, branch and restore of a pool.
const CopyOnWrite = "copy_on_write"

// Provable lists what [Request.Prove] may hold: that pools copy on write, that a container runs a command, and that a
// virtual machine starts.
func Provable() []string { return []string{CopyOnWrite, string(Containers), string(VirtualMachines)} }

// Request says what to assess.
type Request struct {
	// Pool is the pool that the verdict is about. Without it the verdict is on the host: whether a lab can be put on
	// it, making its own pool if need be.
	Pool string
	// Prove lists what to prove by doing it, out of [Provable]. Without it nothing on the host changes.
	Prove []string
	// Require lists what the host, or the pool, must be capable of beyond what every lab needs.
	Require []Capability
}

// Report is what a host can do.
type Report struct {
	// Adequate says that a lab can rely on the host, or on the pool that was asked for.
	Adequate bool `json:"adequate"`
	// Summary says so in one paragraph, with what is missing and what helps.
	Summary string `json:"summary"`
	// Lacking are the findings that keep it from being adequate; empty when it is.
	Lacking []Finding `json:"lacking"`
	// Findings are the verdicts, the host's before the pools'.
	Findings []Finding `json:"capabilities"`
	// Pools are the storage pools.
	Pools []PoolReport `json:"pools"`
	// Server is the daemon.
	Server ServerReport `json:"server"`
	// Members are the cluster's; empty for a daemon that stands alone.
	Members []MemberReport `json:"members"`
}

// PoolReport is one storage pool.
type PoolReport struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// CopyOnWrite is the worst of the verdicts on snapshot, branch and restore.
	CopyOnWrite Verdict `json:"copy_on_write"`
	// TotalBytes and FreeBytes are those of the file system below the pool; 0 when unknown.
	TotalBytes int64 `json:"total_bytes"`
	FreeBytes  int64 `json:"free_bytes"`
	// Proof is the proof that the verdict rests on; nil when there is none that holds.
	Proof *Proof `json:"proof,omitempty"`
}

// ServerReport is the daemon.
type ServerReport struct {
	Product     string   `json:"product"`
	Version     string   `json:"version"`
	Address     string   `json:"address"`
	Project     string   `json:"project"`
	Fingerprint string   `json:"fingerprint"`
	Kernel      string   `json:"kernel"`
	OS          string   `json:"os"`
	Drivers     []string `json:"storage_drivers"`
	Clustered   bool     `json:"clustered"`
}

// MemberReport is one member of a cluster.
type MemberReport struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Status  string `json:"status"`
}

// Assess judges the host. A degraded host is a report, not an error; errors are those of talking to the daemon. Proofs
// that hold are used, and one that is asked for and missing is made.
func (c *Checker) Assess(ctx context.Context, request Request) (*Report, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	facts, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	probed := map[string]probed{}
	if slices.Contains(request.Prove, CopyOnWrite) {
		if probed, err = c.proveAll(ctx, facts, request.Pool); err != nil {
			return nil, err
		}
		if facts, err = c.Facts(ctx); err != nil {
			return nil, err
		}
	}
	hostFindings := facts.hostFindings(c.daemon.Address())
	if err := c.tryMachines(ctx, facts, request, hostFindings); err != nil {
		return nil, err
	}
	report := &Report{Server: c.serverReport(facts), Lacking: []Finding{}, Pools: []PoolReport{}, Members: []MemberReport{}}
	for _, member := range facts.Members {
		report.Members = append(report.Members, MemberReport{Name: member.Name, Address: member.Address, Status: member.Status})
	}
	report.Findings = hostFindings
	for _, pool := range facts.sortedPools() {
		findings := facts.poolFindings(pool, probed[pool.Name])
		report.Findings = append(report.Findings, findings...)
		report.Pools = append(report.Pools, PoolReport{
			Name: pool.Name, Driver: pool.Driver, CopyOnWrite: worstOf(findings),
			TotalBytes: pool.TotalBytes, FreeBytes: pool.FreeBytes, Proof: facts.proofOf(pool),
		})
	}
	report.conclude(facts, request)
	return report, nil
}

// tryMachines proves the types of machines that it is asked to.
func (c *Checker) tryMachines(ctx context.Context, facts *Facts, request Request, findings []Finding) error {
	kinds := map[Capability]api.InstanceType{Containers: api.InstanceTypeContainer, VirtualMachines: api.InstanceTypeVM}
	for i, finding := range findings {
		kind, isType := kinds[finding.Capability]
		if !isType || !slices.Contains(request.Prove, string(finding.Capability)) {
			continue
		}
		trials, err := c.try(ctx, facts, kind, request.Pool)
		if err != nil {
			return fmt.Errorf("try whether a %s runs: %w", kind, err)
		}
		findings[i].judgeTrials(trials)
	}
	return nil
}

// probed is how a probe that was asked for went: a proof, a refusal, or both.
type probed struct {
	proof   *Proof
	refusal *Refusal
}

// proveAll proves one pool, or all that are there and should copy on write.
func (c *Checker) proveAll(ctx context.Context, facts *Facts, only string) (map[string]probed, error) {
	results := map[string]probed{}
	for _, pool := range facts.sortedPools() {
		_, there := facts.present[pool.Name]
		if !there || only != "" && pool.Name != only {
			continue
		}
		if only == "" && facts.traits(pool).snapshots.verdict != Reported {
			continue // its owner can have it proved by name
		}
		proof, _, err := c.EnsureProof(ctx, pool.Name)
		refusal, refused := errors.AsType[*Refusal](err)
		switch {
		case err == nil || refused:
			results[pool.Name] = probed{proof, refusal}
		case errors.Is(err, lxd.ErrRefused), errors.Is(err, lxd.ErrUnsupported):
			results[pool.Name] = probed{nil, &Refusal{Capability: Pools, Found: "the daemon refused the probe", Evidence: []string{err.Error()}}}
		default:
			return nil, err
		}
	}
	return results, nil
}

func (c *Checker) serverReport(facts *Facts) ServerReport {
	environment := facts.Environment
	return ServerReport{
		Product: facts.product(), Version: environment.ServerVersion, Address: c.daemon.Address(), Project: c.daemon.Project(),
		Fingerprint: environment.CertificateFingerprint, Kernel: environment.KernelVersion,
		OS: strings.TrimSpace(environment.OSName + " " + environment.OSVersion), Drivers: facts.drivers(), Clustered: environment.ServerClustered,
	}
}
