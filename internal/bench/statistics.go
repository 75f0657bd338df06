// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"math"
	"slices"
)

// Summary describes some observations of one measure.
type Summary struct {
	// Count is how many there are; with none, nothing else is meant.
	Count int
	// Median is the middle one, or the mean of the middle two.
	Median int64
	// P95 is the smallest that at least 95 % of them do not exceed: the nineteenth of twenty.
	P95 int64
	// Min and Max are their range.
	Min, Max int64
}

// Summarize describes observations.
func Summarize(observed []int64) Summary {
	sorted := slices.Sorted(slices.Values(observed))
	n := len(sorted)
	if n == 0 {
		return Summary{}
	}
	return Summary{
		Count: n, Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, P95: sorted[int(math.Ceil(0.95*float64(n)))-1],
		Min: sorted[0], Max: sorted[n-1],
	}
}

// Overlaps says whether two ranges have anything in common. Where they do, neither is called the faster one.
func (s Summary) Overlaps(other Summary) bool { return s.Min <= other.Max && other.Min <= s.Max }

// observations gives what was measured of a subject, in the trials that count.
func observations(rows []Row, subject, measure string) []int64 {
	var observed []int64
	for i := range rows {
		row := &rows[i]
		if value, measured := row.Values[measure]; measured && row.counted() && row.Subject == subject {
			observed = append(observed, value)
		}
	}
	return observed
}

// summaryOf describes what was measured of a subject.
func summaryOf(rows []Row, subject, measure string) Summary {
	return Summarize(observations(rows, subject, measure))
}
