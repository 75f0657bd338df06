// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// comparePairs is how many times each side of a comparison is measured.
const comparePairs = 15

// Compare times two ways of doing the same in turns, so that both see the same host. It reports the ratio of the
// medians as "ours/raw", and as "raw/raw" that of the raw way to itself: the further from 1, the less the host can be
// trusted. What is run after each of them is not timed.
func Compare(b *testing.B, ours, raw func(), after ...func()) {
	b.Helper()
	times := map[string][]float64{}
	measure := func(side string, work func()) {
		start := time.Now()
		work()
		times[side] = append(times[side], float64(time.Since(start).Microseconds())/1000)
		for _, tidy := range after {
			tidy()
		}
	}
	for b.Loop() {
		for range comparePairs {
			measure("raw", raw)
			measure("ours", ours)
			measure("again", raw)
		}
	}
	raw1, raw2, mine := Median(times["raw"]), Median(times["again"]), Median(times["ours"])
	b.ReportMetric(mine/raw1, "ours/raw")
	b.ReportMetric(raw2/raw1, "raw/raw")
	b.ReportMetric(mine, "ours-ms")
	b.ReportMetric(raw1, "raw-ms")
}

// Median is the value in the middle; of an even number of values, the upper of the two.
func Median[T cmp.Ordered](values []T) T { return slices.Sorted(slices.Values(values))[len(values)/2] }
