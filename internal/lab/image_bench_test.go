// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// launchRounds is how many pools a benchmark of launches makes of each kind.
const launchRounds = 9

// BenchmarkFirstLaunch launches Debian machines, to the same ready condition, on pools that are new: two on one on which
// the image was unpacked ahead, and one on one on which it was not. It reports the ratios of the medians to the second
// launch:
//
//	TF_ACC=1 go test -run - -bench FirstLaunch -benchtime 1x ./internal/lab
func BenchmarkFirstLaunch(b *testing.B) {
	host, l := connect(b)
	fingerprint := host.Debian(b).Fingerprint
	launches := map[string][]int64{}
	for b.Loop() {
		for range launchRounds {
			cold := launchPool(b, l)
			launches["cold"] = append(launches["cold"], launch(b, host, l, cold, fingerprint))
			warm := launchPool(b, l)
			if _, _, err := l.UpdateImage(b.Context(), fingerprint, lab.ImageSpec{}, lab.ImageSpec{Pools: []string{warm}}); err != nil {
				b.Fatal(err)
			}
			launches["first"] = append(launches["first"], launch(b, host, l, warm, fingerprint))
			launches["second"] = append(launches["second"], launch(b, host, l, warm, fingerprint))
		}
	}
	second := float64(acctest.Median(launches["second"]))
	b.ReportMetric(second, "second-ms")
	b.ReportMetric(float64(acctest.Median(launches["first"]))/second, "first/second")
	b.ReportMetric(float64(acctest.Median(launches["cold"]))/second, "cold/second")
}

// launchPool makes a pool and proves it, and removes it when the benchmark ends.
func launchPool(b *testing.B, l *lab.Lab) string {
	b.Helper()
	spec := lab.PoolSpec{Name: acctest.Name(b, "launch"), Driver: "btrfs", Size: "4GiB"}
	if _, _, err := l.CreatePool(b.Context(), spec); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.DeletePool(context.Background(), spec.Name); err != nil {
			b.Errorf("clean up: %v", err)
		}
	})
	return spec.Name
}

// launch launches a machine, gives how long that took until it was usable, in milliseconds, and removes it.
func launch(b *testing.B, host *acctest.Host, l *lab.Lab, pool, image string) int64 {
	b.Helper()
	spec := tiny(b, host)
	spec.Pool, spec.Image, spec.Ready = pool, image, lab.Ready{Systemd: true}
	machine, timings, err := l.CreateMachine(b.Context(), spec)
	if err == nil {
		err = l.DeleteMachine(b.Context(), machine.ID)
	}
	if err != nil {
		b.Fatal(err)
	}
	return timings.UsableMS
}
