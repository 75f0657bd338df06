// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/units"
)

// PoolAsk is a storage pool as it is asked for.
type PoolAsk struct {
	// Name is the pool's name.
	Name string
	// Driver is the storage driver; empty means [DefaultDriver].
	Driver string
	// SizeBytes is the size of the loop file; 0 leaves it to the daemon.
	SizeBytes int64
	// Source is a block device, a path, or what else the driver takes; empty means a loop file.
	Source string
	// Config is the rest of the pool's configuration.
	Config map[string]string
	// Members is what it has of its own on each member of a cluster, by the member's name, in the place of SizeBytes and
	// Source; empty on a daemon that stands alone.
	Members map[string]PoolPart
	// Update says that the pool exists and is to be changed to this.
	Update bool

	// member is the one whose part this is; empty for a pool as a whole.
	member string
}

// PoolPart is what a pool has of its own on one member of a cluster.
type PoolPart struct {
	SizeBytes int64
	Source    string
}

func (a PoolAsk) driver() string { return cmp.Or(a.Driver, DefaultDriver) }

func (a PoolAsk) String() string {
	text := fmt.Sprintf("storage pool %q with driver %q", a.Name, a.driver())
	if a.Source != "" {
		text += fmt.Sprintf(" on source %q", a.Source)
	}
	if a.SizeBytes > 0 {
		text += " of " + size(a.SizeBytes)
	}
	if a.member != "" {
		text += fmt.Sprintf(" on member %q", a.member)
	}
	return text
}

// argument names an argument of the pool, or the one that a member's is within.
func (a PoolAsk) argument(name string) string {
	if a.member != "" {
		return "members"
	}
	return name
}

// parts are what is asked for in each place: of the daemon, or of each member of its cluster.
func (a PoolAsk) parts() []PoolAsk {
	if len(a.Members) == 0 {
		return []PoolAsk{a}
	}
	var parts []PoolAsk
	for _, name := range slices.Sorted(maps.Keys(a.Members)) {
		part := a
		part.member, part.SizeBytes, part.Source = name, a.Members[name].SizeBytes, a.Members[name].Source
		parts = append(parts, part)
	}
	return parts
}

// AdmitPool says whether a pool may be made or changed, by the facts alone. The error is a [Refusal] when it may
// not.
func (c *Checker) AdmitPool(ctx context.Context, ask PoolAsk) error {
	facts, err := c.Facts(ctx)
	if err != nil {
		return err
	}
	if refusal := facts.refuseTraits(ask.String(), PoolFacts{Name: ask.Name, Driver: ask.driver(), Config: ask.Config}); refusal != nil {
		return refusal
	}
	if ask.Update {
		return refused(ask, facts.refuseParts, func(ask PoolAsk) *Refusal { return facts.refuseResize(ask, c.daemon.HasExtension(resizeExtension)) })
	}
	if err := refused(ask, facts.refuseMembers, facts.refuseParts, facts.refuseDriver); err != nil {
		return err
	}
	for _, part := range ask.parts() {
		if err := refused(part, facts.refuseSource, facts.refuseSize); err != nil {
			return err
		}
	}
	return nil
}

// refused gives the first refusal of several checks, or a plain nil.
func refused(ask PoolAsk, checks ...func(PoolAsk) *Refusal) error {
	for _, check := range checks {
		if refusal := check(ask); refusal != nil {
			return refusal
		}
	}
	return nil
}

// refuseTraits refuses what does not copy on write.
func (f *Facts) refuseTraits(asked string, pool PoolFacts) *Refusal {
	capability, judgement, bad := f.traits(pool).worst()
	if !bad {
		return nil
	}
	evidence := []string{fmt.Sprintf("%s of pool %q: %s by its driver and configuration", capability.Title(), pool.Name, judgement.verdict), f.offers()}
	if others := f.goodPools(pool.Name); len(others) > 0 {
		evidence = append(evidence, "pools of this daemon that should copy on write: "+strings.Join(others, ", "))
	}
	remedy := judgement.remedy
	if instead := f.refusePoolOf(DefaultDriver); instead != nil && judgement.argument == "driver" {
		remedy += " This host cannot make one yet: " + instead.Found + ". " + instead.Remedy
	}
	return &Refusal{Capability: Pools, Argument: judgement.argument, Asked: asked, Found: judgement.reason, Evidence: evidence, Remedy: remedy}
}

