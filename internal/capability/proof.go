// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// proofKey is the pool's configuration key that a proof is recorded in. On a cluster each member has its own, with a dot
// and the member's name after it.
const proofKey = "user.lab.proof"

// Proof is what a probe of a pool measured, and on what.
type Proof struct {
	// Date is when it was measured.
	Date time.Time `json:"date"`
	// Member is the cluster's member that it was measured on; empty for a daemon that stands alone.
	Member string `json:"member,omitempty"`
	// Daemon is the fingerprint of the daemon's certificate, and Version the daemon's version.
	Daemon  string `json:"daemon"`
	Version string `json:"version"`
	// Kernel is the release of the host's kernel.
	Kernel string `json:"kernel"`
	// Driver is the pool's storage driver, and ConfigHash stands for its configuration.
	Driver     string `json:"driver"`
	ConfigHash string `json:"config_hash"`
	// SizeBytes is how much random data was measured with, and WriteMS how long it took to write, in milliseconds.
	SizeBytes int64 `json:"size_bytes"`
	WriteMS   int64 `json:"write_ms"`
	// Snapshot, Branch and Restore are the measurements, each with its verdict.
	Snapshot Measure `json:"snapshot"`
	Branch   Measure `json:"branch"`
	Restore  Measure `json:"restore"`
	// Judged names the witnesses: "space", "time", "lineage" (the file system's own records).
	Judged []string `json:"judged"`
}

// CopyOnWrite says that all three operations were proved to copy on write.
func (p *Proof) CopyOnWrite() bool {
	return p.Snapshot.Verdict == Proven && p.Branch.Verdict == Proven && p.Restore.Verdict == Proven
}

// copies says that one of the operations was seen to copy.
func (p *Proof) copies() bool {
	return p.Snapshot.Verdict == Degraded || p.Branch.Verdict == Degraded || p.Restore.Verdict == Degraded
}

// conclusive says that no operation was left in doubt.
func (p *Proof) conclusive() bool {
	return p.Snapshot.Verdict != Unproven && p.Branch.Verdict != Unproven && p.Restore.Verdict != Unproven
}

// Evidence is the proof in lines for people.
func (p *Proof) Evidence() []string {
	return []string{
		p.Snapshot.describe("a snapshot", p.SizeBytes),
		p.Branch.describe("a branch", p.SizeBytes),
		p.Restore.describe("a restore", p.SizeBytes),
		fmt.Sprintf("writing %s took %d ms; judged by %s on %s, driver %s, kernel %s",
			size(p.SizeBytes), p.WriteMS, strings.Join(p.Judged, " and "), p.Date.Format(time.RFC3339), p.Driver, p.Kernel),
	}
}

// holds says whether the proof is one of this pool as it is now. The daemon, the kernel, the driver and the pool's
// configuration must be what they were.
func (p *Proof) holds(environment *api.ServerEnvironment, pool PoolFacts) bool {
	return p.Daemon == environment.CertificateFingerprint && p.Version == environment.ServerVersion && p.Kernel == environment.KernelVersion &&
		p.Driver == pool.Driver && p.ConfigHash == configHash(pool.Config)
}

// RecordedProof reads the proof that is recorded in a pool's configuration; on a cluster, that of the first member. It
// gives nil when there is none, or one that cannot be read. Whether it still holds is not looked at.
func RecordedProof(config map[string]string) *Proof {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if key == proofKey || strings.HasPrefix(key, proofKey+".") {
			return decodeProof(config[key])
		}
	}
	return nil
}

func decodeProof(text string) *Proof {
	proof := &Proof{}
	if err := json.Unmarshal([]byte(text), proof); err != nil {
		return nil
	}
	return proof
}

// key is where the site's proof is recorded.
func (s site) key() string {
	if s.member == "" {
		return proofKey
	}
	return proofKey + "." + s.member
}

// proofOf gives the recorded proof of a pool at the site, if it is good and holds, or nil.
func (s site) proofOf(pool PoolFacts) *Proof {
	proof := decodeProof(pool.Config[s.key()])
	if proof == nil || !proof.CopyOnWrite() || !proof.holds(s.environment, pool) {
		return nil
	}
	return proof
}

// proofOf gives the recorded proof of a pool, if it is good and holds for all members that answer, or nil.
func (f *Facts) proofOf(pool PoolFacts) *Proof {
	var first *Proof
	for _, at := range f.sites() {
		proof := at.proofOf(pool)
		if proof == nil {
			return nil
		}
		first = cmp.Or(first, proof)
	}
	return first
}

// configHash stands for a pool's configuration, without the keys that mean nothing to the daemon: a proof must not
// end with its own recording.
func configHash(config map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if strings.HasPrefix(key, "user.") {
			continue
		}
		fmt.Fprintf(&text, "%q=%q\n", key, config[key])
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:8])
}

// prove puts a measurement into a proof.
func prove(at site, pool PoolFacts, m *measurement) *Proof {
	judged := []string{"space", "time"}
	switch {
	case !m.metered():
		judged = []string{"time"}
	case m.lineage != nil:
		judged = []string{"space", "lineage"}
	}
	return &Proof{
		Date:       time.Now().UTC().Truncate(time.Second),
		Member:     at.member,
		Daemon:     at.environment.CertificateFingerprint,
		Version:    at.environment.ServerVersion,
		Kernel:     at.environment.KernelVersion,
		Driver:     pool.Driver,
		ConfigHash: configHash(pool.Config),
		SizeBytes:  m.bytes,
		WriteMS:    m.write.Milliseconds(),
		Snapshot:   m.judge(m.snapshots, func(l *lineage) bool { return l.snapshot }),
		Branch:     m.judge(m.branches, func(l *lineage) bool { return l.branch }),
		Restore:    m.judgeRestore(),
		Judged:     judged,
	}
}
