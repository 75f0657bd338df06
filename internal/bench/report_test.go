// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// ofContainers is the campaign of containers, without a daemon.
func ofContainers(t *testing.T) *Provisioning {
	t.Helper()
	p, err := NewProvisioning(t.Context(), &Ground{}, "btrfs", lab.TypeContainer)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reported makes a report of trials of the paths: milliseconds to the result from memory.
func reported(t *testing.T, took map[string][]int64) (Manifest, []Row, string) {
	t.Helper()
	manifest := Manifest{Campaign: ProvisioningName, Complete: true, Runs: 1, Trials: 2, Subjects: ofContainers(t).Subjects()}
	var rows []Row
	for name, times := range took {
		for round, ms := range times {
			rows = append(rows, Row{Kind: KindTrial, Subject: name, Round: round + 1, Values: Values{memoryMS: ms, createMS: ms / 2, prepareMS: ms / 3}})
		}
	}
	rows = append(rows, Row{Kind: KindStage, Subject: spaceStage + "branch", Values: Values{TookMS: 1500, poolGrowth: 3 << 19}})
	text, err := Report(&manifest, rows, "pictures/")
	if err != nil {
		t.Fatal(err)
	}
	return manifest, rows, text
}

func TestReport(t *testing.T) {
	t.Parallel()
	_, _, text := reported(t, map[string][]int64{
		"fresh": {5000, 6000}, "export": {1000, 2000}, "branch": {1500, 700}, "existing": {100, 101},
	})
	for _, want := range []string{
		"| fresh | a machine from the image, which prepares the data anew | 2 | 0 |",
		"| live-branch | a branch of that snapshot, which goes on from its memory | not available on this host: only virtual machines can be captured",
		"- **branch** took less than fresh every time (0.700 s to 1.500 s against 5.000 s to 6.000 s); by the medians it is 5.0 times as fast.",
		"- export and branch overlap (1.000 s to 2.000 s and 0.700 s to 1.500 s), so they are not ranked.",
		"| export | not measured | not measured | 1.500 s | 2.000 s | not measured |",
		"| branch | not measured | not measured | 1.50 MiB | not measured | not measured |",
		"| Space of one more machine: branch | 1.500 s | pool 1.50 MiB |",
		"(pictures/distribution.svg)",
		"Load average of the host: not measured.",
		"- None. Every trial gave",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if strings.Contains(text, "existing overlap") || strings.Contains(text, "incomplete") {
		t.Error("it says what is not so")
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestReportRanksNothingThatOverlaps(t *testing.T) {
	t.Parallel()
	_, _, text := reported(t, map[string][]int64{"fresh": {5000, 6000}, "export": {6000, 9000}})
	if !strings.Contains(text, "- export and fresh overlap (6.000 s to 9.000 s and 5.000 s to 6.000 s), so they are not ranked.") ||
		!strings.Contains(text, "- branch and fresh: not both were measured.") || strings.Contains(text, "every time") {
		t.Errorf("got\n%s", text)
	}
}

func TestReportOfAnEmulatedHost(t *testing.T) {
	t.Parallel()
	for cpu, emulated := range map[string]bool{"QEMU TCG CPU version 2.5+": true, "Intel(R) Xeon(R) Processor @ 2.00GHz": false, "": false} {
		manifest := Manifest{Campaign: ProvisioningName, Complete: true, Host: Facts{CPU: cpu}}
		text, err := Report(&manifest, nil, "")
		if err != nil || strings.Contains(text, "emulated by software") != emulated {
			t.Errorf("of processor %q it says (%v)\n%s", cpu, err, text)
		}
	}
}

func TestPlots(t *testing.T) {
	t.Parallel()
	manifest, rows, _ := reported(t, map[string][]int64{"fresh": {5000, 6000}, "branch": {700, 800}})
	for name, says := range map[string]struct {
		shown  []string
		hidden string
	}{
		distributionPlot: {[]string{"fresh", "export", "branch", "existing", "seconds"}, "checkpoint"},
		breakdownPlot:    {[]string{"fresh", "branch", "create", "prepare data"}, "restore"},
	} {
		svg, err := svgOf(name, &manifest, rows)
		if err != nil {
			t.Fatal(err)
		}
		shows := func(text string) bool { return bytes.Contains(svg, []byte(">"+text+"</text>")) }
		for _, want := range says.shown {
			if !shows(want) {
				t.Errorf("%s does not show %q", name, want)
			}
		}
		if shows(says.hidden) {
			t.Errorf("%s shows %q, which nothing was measured of", name, says.hidden)
		}
		for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// TestAnswer holds the workload to the figures that it grew from.
func TestAnswer(t *testing.T) {
	t.Parallel()
	if got := ofContainers(t).work.answer(); got != "42 1000 5054000" {
		t.Errorf("got %q", got)
	}
}

func TestEveryMeasureOfALayoutIsShown(t *testing.T) {
	t.Parallel()
	for name, layout := range layouts {
		manifest := Manifest{Campaign: name, Subjects: []Subject{{Name: layout.reference}}}
		row := Row{Kind: KindTrial, Subject: layout.reference, Round: 1, Values: Values{layout.primary: 1}}
		for _, table := range layout.tables {
			for _, column := range table.columns {
				row.Values[column.measure] = 1
			}
		}
		stage := Row{Kind: KindStage, Subject: spaceStage + layout.reference, Values: Values{poolGrowth: 1}}
		text, err := Report(&manifest, []Row{row, stage}, "")
		if err != nil || strings.Contains(text, "| "+notMeasured) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