// refuseDriver refuses a driver that the daemon cannot use.
func (f *Facts) refuseDriver(ask PoolAsk) *Refusal {
	driver := ask.driver()
	offered := slices.Contains(f.drivers(), driver)
	missing := f.host.missing(driver)
	refusal := &Refusal{
		Capability: Pools, Argument: "driver", Asked: ask.String(),
		Evidence: append([]string{f.offers()}, missing...),
		Remedy:   f.driverRemedy(driver),
	}
	switch {
	case offered && len(missing) == 0:
		return nil
	case offered:
		refusal.Found = fmt.Sprintf("the daemon lists the driver %q but the host lacks what it needs", driver)
	case f.host == nil || driverTools[driver].programs == nil || f.host.snap:
		refusal.Found = fmt.Sprintf("the daemon does not offer the driver %q", driver)
	case len(missing) == 0:
		return nil // the daemon's list dates from its start; with the tools at hand the driver works
	default:
		refusal.Found = fmt.Sprintf("the daemon does not offer the driver %q, and the host lacks what it needs", driver)
	}
	if others := f.goodPools(ask.Name); len(others) > 0 {
		refusal.Evidence = append(refusal.Evidence, "pools of this daemon that should copy on write: "+strings.Join(others, ", "))
	}
	return refusal
}

// refuseSource refuses a source that another pool uses, or that is not shown to be empty: deleting a pool wipes it.
func (f *Facts) refuseSource(ask PoolAsk) *Refusal {
	if ask.Source == "" {
		return nil
	}
	refusal := &Refusal{
		Capability: Source, Argument: ask.argument("source"), Asked: ask.String(),
		Remedy: "Give a source that holds nothing, or leave it out: the daemon then makes a loop file of its own.",
	}
	for _, pool := range f.sortedPools() {
		if used := pool.sourceWithin(ask.Source); used != "" && pool.Name != ask.Name {
			refusal.Found = fmt.Sprintf("the source is in use by pool %q, and deleting either pool would destroy the other", pool.Name)
			refusal.Evidence = []string{fmt.Sprintf("source of pool %q: %s", pool.Name, used)}
			return refusal
		}
	}
	if !filepath.IsAbs(ask.Source) {
		return refuseForced(ask) // a ZFS pool, volume group or Ceph pool: the daemon itself takes only an empty one
	}
	if f.hostOf(ask.member) == nil {
		refusal.Found = "the source is on another host, where nobody here can see whether it is empty"
		refusal.Remedy = "Leave source out: the daemon then makes a loop file of its own. Or run terraform on the daemon's host."
		return refusal
	}
	held, err := foreign(ask.Source)
	switch {
	case err != nil:
		refusal.Found = "it cannot be shown that the source is empty"
		refusal.Evidence = []string{err.Error()}
		refusal.Remedy = "Run terraform as a user who may read the source (root), or leave source out: the daemon then makes a loop file of its own."
	case held != "":
		refusal.Found = "the source is not empty, and deleting the pool would destroy what it holds"
		refusal.Evidence = []string{held}
	default:
		return nil
	}
	return refusal
}

// refuseForced refuses the options that make the daemon take what somebody else may be using.
func refuseForced(ask PoolAsk) *Refusal {
	for _, key := range []string{"lvm.vg.force_reuse", "ceph.osd.force_reuse"} {
		if shared.IsTrue(ask.Config[key]) {
			return &Refusal{
				Capability: Source, Argument: "config", Asked: ask.String(),
				Found:  fmt.Sprintf("%s makes the daemon take the source without looking whether it is in use", key),
				Remedy: fmt.Sprintf("Remove %s from config and give a source of its own to the pool.", key),
			}
		}
	}
	return nil
}

// sourceWithin gives the source of a pool when it is, holds, or is held by another source.
func (p PoolFacts) sourceWithin(other string) string {
	for _, key := range []string{"source", "volatile.initial_source"} {
		if source := p.Config[key]; source != "" && overlap(source, other) {
			return source
		}
	}
	return ""
}

func overlap(a, b string) bool {
	if a == b {
		return true
	}
	if !filepath.IsAbs(a) || !filepath.IsAbs(b) {
		return false
	}
	a, b = resolved(a)+"/", resolved(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// resolved follows links as far as the path exists.
func resolved(path string) string {
	path = filepath.Clean(path)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}

// sizeOf reads a size of the daemon's configuration; 0 when there is none.
func sizeOf(config map[string]string) int64 {
	bytes, err := units.ParseByteSizeString(config["size"])
	if err != nil {
		return 0
	}
	return bytes
}

// size writes bytes for people, in the form that a size argument has when the number is whole.
func size(bytes int64) string {
	return strings.Replace(units.GetByteSizeStringIEC(bytes, 1), ".0", "", 1)
}

// atMost writes a size that an argument may have and that is not more than bytes.
func atMost(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%dGiB", bytes>>30)
	}
	return fmt.Sprintf("%dMiB", bytes>>20)
}
