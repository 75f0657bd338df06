// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
)

// profile is one with some configuration, and a root disk in a pool if a size is given for it.
func profile(name string, config map[string]string, pool, size string) api.Profile {
	p := api.Profile{Name: name, Config: config, Devices: map[string]map[string]string{}}
	if size != "" {
		p.Devices["root"] = map[string]string{"type": "disk", "path": "/", "pool": pool, "size": size}
	}
	return p
}

func TestProfilesThatWorkOnSnapshots(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		profiles []api.Profile
		verdict  Verdict
		evidence string
		remedy   string
	}{
		"none":       {[]api.Profile{}, Reported, "", ""},
		"plain":      {[]api.Profile{profile("default", map[string]string{"limits.cpu": "1"}, "", "")}, Reported, "", ""},
		"not told":   {nil, Unproven, "", ""},
		"a schedule": {[]api.Profile{profile("p", map[string]string{"snapshots.schedule": "@daily"}, "", "")}, Degraded, `snapshots.schedule = "@daily"`, "lxc profile unset p snapshots.schedule"},
		"never":      {[]api.Profile{profile("p", map[string]string{"snapshots.schedule": "@never"}, "", "")}, Reported, "", ""},
		"an expiry":  {[]api.Profile{profile("p", map[string]string{"snapshots.expiry": "3d"}, "", "")}, Degraded, `snapshots.expiry = "3d"`, "lxc profile unset p snapshots.expiry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			finding := (&Facts{Profiles: test.profiles}).keptFinding()
			if finding.Verdict != test.verdict || finding.Verdict.Usable() != (finding.Reason == "") {
				t.Errorf("the verdict is %s (%s), want %s", finding.Verdict, finding.Reason, test.verdict)
			}
			if text := strings.Join(finding.Evidence, "\n"); !strings.Contains(text, test.evidence) || !strings.Contains(finding.Remedy, test.remedy) {
				t.Errorf("it does not say %q and %q:\n%s\n%s", test.evidence, test.remedy, text, finding.Remedy)
			}
		})
	}
}

func TestQuotaThatABranchInherits(t *testing.T) {
	t.Parallel()
	facts := manyPools()
	facts.Profiles = []api.Profile{profile("small", nil, "cow", "5GiB"), profile("other", nil, "thin", "6GiB")}
	sized := PoolFacts{Name: "sized", Driver: "btrfs", Status: "Created", Config: map[string]string{"volume.size": "4GiB"}}
	for pool, want := range map[string][]string{
		"cow": {`profile "small" gives root disks here a size of 5GiB`}, "sized": {`volume.size = "4GiB"`}, "tank": nil,
	} {
		facts.present[sized.Name] = sized
		for _, finding := range facts.poolFindings(facts.Pools[pool], probed{}) {
			text := strings.Join(finding.Evidence, "\n")
			for _, part := range want {
				if strings.Contains(text, part) != (finding.Capability == Branches) {
					t.Errorf("%s of %s says:\n%s", finding.Capability, pool, text)
				}
			}
			if want == nil && strings.Contains(text, "inherits") {
				t.Errorf("%s of %s says:\n%s", finding.Capability, pool, text)
			}
		}
	}
}
