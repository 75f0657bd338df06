// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"encoding/json"
	"testing"

	"github.com/canonical/lxd/shared/api"
)

// member is one that answers, with some storage drivers.
func member(name string, drivers ...string) MemberFacts {
	environment := &api.ServerEnvironment{ServerName: name, ServerVersion: "5.0.2", CertificateFingerprint: "abc", KernelVersion: "6.1", Driver: "lxc"}
	for _, driver := range drivers {
		environment.StorageSupportedDrivers = append(environment.StorageSupportedDrivers, api.ServerStorageDriverInfo{Name: driver})
	}
	return MemberFacts{Name: name, Status: memberOnline, Environment: environment}
}

// silent is a member that does not answer.
func silent(name string) MemberFacts {
	return MemberFacts{Name: name, Status: "Offline", Message: "No heartbeat for 1m0s"}
}

func TestAdmitPoolOnACluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		members  []MemberFacts
		host     *host
		argument string
		parts    []string
		verdict  Verdict // on the cluster
	}{
		"all alike": {[]MemberFacts{member("a", "dir", "btrfs"), member("b", "dir", "btrfs")}, nil, "", nil, Reported},
		"one lacks the driver": {
			[]MemberFacts{member("a", "dir", "btrfs"), member("b", "dir"), member("c", "dir", "btrfs")},
			nil,
			"driver",
			[]string{`"b" does not`, `member "b" offers the storage drivers: dir`, "apt-get install btrfs-progs"},
			Degraded,
		},
		"one is gone": {
			[]MemberFacts{member("a", "dir", "btrfs"), silent("b")},
			nil,
			"",
			[]string{`member "b" (offline) does not answer: No heartbeat`},
			Degraded,
		},
		"this host's list is stale": {
			[]MemberFacts{member("a", "dir"), member("b", "dir", "btrfs")}, hostWith(t, 100<<30, btrfsTools...), "", nil, Degraded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := factsOf(test.host, []string{"dir"})
			facts.Environment = *test.members[0].Environment
			facts.Environment.OSName, facts.Environment.ServerClustered = "Debian GNU/Linux", true
			facts.Members = test.members
			ask := PoolAsk{Name: "lab", Members: map[string]PoolPart{}}
			for _, member := range test.members {
				ask.Members[member.Name] = PoolPart{}
			}
			wantRefusal(t, checkerOf(facts).AdmitPool(t.Context(), ask), test.argument, test.parts...)
			if got := facts.clusterFinding()[0]; got.Verdict != test.verdict {
				t.Errorf("the cluster is %s, want %s: %v", got.Verdict, test.verdict, got.Evidence)
			}
		})
	}
}

func TestAdmitPartsOfAPool(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	for name, test := range map[string]struct {
		members  map[string]PoolPart
		alone    bool
		argument string
		parts    []string
	}{
		"all of them":             {map[string]PoolPart{"a": {SizeBytes: 2 << 30}, "b": {}}, false, "", nil},
		"one is left out":         {map[string]PoolPart{"a": {}}, false, "members", []string{"none is asked for on b", "members of the cluster: a, b", `"a" = {`}},
		"none is named":           {nil, false, "members", []string{"none is asked for on a, b"}},
		"one that is not there":   {map[string]PoolPart{"a": {}, "b": {}, "c": {}}, false, "members", []string{"no member c"}},
		"no cluster":              {map[string]PoolPart{"a": {}}, true, "members", []string{"stands alone", "Remove members"}},
		"too large for this disk": {map[string]PoolPart{"a": {SizeBytes: 20 << 30}, "b": {}}, false, "members", []string{`on member "a"`, "only 10GiB free"}},
		"too large, elsewhere":    {map[string]PoolPart{"a": {}, "b": {SizeBytes: 20 << 30}}, false, "", nil},
		"too small, elsewhere":    {map[string]PoolPart{"a": {}, "b": {SizeBytes: 1 << 20}}, false, "members", []string{`on member "b"`, "too small"}},
		"a source here":           {map[string]PoolPart{"a": {Source: source}, "b": {}}, false, "", nil},
		"a source elsewhere":      {map[string]PoolPart{"a": {}, "b": {Source: source}}, false, "members", []string{`on member "b"`, "on another host"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := factsOf(hostWith(t, 10<<30, btrfsTools...), []string{"dir", "btrfs"})
			facts.Environment.ServerName = "a"
			if !test.alone {
				facts.Environment.ServerClustered = true
				facts.Members = []MemberFacts{member("a", "dir", "btrfs"), member("b", "dir", "btrfs")}
			}
			wantRefusal(t, checkerOf(facts).AdmitPool(t.Context(), PoolAsk{Name: "lab", Members: test.members}), test.argument, test.parts...)
		})
	}
}

func TestProofOnACluster(t *testing.T) {
	t.Parallel()
	facts := factsOf(nil, []string{"btrfs"})
	facts.Members = []MemberFacts{member("a", "btrfs"), member("b", "btrfs"), silent("c")}
	pool := PoolFacts{Name: "lab", Driver: "btrfs", Config: map[string]string{}}
	for i, at := range facts.sites() {
		if facts.proofOf(pool) != nil {
			t.Errorf("the pool counts as proved when %d of 2 members are", i)
		}
		m := measured()
		s := series{empty: samples(0, 40, 40, 40), full: samples(0, 41, 41, 41)}
		m.snapshots, m.branches, m.restores = s, s, s
		text, err := json.Marshal(prove(at, pool, m))
		if err != nil {
			t.Fatal(err)
		}
		pool.Config[at.key()] = string(text)
	}
	if proof := facts.proofOf(pool); proof == nil || proof.Member != "a" {
		t.Errorf("with all members that answer proved, the proof is %v", proof)
	}
	if proof := RecordedProof(pool.Config); proof == nil || proof.Member != "a" {
		t.Errorf("the recorded proof is %v, want that of the first member", proof)
	}
	// One that comes back has none.
	facts.Members[2] = member("c", "btrfs")
	if facts.proofOf(pool) != nil {
		t.Error("the pool counts as proved on a member that never was")
	}
}
