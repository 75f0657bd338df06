// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// groundOn connects to a host, for machines of an image.
func groundOn(t *testing.T, host *acctest.Host, image string) (*Ground, Facts) {
	t.Helper()
	environment := host.Environment()
	daemon, err := lxd.Connect(t.Context(), lxd.Config{
		Address: host.Address(), Project: host.Project(), ServerFingerprint: environment["LAB_SERVER_FINGERPRINT"],
		ClientCertificate: environment["LAB_CLIENT_CERTIFICATE"], ClientKey: environment["LAB_CLIENT_KEY"],
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGround(t.Context(), lab.New(daemon, capability.New(daemon)), image, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := ReadFacts(t.Context(), daemon)
	if err != nil {
		t.Fatal(err)
	}
	return g, facts
}

// ground connects to the package's daemon, with the smallest image that runs.
func ground(t *testing.T) (*acctest.Host, *Ground, Facts) {
	t.Helper()
	host := acctest.Shared(t)
	g, facts := groundOn(t, host, host.Tiny(t).Fingerprint)
	return host, g, facts
}

// wantGone checks that nothing that carries a campaign's name is left.
func wantGone(t *testing.T, host *acctest.Host, manifest *Manifest) {
	t.Helper()
	for _, list := range [][]string{{"list", "-f", "csv", "-c", "n"}, {"storage", "list", "-f", "csv"}} {
		if left := host.LXC(t, list...); strings.Contains(left, manifest.ID) {
			t.Errorf("left of %s:\n%s", manifest.ID, left)
		}
	}
}

// wantMeasured checks that each subject was tried once, as a warm-up, and gave what it should.
func wantMeasured(t *testing.T, manifest *Manifest, rows []Row, measures map[string][]string) {
	t.Helper()
	for subject, names := range measures {
		at := slices.IndexFunc(rows, func(row Row) bool {
			return row.Kind == KindTrial && row.Subject == subject && row.Round == 0 && row.Error == ""
		})
		if at < 0 {
			t.Errorf("%s was not tried", subject)
			continue
		}
		for _, name := range names {
			if _, measured := rows[at].Values[name]; !measured {
				t.Errorf("%s: %s is not measured: %v", subject, name, rows[at].Values)
			}
		}
	}
	if !manifest.Complete {
		t.Errorf("it is not complete: %+v", rows)
	}
}

// complete runs a campaign to its end, without a failed trial.
func complete(t *testing.T, campaign Campaign, o Options) (Manifest, []Row) {
	t.Helper()
	err := Execute(t.Context(), campaign, o)
	manifest, rows := kept(t, o.Dir)
	for _, row := range rows {
		if row.Error != "" && !row.Interrupted {
			t.Errorf("%s %s, round %d: %s", row.Kind, row.Subject, row.Round, row.Error)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return manifest, rows
}

func TestAccProvisioning(t *testing.T) {
	t.Parallel()
	host, g, facts := ground(t)
	campaign, err := NewProvisioning(t.Context(), g, capability.DefaultDriver, lab.TypeContainer)
	if err != nil {
		t.Fatal(err)
	}
	campaign.work.readings, campaign.calm = 10, time.Second

	// An interrupt leaves nothing behind, and the same command goes on.
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	o := Options{Dir: dir, Host: facts, Progress: func(_ float64, doing string) {
		if strings.HasPrefix(doing, "branch, warm-up") {
			interrupt()
		}
	}}
	if err := Execute(ctx, campaign, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	manifest, rows := kept(t, dir)
	wantGone(t, host, &manifest)
	before := len(rows)

	o.Progress = nil
	manifest, rows = complete(t, campaign, o)
	steps := []string{diskMS, memoryMS, cleanupMS, machineCPUMS}
	wantMeasured(t, &manifest, rows, map[string][]string{
		"fresh": append(steps, prepareMS, createMS), "export": append(steps, loadMS), "branch": append(steps, loadMS), "existing": steps,
	})
	wantGone(t, host, &manifest)
	if before < 3 || manifest.Runs != 2 {
		t.Errorf("it was not interrupted: %d rows, %d runs", before, manifest.Runs)
	}
	r := report{rows: rows}
	for _, path := range []string{"fresh", "export", "branch"} {
		if got := r.observed(spaceStage+path, poolGrowth); got == notMeasured {
			t.Errorf("the space of %s is %s", path, got)
		}
	}
}

// Of virtual machines there are two more ways, from the memory of the parent. Their times are those of an emulated host.
func TestVMProvisioning(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachinesAtLength(t)
	g, facts := groundOn(t, host, host.Guest(t).Fingerprint)
	campaign, err := NewProvisioning(t.Context(), g, capability.DefaultDriver, lab.TypeVirtualMachine)
	if err != nil {
		t.Fatal(err)
	}
	campaign.work.readings, campaign.calm = 10, time.Second
	manifest, rows := complete(t, campaign, Options{Dir: t.TempDir(), Host: facts, Trials: 3, Progress: func(_ float64, doing string) { t.Log(doing) }})
	steps := []string{diskMS, memoryMS, cleanupMS}
	wantMeasured(t, &manifest, rows, map[string][]string{
		"fresh": append(steps, prepareMS, createMS), "export": append(steps, loadMS), "checkpoint": append(steps, restoreMS),
		"branch": append(steps, loadMS), "live-branch": append(steps, createMS, startMS), "existing": steps,
	})
	for i := range rows {
		if _, loaded := rows[i].Values[loadMS]; loaded && (rows[i].Subject == "checkpoint" || rows[i].Subject == "live-branch") {
			t.Errorf("the table was loaded into the memory that was to come back: %+v", rows[i])
		}
	}
	wantGone(t, host, &manifest)
	text, err := Report(&manifest, rows, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(text)
}

func TestAccInnerLoop(t *testing.T) {
	t.Parallel()
	host, g, facts := ground(t)
	campaign := &InnerLoop{Ground: g, Drivers: []string{plainDriver, capability.DefaultDriver, "ceph"}}
	manifest, rows := complete(t, campaign, Options{Dir: t.TempDir(), Host: facts})
	measures := []string{launchMS, launchedMS, snapshot1, snapshot3, restoreMS, restoredMS, fourLaunchMS, fourCycleMS, fourRemoveMS, snapshotsBytes}
	wantMeasured(t, &manifest, rows, map[string][]string{plainDriver: measures, capability.DefaultDriver: measures})
	wantGone(t, host, &manifest)
	if text, err := Report(&manifest, rows, ""); err != nil || !strings.Contains(text, `the daemon does not offer the driver "ceph"`) {
		t.Errorf("ceph, which is not there, is passed over (%v):\n%s", err, text)
	}
}
