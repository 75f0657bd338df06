// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// The thresholds stand far from what was measured on both sides: a copy-on-write operation takes well under a
// hundredth of the data's size and time, a copying one about all of its size and a third of its time.
const (
	// sharedSpace is the most, as a part of the data, that an operation may grow the pool and count as copy-on-write.
	sharedSpace = 0.10
	// copiedSpace is the least that counts as a copy.
	copiedSpace = 0.50
	// exactSpace is how far a growth may be from the data's size, and from nothing without data, to be the copy's alone.
	exactSpace = 0.05
	// meterSpace is the most that a meter may add to each operation, data or not. LXD adds the percentage in use of a thin
	// pool's metadata to that of its data, and takes both of the data's size: a block of 4 KiB shows as 64 of the pool's
	// chunks, 4 MiB at least, and an operation writes a few.
	meterSpace = 0.40
	// sharedTime is the most extra time, as a part of the time to write the data, of a copy-on-write operation.
	sharedTime = 0.25
	// copiedTime is the least extra time of a copy.
	copiedTime = 0.10
	// restoredTime is the most extra time of a copy-on-write restore. It is tighter, since a restore in place may
	// leave the space as it was; heldTime is the most where emptying the machine left it, too.
	restoredTime, heldTime = 0.10, 0.20
	// flatTime is the most where the pool grew over all runs together by no more than one of them may: each copy would
	// have shown there, even by a meter that shows it late. A busy host may take so long for its own reasons.
	flatTime = 0.50
	// blurredTime is the most, as a part of the time without data, where that is so long that flatTime of the time to write
	// is next to nothing: under emulation the tools of LVM alone take seconds.
	blurredTime = 0.25
	// writeRate bounds from below, in bytes per second, the writing that time is compared to: over a slow network the
	// time to send the data says nothing about the disk.
	writeRate = 256 << 20
)

// sample is one operation: how long it took, and by how many bytes the pool grew.
type sample struct {
	took time.Duration
	grew int64
}

func (s sample) time() time.Duration { return s.took }

func (s sample) growth() int64 { return s.grew }

// series are the samples of one operation on a machine without data and with it.
type series struct {
	empty, full []sample
}

// measurement is what a probe saw.
type measurement struct {
	// bytes is how much random data the machine held.
	bytes int64
	// write is how long it took to write it.
	write time.Duration
	// written is by how many bytes the pool grew then.
	written int64
	// meterBytes is the least growth that the driver reports reliably.
	meterBytes int64

	snapshots, branches, restores series
	// emptied is by how much the pool grew, or shrank, when the data was taken away before each restore.
	emptied []sample
	// lineage is what the file system itself says of each; nil where it could not be asked.
	lineage *lineage
}

// lineage says what a file system's own records have as made from what, by sharing its data.
type lineage struct {
	snapshot, branch, restore bool
}

// Measure is what a probe measured of one operation.
type Measure struct {
	// Space is by how much the pool grew, as a part of the data.
	Space float64 `json:"space"`
	// EmptyMS and FullMS are how long it took without the data and with it, in milliseconds: medians.
	EmptyMS float64 `json:"empty_ms"`
	FullMS  float64 `json:"full_ms"`
	// Verdict is [Proven] (copy-on-write), [Degraded] (a copy) or [Unproven] (the witnesses disagree).
	Verdict Verdict `json:"verdict"`
}

func (m Measure) describe(what string, bytes int64) string {
	return fmt.Sprintf("%s of %s of random data: %.1f ms (of none: %.1f ms), and %.4f times its size in space: %s",
		what, size(bytes), m.FullMS, m.EmptyMS, m.Space, outcome(m.Verdict))
}

// outcome is a probe's verdict in words.
func outcome(v Verdict) string {
	switch v {
	case Proven:
		return "copy-on-write"
	case Degraded:
		return "a copy"
	default:
		return "inconclusive"
	}
}

// metered says whether the pool's space can be a witness: the data that was written showed in it.
func (m *measurement) metered() bool {
	return m.meterBytes*20 <= m.bytes && float64(m.written) >= copiedSpace*float64(m.bytes)
}

// measure puts a series in figures, without judging it. The figures are medians. The cost, by which time is judged, is
// that of the fastest runs: a busy host adds to some runs' time, but takes nothing from any.
func (m *measurement) measure(s series) (figures Measure, cost float64) {
	figures = Measure{
		Space:   round(float64(median(s.full, sample.growth)-m.added(s))/float64(m.bytes), 4),
		EmptyMS: milliseconds(median(s.empty, sample.time)), FullMS: milliseconds(median(s.full, sample.time)), Verdict: Unproven,
	}
	return figures, m.ofWriting(fastest(s.full) - fastest(s.empty))
}

// ofWriting gives a time as a part of that to write the data.
func (m *measurement) ofWriting(took time.Duration) float64 {
	reference := min(m.write, time.Duration(float64(m.bytes)/writeRate*float64(time.Second)))
	return float64(took) / float64(max(reference, 1))
}

