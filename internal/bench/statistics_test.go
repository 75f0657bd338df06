// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	var twenty []int64
	for i := range int64(20) {
		twenty = append(twenty, (i*7%20+1)*10) // 10 to 200, out of order
	}
	for name, test := range map[string]struct {
		observed []int64
		want     Summary
	}{
		"none":   {nil, Summary{}},
		"one":    {[]int64{7}, Summary{Count: 1, Median: 7, P95: 7, Min: 7, Max: 7}},
		"odd":    {[]int64{9, 1, 5}, Summary{Count: 3, Median: 5, P95: 9, Min: 1, Max: 9}},
		"even":   {[]int64{8, 2}, Summary{Count: 2, Median: 5, P95: 8, Min: 2, Max: 8}},
		"twenty": {twenty, Summary{Count: 20, Median: 105, P95: 190, Min: 10, Max: 200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(test.observed)
			if diff := cmp.Diff(test.want, Summarize(test.observed)); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(before, test.observed) {
				t.Errorf("the observations were put in order: %v", test.observed)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b Summary
		want bool
	}{
		{Summary{Min: 1, Max: 4}, Summary{Min: 5, Max: 9}, false},
		{Summary{Min: 1, Max: 5}, Summary{Min: 5, Max: 9}, true},
		{Summary{Min: 1, Max: 9}, Summary{Min: 3, Max: 4}, true},
	} {
		if test.a.Overlaps(test.b) != test.want || test.b.Overlaps(test.a) != test.want {
			t.Errorf("%v and %v: want %v", test.a, test.b, test.want)
		}
	}
}

func TestObservationsThatCount(t *testing.T) {
	t.Parallel()
	trial := func(subject string, round int, ms int64, failure string) Row {
		return Row{Kind: KindTrial, Subject: subject, Round: round, Values: Values{"a_ms": ms}, Error: failure}
	}
	rows := []Row{
		trial("x", 0, 1, ""), // the warm-up
		trial("x", 1, 2, ""),
		trial("x", 2, 4, "it broke"),
		trial("x", 3, 8, ""),
		trial("y", 1, 16, ""),
		{Kind: KindTrial, Subject: "x", Round: 4, Values: Values{"b_ms": 32}}, // measured nothing of it
		{Kind: KindStage, Subject: "x", Round: 5, Values: Values{"a_ms": 64}},
	}
	if diff := cmp.Diff([]int64{2, 8}, observations(rows, "x", "a_ms")); diff != "" {
		t.Error(diff)
	}
}
