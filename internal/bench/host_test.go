// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	aStat   = "cpu  100 20 30 9000 500 4 5 60 0 0\ncpu0 50 10 15 4500 250 2 2 30 0 0\n"
	aMemory = "MemTotal:       2048 kB\nMemFree:         100 kB\nMemAvailable:   1024 kB\n"
	aLoad   = "1.25 0.75 0.50 2/345 6789\n"
)

func TestParseHost(t *testing.T) {
	t.Parallel()
	got, err := parseHost(aStat, aMemory, aLoad)
	if err != nil {
		t.Fatal(err)
	}
	// Neither idle and waiting for disks nor stolen time is what the host did.
	want := &hostReading{cpuMS: (100 + 20 + 30 + 4 + 5) * tickMS, memoryBytes: 1024 << 10, loadCenti: 125}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(hostReading{})); diff != "" {
		t.Error(diff)
	}
	for name, texts := range map[string][3]string{
		"no processors": {"intr 1 2", aMemory, aLoad},
		"no number":     {"cpu  a 20 30 9000 500 4 5 60 0 0\n", aMemory, aLoad},
		"no memory":     {aStat, "MemFree: 1 kB\n", aLoad},
		"no load":       {aStat, aMemory, "busy"},
	} {
		if got, err := parseHost(texts[0], texts[1], texts[2]); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestHostIsNotMeasured(t *testing.T) {
	t.Parallel()
	values := Values{}
	(*hostReading)(nil).since(&hostReading{}, values)
	(&hostReading{}).since(nil, values)
	if len(values) > 0 {
		t.Errorf("got %v", values)
	}
	(&hostReading{cpuMS: 30, memoryBytes: 500, loadCenti: 9}).since(&hostReading{cpuMS: 10, memoryBytes: 800, loadCenti: 4}, values)
	if diff := cmp.Diff(Values{hostCPUMS: 20, hostMemory: -300, hostLoad: 4}, values); diff != "" {
		t.Error(diff)
	}
}
