// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
)

const testBytes = 64 << 20

// samples makes samples out of times in milliseconds, each with the same growth as a part of the data.
func samples(space float64, times ...int) []sample {
	made := make([]sample, 0, len(times))
	for _, ms := range times {
		made = append(made, sample{took: time.Duration(ms) * time.Millisecond, grew: int64(space * testBytes)})
	}
	return made
}

// times gives the times of samples back, in milliseconds.
func times(samples []sample) (ms []int) {
	for _, s := range samples {
		ms = append(ms, int(s.took.Milliseconds()))
	}
	return ms
}

// measured is a measurement whose data took 350 ms to write and showed in the pool's space.
func measured() *measurement {
	return &measurement{bytes: testBytes, write: 350 * time.Millisecond, written: testBytes}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	blind := func(m *measurement) { m.written = 0 }
	coarse := func(m *measurement) { m.meterBytes = testBytes }
	related := func(m *measurement) { m.lineage = &lineage{snapshot: true, branch: true, restore: true} }
	unrelated := func(m *measurement) { m.lineage = &lineage{} }
	held := func(m *measurement) { m.emptied = samples(-0.01, 50, 50, 50) }
	freed := func(m *measurement) { m.emptied = samples(-1, 50, 50, 50) }
	late := func(m *measurement) { // one sample shows what its median does not
		held(m)
		for _, s := range []*series{&m.snapshots, &m.branches, &m.restores} {
			s.full[0].grew += testBytes
		}
	}
	irregular := func(m *measurement) { // most samples show more than the data
		for _, s := range []*series{&m.snapshots, &m.branches, &m.restores} {
			for i := range s.full[:3] {
				s.full[i].grew = int64((1 + float64(i+1)/8) * testBytes)
			}
		}
	}
	neighbour := func(m *measurement) {
		for _, s := range []*series{&m.snapshots, &m.branches, &m.restores} {
			s.empty = samples(1, 39, 41, 40)
		}
	}
	thin := func(copied float64) func(*measurement) { // as measured under emulation
		return func(m *measurement) {
			m.emptied = samples(0.06, 5717, 5294, 6699, 7435, 6399)
			m.snapshots = series{append(samples(0.32, 2990), samples(0.19, 3675, 4070)...), samples(0.19+copied, times(m.snapshots.full)...)}
			m.branches = series{samples(0.25, 4982, 4557, 5116), samples(0.20+copied, times(m.branches.full)...)}
			m.restores = series{append(samples(0.06, 4954), samples(0, 5789, 5819, 6238, 5431)...), samples(copied-0.06, times(m.restores.full)...)}
		}
	}
	wavering := func(m *measurement) { // no faster at times without data than others with it
		thin(0)(m)
		for _, s := range []*series{&m.snapshots, &m.branches, &m.restores} {
			s.empty[0].took, s.empty[1].took = time.Second, 6*time.Second
		}
	}
	unsteady := func(m *measurement) { // what comes without data differs by more than the data's size could be told by
		thin(0)(m)
		for _, s := range []*series{&m.snapshots, &m.branches} {
			s.empty[0].grew, s.empty[2].grew = 1, testBytes
		}
	}
	slowNetwork := func(m *measurement) { m.write = time.Minute }
	for name, test := range map[string]struct {
		space   float64
		full    []int
		change  func(*measurement)
		copies  Verdict // of snapshots and branches
		restore Verdict
	}{
		"btrfs, measured":                      {0.0007, []int{42, 41, 44, 40, 43}, nil, Proven, Proven},
		"dir, measured":                        {1.0004, []int{203, 198, 230, 210, 190}, nil, Degraded, Degraded},
		"dir, over a slow network":             {1.0004, []int{203, 198, 230, 210, 190}, slowNetwork, Degraded, Degraded},
		"btrfs, one sample disturbed":          {0.0007, []int{42, 900, 44, 40, 43}, nil, Proven, Proven},
		"btrfs, busy host":                     {0.0015, []int{300, 280, 45, 310, 290}, nil, Proven, Proven},
		"btrfs, busier host":                   {0.0015, []int{85, 80, 90, 82, 88}, nil, Proven, Unproven},
		"busier host, data held":               {0.0015, []int{85, 80, 90, 82, 88}, held, Proven, Proven},
		"busier host, data freed":              {0.0015, []int{85, 80, 90, 82, 88}, freed, Proven, Unproven},
		"much busier, data held":               {0.0015, []int{100, 98, 101, 102, 97}, held, Proven, Proven},
		"much busier, a copy seen late":        {0.0015, []int{100, 98, 101, 102, 97}, late, Proven, Unproven},
		"much busier still, data held":         {0.0015, []int{140, 138, 141, 142, 137}, held, Proven, Proven},
		"much busier still, a copy seen late":  {0.0015, []int{140, 138, 141, 142, 137}, late, Unproven, Unproven},
		"much too busy, data held":             {0.0015, []int{170, 168, 171, 172, 167}, held, Unproven, Unproven},
		"little space but much time":           {0.0015, []int{240, 230, 250, 245, 235}, nil, Unproven, Unproven},
		"dir, busy host":                       {1.0009, []int{42, 41, 44, 40, 43}, nil, Degraded, Degraded},
		"dir, busy host, once more space":      {1.0009, []int{42, 41, 44, 40, 43}, late, Degraded, Degraded},
		"dir, busy host, mostly more space":    {1.0009, []int{42, 41, 44, 40, 43}, irregular, Unproven, Unproven},
		"a neighbour writes as much":           {1.0009, []int{42, 41, 44, 40, 43}, neighbour, Unproven, Unproven},
		"much space but no time":               {0.9, []int{42, 41, 44, 40, 43}, nil, Unproven, Unproven},
		"space in between":                     {0.3, []int{42, 41, 44, 40, 43}, nil, Unproven, Unproven},
		"busy host, but the records tell":      {0.0015, []int{240, 230, 250, 245, 235}, related, Proven, Proven},
		"little space, but the records differ": {0.0015, []int{42, 41, 44, 40, 43}, unrelated, Unproven, Unproven},
		"a copy, as the records tell":          {1, []int{42, 41, 44, 40, 43}, unrelated, Degraded, Degraded},
		"much space, but the records say not":  {1, []int{203, 198, 230, 210, 190}, related, Unproven, Unproven},
		"thin pool, slow host":                 {0, []int{2898, 5441, 5400, 7665, 6080}, thin(0), Proven, Proven},
		"thin pool, unsteady host":             {0, []int{5900, 5968, 5910, 6300, 5940}, wavering, Proven, Proven},
		"thin pool, slower with data":          {0, []int{6800, 6901, 6810, 7300, 6840}, thin(0), Unproven, Unproven},
		"thin pool, unsteady meter":            {0, []int{2898, 5441, 5400, 7665, 6080}, unsteady, Unproven, Proven},
		"thin pool, copied":                    {0, []int{6800, 6901, 6810, 7300, 6840}, thin(1), Degraded, Degraded},
		"thin pool, copied in no time":         {0, []int{2900, 2901, 2910, 2905, 2903}, thin(0.9), Unproven, Unproven},
		"a meter that stands still, fast":      {0, []int{42, 41, 44, 40, 43}, blind, Proven, Proven},
		"a meter that stands still, slow":      {0, []int{203, 198, 230, 210, 190}, blind, Degraded, Degraded},
		"a meter that stands still, doubtful":  {0, []int{100, 98, 101, 102, 97}, blind, Unproven, Unproven},
		"a meter too coarse, slow":             {0, []int{203, 198, 230, 210, 190}, coarse, Degraded, Degraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := measured()
			for _, s := range []*series{&m.snapshots, &m.branches, &m.restores} {
				*s = series{empty: samples(0, 39, 41, 40), full: samples(test.space, test.full...)}
			}
			if test.change != nil {
				test.change(m)
			}
			proof := prove(site{environment: &api.ServerEnvironment{}}, PoolFacts{}, m)
			if proof.Snapshot.Verdict != test.copies || proof.Branch.Verdict != test.copies {
				t.Errorf("snapshot is %s and branch %s, want %s", proof.Snapshot.Verdict, proof.Branch.Verdict, test.copies)
			}
			if proof.Restore.Verdict != test.restore {
				t.Errorf("restore is %s, want %s", proof.Restore.Verdict, test.restore)
			}
		})
	}
}

