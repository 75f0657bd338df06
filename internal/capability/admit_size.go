// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"strings"
)

// resizeExtension is what a daemon announces that can grow a loop pool. One without it takes a new size, says that
// all is well, and leaves the file system as it was.
const resizeExtension = "storage_pool_loop_resize"

// freeForLoops gives the free space of the disk that holds the daemon's loop files; known is false where it cannot be
// seen.
func (f *Facts) freeForLoops() (bytes int64, known bool) {
	if f.host == nil {
		return 0, false
	}
	bytes, err := f.host.freeBytes(f.host.loopDir())
	return bytes, err == nil
}

// refuseSize refuses a loop file that its disk cannot hold.
func (f *Facts) refuseSize(ask PoolAsk) *Refusal {
	if !ask.onLoop() {
		return nil
	}
	wanted := ask.SizeBytes
	if wanted > 0 && wanted < leastPoolBytes {
		return &Refusal{
			Capability: Headroom, Argument: ask.argument("size"), Asked: ask.String(),
			Found:  "the pool is too small to be proved: the probe must have room in case every operation is a full copy",
			Remedy: fmt.Sprintf("Set size to at least %s; the loop file is sparse, so that costs nothing.", size(leastPoolBytes)),
		}
	}
	free, known := f.freeForLoops()
	if !known || f.hostOf(ask.member) == nil {
		return nil // what cannot be seen is not refused; the probe will tell
	}
	evidence := []string{fmt.Sprintf("free on the disk of %s: %s", f.host.loopDir(), size(free))}
	if wanted == 0 {
		wanted = leastLoopBytes
		evidence = append(evidence, fmt.Sprintf("a loop file without a size gets at least %s from the daemon", size(wanted)))
	}
	if wanted <= free {
		return nil
	}
	remedy := fmt.Sprintf("Set size to at most %s, or free some of the disk.", atMost(free))
	if free < leastPoolBytes {
		remedy = fmt.Sprintf("Free some of the disk: a pool has at least %s.", size(leastPoolBytes))
	}
	return &Refusal{
		Capability: Headroom, Argument: ask.argument("size"), Asked: ask.String(),
		Found:    fmt.Sprintf("the disk that would hold the loop file has only %s free; the file is sparse, so it would be made, and fail when it fills", size(free)),
		Evidence: evidence,
		Remedy:   remedy,
	}
}

// leastLoopBytes is the least that a daemon gives a loop file whose size is left to it: a fifth of the disk, but
// between 5 and 30 GiB.
const leastLoopBytes = 5 << 30

// leastPoolBytes is what a pool must have so that the probe's data fits thirteen times, beside the file system's own.
const leastPoolBytes = 1 << 30

// onLoop says that the daemon makes a loop file for the pool.
func (a PoolAsk) onLoop() bool {
	if a.Source != "" {
		return false
	}
	switch a.driver() {
	case "btrfs", "zfs", "lvm":
		return true
	default:
		return false
	}
}

// refuseResize refuses a change of size that the daemon cannot make, or would only pretend to make.
func (f *Facts) refuseResize(ask PoolAsk, canGrow bool) *Refusal {
	present := f.present[ask.Name]
	old := sizeOf(present.Config)
	if ask.SizeBytes == 0 || old == 0 || ask.SizeBytes == old {
		return nil
	}
	refusal := &Refusal{
		Capability: Resize, Argument: "size", Asked: ask.String(),
		Evidence: []string{fmt.Sprintf("size of pool %q now: %s", ask.Name, size(old))},
	}
	switch {
	case ask.SizeBytes < old:
		refusal.Found = "a storage pool cannot shrink"
		refusal.Remedy = fmt.Sprintf("Put size back to %s, or make another pool with another name.", size(old))
	case !onLoopFile(present.Config["source"]):
		refusal.Found = "only a pool on a loop file of the daemon's can grow"
		refusal.Evidence = append(refusal.Evidence, fmt.Sprintf("source of pool %q: %s", ask.Name, present.Config["source"]))
		refusal.Remedy = "Remove size: the pool is as large as its source."
	case !canGrow:
		refusal.Found = fmt.Sprintf("this daemon cannot grow a pool: it would note the new size and leave the file system at %s", size(old))
		refusal.Evidence = append(refusal.Evidence, fmt.Sprintf("%s %s lacks the API extension %s", f.product(), f.Environment.ServerVersion, resizeExtension))
		refusal.Remedy = fmt.Sprintf("Put size back to %s, or make a larger pool with another name beside this one; LXD 5.0.3 and newer can grow one.", size(old))
	default:
		return f.refuseGrowth(refusal, ask.SizeBytes-old)
	}
	return refusal
}

// onLoopFile says whether a pool's source is a loop file.
func onLoopFile(source string) bool { return strings.HasSuffix(source, ".img") }

// refuseGrowth refuses more than the disk has.
func (f *Facts) refuseGrowth(refusal *Refusal, growth int64) *Refusal {
	free, known := f.freeForLoops()
	if !known || growth <= free {
		return nil
	}
	refusal.Capability = Headroom
	refusal.Found = fmt.Sprintf("the disk that holds the loop file has only %s free", size(free))
	refusal.Remedy = "Ask for less, or free some of the disk."
	return refusal
}
