// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkOf(t *testing.T) {
	t.Parallel()
	m := newMark("lab")
	config := m.config()
	with := func(key, value string) map[string]string {
		changed := maps.Clone(config)
		changed[key] = value
		return changed
	}
	without := func(key string) map[string]string {
		changed := maps.Clone(config)
		delete(changed, key)
		return changed
	}
	for name, test := range map[string]struct {
		name   string
		config map[string]string
		ours   bool
	}{
		"the machine":                {m.name(), config, true},
		"a branch":                   {m.name() + "-3", config, true},
		"a copy by hand":             {m.name() + "-3", with(daemonUUID, "another"), false},
		"a copy to an unmarked name": {"mine", with(daemonUUID, "another"), false},
		"renamed by a user":          {"mine", config, false},
		"another run's name":         {newMark("lab").name(), config, false},
		"a name that only resembles": {m.name() + "x", config, false},
		"no mark":                    {m.name(), without(markProbe), false},
		"a mark of somebody else's":  {m.name(), with(markProbe, m.name()), false},
		"no identity":                {m.name(), without(markID), false},
		"neither identity nor uuid":  {m.name(), map[string]string{markProbe: m.String()}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ours := markOf(test.name, test.config)
			if ours != test.ours {
				t.Fatalf("ours is %v, want %v", ours, test.ours)
			}
			if ours && got != m {
				t.Errorf("the mark reads %v, want %v", got, m)
			}
		})
	}
}

func TestMarksDiffer(t *testing.T) {
	t.Parallel()
	a, b := newMark("lab"), newMark("lab")
	if a.name() == b.name() {
		t.Errorf("two runs have the name %s", a.name())
	}
	if cmp.Equal(a.config(), a.config()) {
		t.Error("two machines of a run have one identity")
	}
}

func TestProbeImageDependsOnItsMarkOnly(t *testing.T) {
	t.Parallel()
	m := newMark("lab")
	fingerprints := map[string]bool{}
	for _, text := range []string{m.String(), m.String(), newMark("lab").String()} {
		image, err := probeImage("x86_64", text)
		if err != nil {
			t.Fatal(err)
		}
		fingerprints[fingerprintOf(image)] = true
	}
	if len(fingerprints) != 2 {
		t.Errorf("two images of one run and one of another have %d fingerprints, want 2", len(fingerprints))
	}
}
