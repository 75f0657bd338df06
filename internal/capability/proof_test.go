// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"
)

func TestConfigHash(t *testing.T) {
	t.Parallel()
	config := map[string]string{"size": "20GiB", "source": "/var/lib/lxd/disks/lab.img"}
	want := configHash(config)
	for name, test := range map[string]struct {
		key, value string
		same       bool
	}{
		"our own record":       {proofKey, "{}", true},
		"our id":               {"user.lab.id", "1", true},
		"a user's key":         {"user.note", "mine", true},
		"an option":            {"btrfs.mount_options", "compress", false},
		"another size":         {"size", "21GiB", false},
		"a key's boundary":     {"size\"=\"20GiB\"\nsource", "x", false},
		"an option of volumes": {"volume.zfs.remove_snapshots", "true", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := maps.Clone(config)
			changed[test.key] = test.value
			if same := configHash(changed) == want; same != test.same {
				t.Errorf("same hash: %v, want %v", same, test.same)
			}
		})
	}
}

// goodProof is a proof of a pool on a host, and both.
func goodProof() (*Proof, *Facts, PoolFacts) {
	facts := &Facts{Environment: api.ServerEnvironment{CertificateFingerprint: "abc", ServerVersion: "5.0.2", KernelVersion: "6.1"}}
	pool := PoolFacts{Name: "lab", Driver: "btrfs", Config: map[string]string{"size": "20GiB"}}
	m := measured()
	s := series{empty: samples(0, 40, 40, 40), full: samples(0, 41, 41, 41)}
	m.snapshots, m.branches, m.restores = s, s, s
	return prove(site{environment: &facts.Environment}, pool, m), facts, pool
}

func TestProofHolds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Facts, *PoolFacts)
		holds  bool
	}{
		"nothing changed":  {func(*Facts, *PoolFacts) {}, true},
		"another daemon":   {func(f *Facts, _ *PoolFacts) { f.Environment.CertificateFingerprint = "def" }, false},
		"a newer daemon":   {func(f *Facts, _ *PoolFacts) { f.Environment.ServerVersion = "5.0.3" }, false},
		"another kernel":   {func(f *Facts, _ *PoolFacts) { f.Environment.KernelVersion = "6.2" }, false},
		"another driver":   {func(_ *Facts, p *PoolFacts) { p.Driver = "zfs" }, false},
		"another option":   {func(_ *Facts, p *PoolFacts) { p.Config["btrfs.mount_options"] = "x" }, false},
		"another user key": {func(_ *Facts, p *PoolFacts) { p.Config["user.x"] = "y" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof, facts, pool := goodProof()
			text, err := json.Marshal(proof)
			if err != nil {
				t.Fatal(err)
			}
			pool.Config[proofKey] = string(text)
			if diff := cmp.Diff(proof, RecordedProof(pool.Config)); diff != "" {
				t.Errorf("the record reads otherwise than it was written:\n%s", diff)
			}
			test.change(facts, &pool)
			if got := facts.proofOf(pool) != nil; got != test.holds {
				t.Errorf("the proof holds: %v, want %v", got, test.holds)
			}
		})
	}
}

func TestProofThatFailedIsNone(t *testing.T) {
	t.Parallel()
	proof, facts, pool := goodProof()
	proof.Branch.Verdict = Degraded
	text, err := json.Marshal(proof)
	if err != nil {
		t.Fatal(err)
	}
	pool.Config[proofKey] = string(text)
	if facts.proofOf(pool) != nil {
		t.Error("a recorded failure passes as a proof")
	}
}

func TestRecordedProofThatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "yes", "[]", `{"date":1}`} {
		if proof := RecordedProof(map[string]string{proofKey: text}); proof != nil {
			t.Errorf("%q gives %v", text, proof)
		}
	}
}

func TestRefuseProof(t *testing.T) {
	t.Parallel()
	proof, _, _ := goodProof()
	proof.Date = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	proof.Snapshot.Verdict = Degraded
	if detail := refuseProof("lab", proof, nil).Detail(); !strings.Contains(detail, "is a copy") || !strings.Contains(detail, "64MiB") {
		t.Errorf("a copy is refused without saying so, or without figures:\n%s", detail)
	}
	proof.Snapshot.Verdict, proof.Restore.Verdict = Proven, Unproven
	detail := refuseProof("lab", proof, &Refusal{Capability: Headroom, Found: "the pool is full"}).Detail()
	for _, part := range []string{"contradict", "inconclusive", "the pool is full", "--prove --pool lab"} {
		if !strings.Contains(detail, part) {
			t.Errorf("a doubt is refused without %q:\n%s", part, detail)
		}
	}
}
