// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// resetRounds is how many times each side is measured; the sides take turns, so that both see the same host.
const resetRounds = 15

// BenchmarkResetThroughTerraform resets four running Debian machines through terraform. It reports what the whole apply
// adds to the reset itself, in plans of the same lab in which nothing changed, and how much longer it takes to replace the
// machines with -replace, which is what there is without snapshots:
//
//	TF_ACC=1 go test -run - -bench ResetThroughTerraform -benchtime 1x -timeout 1h ./internal/provider
func BenchmarkResetThroughTerraform(b *testing.B) {
	host := acctest.Shared(b)
	ours, others := newDebians(b, host, debianReset), newDebians(b, host, "")
	replace := []string{"apply", "-auto-approve", "-no-color"}
	for _, key := range []string{"a", "b", "c", "d"} {
		replace = append(replace, `-replace=lab_machine.m["`+key+`"]`)
	}
	times := map[string][]time.Duration{}
	note := func(side string, took time.Duration) { times[side] = append(times[side], took) }
	run := 0
	for b.Loop() {
		for range resetRounds {
			run++
			whole, itself := ours.reset(run)
			note("apply", whole)
			note("itself", itself)
			note("added", whole-itself)
			note("plan", ours.plan(run))
			start := time.Now()
			others.Run(b, replace...)
			note("replace", time.Since(start))
		}
	}
	seconds := func(side string) float64 { return acctest.Median(times[side]).Seconds() }
	b.ReportMetric(seconds("added")/seconds("plan"), "added/plan")
	b.ReportMetric(seconds("replace")/seconds("apply"), "replace/reset")
	for _, side := range []string{"apply", "itself", "added", "plan", "replace"} {
		b.ReportMetric(seconds(side), side+"-s")
	}
}
