// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"strings"
)

// What a machine can inherit from a profile that works on its snapshots.
const (
	scheduleKey = "snapshots.schedule"
	expiryKey   = "snapshots.expiry"
)

// Scheduled says whether a machine's configuration, with that of its profiles, makes the daemon take snapshots of it by
// itself.
func Scheduled(config map[string]string) bool {
	schedule := strings.TrimSpace(config[scheduleKey])
	return schedule != "" && schedule != "@never"
}

// keptFinding judges whether the daemon leaves a machine's snapshots to those who take them, by the project's profiles.
func (f *Facts) keptFinding() Finding {
	finding := Finding{Capability: KeptSnapshots, Verdict: Reported, Judged: byDaemon}
	for _, profile := range f.Profiles {
		if Scheduled(profile.Config) {
			finding.add(fmt.Sprintf("profile %q has %s = %q: the daemon takes snapshots of its machines by itself", profile.Name, scheduleKey, profile.Config[scheduleKey]),
				fmt.Sprintf("lxc profile unset %s %s", profile.Name, scheduleKey))
		}
		if expiry := profile.Config[expiryKey]; expiry != "" {
			finding.add(fmt.Sprintf("profile %q has %s = %q: the daemon deletes snapshots of its machines that were taken without saying when they expire", profile.Name, expiryKey, expiry),
				fmt.Sprintf("lxc profile unset %s %s", profile.Name, expiryKey))
		}
	}
	switch {
	case len(finding.Evidence) > 0:
		finding.Verdict, finding.Reason = Degraded, "what a profile says makes snapshots come and go by themselves, and a driver such as zfs does not go back past newer ones"
	case f.Profiles == nil:
		finding.Verdict, finding.Reason = Unproven, "the daemon does not tell the profiles"
	}
	return finding
}

// add notes what a profile says, and the command that takes it away.
func (f *Finding) add(evidence, command string) {
	f.Evidence = append(f.Evidence, evidence)
	if f.Remedy == "" {
		f.Remedy = fmt.Sprintf("Run `%s`.", command)
		return
	}
	f.Remedy = fmt.Sprintf("%s, and `%s`.", strings.TrimSuffix(f.Remedy, "."), command)
}

// quotas lists the sizes that root disks in a pool have without anybody asking for them. A branch inherits its source's,
// and what it shares with its source counts against it.
func (f *Facts) quotas(pool PoolFacts) []string {
	const inherited = "a branch inherits it, and what it shares with its source counts against it"
	var lines []string
	if size := pool.Config["volume.size"]; size != "" {
		lines = append(lines, fmt.Sprintf("pool %q has volume.size = %q: %s", pool.Name, size, inherited))
	}
	for _, profile := range f.Profiles {
		for _, device := range profile.Devices {
			if device["type"] == "disk" && device["path"] == "/" && device["pool"] == pool.Name && device["size"] != "" {
				lines = append(lines, fmt.Sprintf("profile %q gives root disks here a size of %s: %s", profile.Name, device["size"], inherited))
			}
		}
	}
	return lines
}

// refuseScheduled refuses a snapshot of a machine that gets newer ones by itself, where the driver could then not go back.
func (f *Facts) refuseScheduled(asked string, ask SnapshotAsk) *Refusal {
	pool := f.Pools[ask.Pool]
	past := f.traits(pool).pastSnapshots
	if !ask.Scheduled || past.verdict != Absent {
		return nil
	}
	return &Refusal{
		Capability: KeptSnapshots, Argument: "machine", Asked: asked,
		Found:    "the daemon takes snapshots of the machine by itself, and could then not put it back to this one: " + past.reason,
		Evidence: []string{fmt.Sprintf("the machine, or a profile of it, sets %s", scheduleKey), fmt.Sprintf("pool %q has the driver %q", pool.Name, pool.Driver)},
		Remedy:   fmt.Sprintf(`Set config = { %q = "@never" } on the machine, or use a pool with driver = "btrfs".`, scheduleKey),
	}
}