func TestJudgeEachByItself(t *testing.T) {
	t.Parallel()
	shared := series{empty: samples(0, 40, 40, 40), full: samples(0, 41, 41, 41)}
	copied := series{empty: samples(0, 40, 40, 40), full: samples(1, 240, 240, 240)}
	m := measured()
	m.snapshots, m.branches, m.restores = shared, copied, shared // as ZFS with clone_copy=false
	proof := prove(site{environment: &api.ServerEnvironment{}}, PoolFacts{}, m)
	if proof.Snapshot.Verdict != Proven || proof.Branch.Verdict != Degraded || proof.Restore.Verdict != Proven {
		t.Errorf("got %s, %s, %s", proof.Snapshot.Verdict, proof.Branch.Verdict, proof.Restore.Verdict)
	}
	if proof.CopyOnWrite() || !proof.conclusive() {
		t.Error("a pool that copies branches passes, or is in doubt")
	}
}

func TestFastestAndSlowest(t *testing.T) {
	t.Parallel()
	three := samples(0, 50, 40, 60)
	if fast, slow := fastest(three), slowest(three); fast != 40*time.Millisecond || slow != 60*time.Millisecond {
		t.Errorf("got %s and %s, want 40 ms and 60 ms", fast, slow)
	}
	if fast, slow := fastest(nil), slowest(nil); fast != 0 || slow != 0 {
		t.Errorf("got %s and %s of none, want 0", fast, slow)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		times []int
		want  int
	}{
		"none":          {nil, 0},
		"one":           {[]int{7}, 7},
		"odd, unsorted": {[]int{9, 1, 5}, 5},
		"even":          {[]int{1, 2, 3, 4}, 3},
		"an outlier":    {[]int{40, 41, 90000, 42, 39}, 41},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := median(samples(0, test.times...), sample.time); got != time.Duration(test.want)*time.Millisecond {
				t.Errorf("got %s, want %d ms", got, test.want)
			}
		})
	}
}