// added is what the meter adds to each operation: what it shows without data, most times.
func (m *measurement) added(s series) int64 {
	usual := median(s.empty, sample.growth)
	if usual <= 0 || float64(usual) > meterSpace*float64(m.bytes) || !m.mostly(s.empty, usual) {
		return 0
	}
	return usual
}

// judge gives the verdict on taking snapshots or branches: space is one witness, and lineage, or else time, the other.
func (m *measurement) judge(s series, related func(*lineage) bool) Measure {
	figures, cost := m.measure(s)
	if !m.metered() {
		return judgeByTime(figures, cost)
	}
	limit := sharedTime
	if m.flat(s.full, m.added(s)) {
		limit = m.flatLimit(s)
	}
	shares, copies := cost <= limit, cost >= copiedTime || m.exact(s)
	if m.lineage != nil {
		shares, copies = related(m.lineage), !related(m.lineage)
	}
	switch {
	case figures.Space <= sharedSpace && shares:
		figures.Verdict = Proven
	case figures.Space >= copiedSpace && copies:
		figures.Verdict = Degraded
	}
	return figures
}

// held says that the snapshot kept the data when it was taken away from the machine: the pool's space stayed. Where a
// restore copies, taking the data away frees what it wrote.
func (m *measurement) held() bool {
	changed := math.Abs(float64(median(m.emptied, sample.growth)))
	return len(m.emptied) > 0 && changed <= sharedSpace*float64(m.bytes)
}

// flat says that the pool grew by next to nothing over all of these together, besides what its meter added to each.
func (m *measurement) flat(samples []sample, added int64) bool {
	var grew int64
	for _, s := range samples {
		grew += s.grew - added
	}
	return float64(grew) <= sharedSpace*float64(m.bytes)
}

// flatLimit is the most extra time where space was flat. It is no less than that by which runs without data differ.
func (m *measurement) flatLimit(s series) float64 {
	least, most := fastest(s.empty), slowest(s.empty)
	return max(flatTime, m.ofWriting(max(most-least, time.Duration(blurredTime*float64(least)))))
}

// exact says that the pool grew by the data's size, and by nothing without data, most times: so regular is a copy, not a
// neighbour. A busy host may take so long for the baseline that a copy's time does not stand out; and what else is on
// the disk, as space that is given back late, may hide one copy, but not most.
func (m *measurement) exact(s series) bool {
	return m.mostly(s.full, m.bytes) && m.mostly(s.empty, 0)
}

// mostly says that the pool grew by so much, most times.
func (m *measurement) mostly(samples []sample, grew int64) bool {
	near := 0
	for _, s := range samples {
		if math.Abs(float64(s.grew-grew)) <= exactSpace*float64(m.bytes) {
			near++
		}
	}
	return 2*near > len(samples)
}

// judgeRestore gives the verdict on restores. Growth shows a copy in place; its absence shows little, since a copy
// may take the place of what it replaces. So lineage, or else time, must speak for it.
func (m *measurement) judgeRestore() Measure {
	figures, cost := m.measure(m.restores)
	if !m.metered() {
		return judgeByTime(figures, cost)
	}
	limit := restoredTime
	switch {
	case m.held() && m.flat(slices.Concat(m.emptied, m.restores.full), 0):
		limit = m.flatLimit(m.restores) // a copy would no longer share its data with the snapshot
	case m.held():
		limit = heldTime
	}
	shares, copies := cost <= limit, cost >= copiedTime || m.exact(m.restores)
	if m.lineage != nil {
		shares, copies = m.lineage.restore, !m.lineage.restore
	}
	switch {
	case figures.Space <= sharedSpace && shares:
		figures.Verdict = Proven
	case figures.Space >= copiedSpace && copies:
		figures.Verdict = Degraded
	}
	return figures
}

// judgeByTime gives the verdict where the pool does not tell its space well enough.
func judgeByTime(figures Measure, cost float64) Measure {
	switch {
	case cost <= restoredTime:
		figures.Verdict = Proven
	case cost >= 2*sharedTime:
		figures.Verdict = Degraded
	}
	return figures
}

// fastest gives the shortest time; 0 of none.
func fastest(samples []sample) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	return slices.MinFunc(samples, byTime).took
}

// slowest gives the longest time; 0 of none.
func slowest(samples []sample) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	return slices.MaxFunc(samples, byTime).took
}

func byTime(a, b sample) int { return cmp.Compare(a.took, b.took) }

// median gives the middle value (of an even number, the upper one); 0 of none.
func median[T cmp.Ordered](samples []sample, value func(sample) T) T {
	var none T
	if len(samples) == 0 {
		return none
	}
	values := make([]T, 0, len(samples))
	for _, s := range samples {
		values = append(values, value(s))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func milliseconds(d time.Duration) float64 { return round(d.Seconds()*1000, 1) }

// round keeps a number of decimals.
func round(value float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(value*scale) / scale
}
