// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// connectTo gives the verbs on a daemon of a test's own, as a new run of the provider has them.
func connectTo(t *testing.T, h *acctest.Host) *lab.Lab {
	t.Helper()
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: h.Address(), Project: h.Project()})
	if err != nil {
		t.Fatal(err)
	}
	return lab.New(daemon, capability.New(daemon))
}

// poolOnAll is a pool with a part on each member.
func poolOnAll(t *testing.T, members []*acctest.Host) lab.PoolSpec {
	t.Helper()
	spec := lab.PoolSpec{Name: acctest.Name(t, "pool"), Driver: "btrfs", Members: map[string]lab.PoolMember{}}
	for _, h := range members {
		spec.Members[h.Member()] = lab.PoolMember{Size: "6GiB"}
	}
	return spec
}

// wantMemberRefused checks that planning a pool is refused, and says why: the member by its name.
func wantMemberRefused(t *testing.T, l *lab.Lab, spec lab.PoolSpec, says ...string) {
	t.Helper()
	err := l.Checker().AdmitPool(t.Context(), spec.Ask(false))
	refusal, ok := errors.AsType[*capability.Refusal](err)
	if !ok {
		t.Fatalf("planning the pool gave %v, want a refusal", err)
	}
	for _, text := range says {
		if !strings.Contains(refusal.Detail(), text) {
			t.Errorf("the refusal does not say %q:\n%s", text, refusal.Detail())
		}
	}
}

func TestAccPoolOnACluster(t *testing.T) {
	t.Parallel()
	members := acctest.StartCluster(t, acctest.Options{}, acctest.Options{WithoutTools: []string{"btrfs", "mkfs.btrfs"}}, acctest.Options{})
	spec := poolOnAll(t, members)

	wantMemberRefused(t, connectTo(t, members[0]), spec, `"m2" does not`, `member "m2" offers the storage drivers: dir`)
	members[1].AddTools(t)
	members[1].Restart(t)

	l := connectTo(t, members[0])
	if _, _, err := l.CreatePool(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	wantProofOn(t, l, spec.Name, members)
	wantFewRequests(t, members)
	if err := connectTo(t, members[1]).DeletePool(t.Context(), spec.Name); err != nil {
		t.Error(err)
	}

	members[2].Stop(t)
	l = connectTo(t, members[0])
	wantMemberRefused(t, l, spec, `member "m3"`, "does not answer")
	wantSilent(t, l, "m3")
}

// wantProofOn checks that a pool is proved on each member, and that a second run probes nothing.
func wantProofOn(t *testing.T, l *lab.Lab, pool string, members []*acctest.Host) {
	t.Helper()
	live, _, err := l.Daemon().Pool(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range members {
		if live.Config["user.lab.proof."+h.Member()] == "" {
			t.Errorf("the pool was not proved on %s: %v", h.Member(), live.Config)
		}
		if _, fresh, err := connectTo(t, h).Checker().EnsureProof(t.Context(), pool); err != nil || fresh {
			t.Errorf("seen from %s the proof does not hold: fresh is %v, error is %v", h.Member(), fresh, err)
		}
	}
}

// wantFewRequests checks that facts of a cluster with one pool cost five requests, one for the pool, and one for each
// member.
func wantFewRequests(t *testing.T, members []*acctest.Host) {
	t.Helper()
	proxy := lxdtest.NewProxy(t, members[0].Socket())
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: proxy.Address()})
	if err != nil {
		t.Fatal(err)
	}
	proxy.ForgetRequests()
	report, err := capability.New(daemon).Assess(t.Context(), capability.Request{})
	if err != nil || !report.Adequate || len(report.Members) != len(members) {
		t.Errorf("the report on %d members is adequate: %v (error %v): %s", len(report.Members), report.Adequate, err, report.Summary)
	}
	if requests := proxy.Requests(); len(requests) > 5+1+len(members) {
		t.Errorf("facts took %d requests, want at most 5, 1 for the pool and %d for members: %v", len(requests), len(members), requests)
	}
}

// wantSilent checks that a report on a cluster tells of a member that does not answer.
func wantSilent(t *testing.T, l *lab.Lab, member string) {
	t.Helper()
	report, err := l.Checker().Assess(t.Context(), capability.Request{Require: []capability.Capability{capability.Cluster}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Adequate || !strings.Contains(report.Summary, "some members do not answer") || !strings.Contains(report.Summary, `"`+member+`"`) {
		t.Errorf("the report does not tell that %s does not answer: %s", member, report.Summary)
	}
}
