// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"
	"testing"
)

func TestParseImportName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]importName{
		"a":   {name: "a"},
		"p/a": {project: "p", name: "a"},
	} {
		if got, err := parseImportName(id, "machine"); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", id, got, err, want)
		}
	}
	for _, id := range []string{"", "/", "p/", "/a", "p/a/b"} {
		if got, err := parseImportName(id, "machine"); err == nil || !strings.Contains(err.Error(), `"project/name"`) {
			t.Errorf("%q is %+v, %v; want an error that says the right form", id, got, err)
		}
	}
}

func TestParseSnapshotImportName(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]importName{
		"a/s":   {name: "a", snapshot: "s"},
		"p/a/s": {project: "p", name: "a", snapshot: "s"},
	} {
		if got, err := parseSnapshotImportName(id); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", id, got, err, want)
		}
	}
	for _, id := range []string{"", "a", "a/", "/s", "p//s", "p/a/s/x"} {
		if got, err := parseSnapshotImportName(id); err == nil || !strings.Contains(err.Error(), `"project/machine/snapshot"`) {
			t.Errorf("%q is %+v, %v; want an error that says the right form", id, got, err)
		}
	}
}
