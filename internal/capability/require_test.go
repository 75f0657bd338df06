// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"strings"
	"testing"
)

// assessed is a report on facts, as far as those say.
func assessed(facts *Facts, request Request) *Report {
	report := &Report{Findings: facts.hostFindings("unix:///socket")}
	for _, pool := range facts.sortedPools() {
		report.Findings = append(report.Findings, facts.poolFindings(pool, probed{})...)
		report.Pools = append(report.Pools, PoolReport{Name: pool.Name, Driver: pool.Driver})
	}
	report.conclude(facts, request)
	return report
}

func TestRequire(t *testing.T) {
	t.Parallel()
	pools := []PoolFacts{{Name: "cow", Driver: "btrfs"}, {Name: "past", Driver: "zfs"}, {Name: "plain", Driver: "dir"}, {Name: "odd", Driver: "odd"}}
	for name, test := range map[string]struct {
		request   Request
		lacking   []Capability
		undecided bool
	}{
		"nothing":                    {Request{}, nil, false},
		"what is there":              {Request{Require: []Capability{VirtualMachines, Headroom}}, nil, false},
		"what nobody knows":          {Request{Require: []Capability{Checkpoints}}, []Capability{Checkpoints}, true},
		"a cluster":                  {Request{Require: []Capability{Cluster}}, []Capability{Cluster}, false},
		"known and unknown":          {Request{Require: []Capability{Checkpoints, Cluster}}, []Capability{Checkpoints, Cluster}, false},
		"a pool, and of the host":    {Request{Pool: "cow", Require: []Capability{VirtualMachines, Pools}}, nil, false},
		"past snapshots":             {Request{Pool: "cow", Require: []Capability{PastSnapshots}}, nil, false},
		"past snapshots, on zfs":     {Request{Pool: "past", Require: []Capability{PastSnapshots}}, []Capability{PastSnapshots}, false},
		"on zfs, not past snapshots": {Request{Pool: "past"}, nil, false},
		"copies":                     {Request{Pool: "plain"}, []Capability{Snapshots, Branches, Restores}, false},
		"a driver that is not known": {Request{Pool: "odd"}, []Capability{Snapshots, Branches, Restores}, true},
		"no such pool":               {Request{Pool: "none"}, []Capability{Pools}, false},
		"a proof that there is not":  {Request{Pool: "cow", Prove: Provable()}, []Capability{Snapshots, Branches, Restores}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := assessed(factsOf(hostWith(t, 100<<30, btrfsTools...), []string{"btrfs", "dir"}, pools...), test.request)
			var lacking []Capability
			for _, finding := range report.Lacking {
				lacking = append(lacking, finding.Capability)
			}
			if join(lacking) != join(test.lacking) || report.Adequate != (len(test.lacking) == 0) {
				t.Errorf("adequate is %v and it lacks %s, want %s\n%s", report.Adequate, join(lacking), join(test.lacking), report.Summary)
			}
			if report.Undecided() != test.undecided {
				t.Errorf("undecided is %v, want %v", report.Undecided(), test.undecided)
			}
		})
	}
}

func TestRequestThatCannotBeAnswered(t *testing.T) {
	t.Parallel()
	for text, request := range map[string]Request{
		`cannot prove "magic": what can be proved is copy_on_write, containers, virtual_machines`: {Prove: []string{"magic"}},
		`cannot require "magic": what can be required is daemon, `:                                {Require: []Capability{"magic"}},
		`"copy_on_write_branch" of the host: it is judged for each pool`:                          {Require: []Capability{Containers, Branches}},
	} {
		if err := request.Check(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	if err := (Request{Pool: "p", Prove: Provable(), Require: Requirable()}).Check(); err != nil {
		t.Error(err)
	}
}
