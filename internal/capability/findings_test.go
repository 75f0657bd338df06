// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
)

func TestPoolHeadroom(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	loop := map[string]string{"source": "/var/lib/lxd/disks/lab.img"}
	for name, test := range map[string]struct {
		pool    PoolFacts
		remote  bool
		verdict Verdict
		says    string
	}{
		"fits its disk":               {PoolFacts{Config: loop, TotalBytes: 20 * gib, FreeBytes: 5 * gib}, false, Reported, "5GiB of 20GiB"},
		"promises more than its disk": {PoolFacts{Config: loop, TotalBytes: 200 * gib, FreeBytes: 190 * gib}, false, Degraded, "lab.img: 10GiB"},
		"on a disk that is not here":  {PoolFacts{Config: loop, TotalBytes: 20 * gib, FreeBytes: 5 * gib}, true, Unproven, "5GiB of 20GiB"},
		"on a device of its own":      {PoolFacts{Config: map[string]string{"source": "/dev/vdb"}, TotalBytes: 200 * gib, FreeBytes: 190 * gib}, true, Reported, "190GiB"},
		"whose space is not told":     {PoolFacts{Config: loop}, false, Unproven, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostWith(t, 10*gib)
			if test.remote {
				h = nil
			}
			test.pool.Name, test.pool.Driver = "lab", "btrfs"
			finding := factsOf(h, []string{"btrfs"}, test.pool).poolHeadroom(test.pool)
			if finding.Verdict != test.verdict || finding.Verdict.Usable() != (finding.Reason == "") {
				t.Errorf("the verdict is %s (%s), want %s", finding.Verdict, finding.Reason, test.verdict)
			}
			if text := strings.Join(finding.Evidence, "\n"); !strings.Contains(text, test.says) {
				t.Errorf("the evidence does not say %q:\n%s", test.says, text)
			}
		})
	}
}

func TestVirtualMachinesByTheDaemonsWord(t *testing.T) {
	t.Parallel()
	warning := []api.Warning{{Type: "Instance type not operational", LastMessage: "vhost_vsock kernel module not loaded"}}
	for name, test := range map[string]struct {
		drivers  string
		warnings []api.Warning
		members  []MemberFacts
		verdict  Verdict
	}{
		"listed":                       {"lxc | qemu", nil, nil, Reported},
		"not listed":                   {"lxc", warning, nil, Absent},
		"listed, and warned of":        {"lxc | qemu", warning, nil, Degraded},
		"listed, a member is warned":   {"lxc | qemu", warning, []MemberFacts{member("a"), member("b")}, Degraded},
		"a daemon that does not tell":  {"", nil, nil, Unproven},
		"only a warning of other sort": {"lxc | qemu", []api.Warning{{Type: "Failed to start networks"}}, nil, Reported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := manyPools()
			facts.Environment.Driver, facts.Warnings, facts.Members = test.drivers, test.warnings, test.members
			finding := facts.typeFinding(VirtualMachines, api.InstanceTypeVM)
			if finding.Verdict != test.verdict || finding.Verdict.Usable() != (finding.Reason == "") {
				t.Errorf("the verdict is %s (%s), want %s", finding.Verdict, finding.Reason, test.verdict)
			}
			if test.warnings != nil && !finding.Verdict.Usable() && !strings.Contains(strings.Join(finding.Evidence, "\n"), "vhost_vsock") {
				t.Errorf("the evidence lacks the daemon's own words: %v", finding.Evidence)
			}
		})
	}
}
