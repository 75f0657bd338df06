// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the guide anew from the rows in testdata")

// TestGuide makes the published report again, from the raw rows of the campaigns that it is about:
//
//	go test ./internal/bench -run Guide -update && make docs
func TestGuide(t *testing.T) {
	t.Parallel()
	templates := filepath.Join("..", "..", "templates")
	guide, err := os.ReadFile(filepath.Join("testdata", "guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for _, campaign := range []string{ProvisioningName, InnerLoopName} {
		manifest, rows, err := Load(filepath.Join("testdata", campaign))
		if errors.Is(err, os.ErrNotExist) && campaign == InnerLoopName {
			continue // the guide may do without
		}
		if err != nil {
			t.Fatal(err)
		}
		if !manifest.Complete {
			t.Errorf("the campaign in testdata/%s is incomplete", campaign)
		}
		text, err := Report(&manifest, rows, "../images/"+campaign+"-")
		if err != nil {
			t.Fatal(err)
		}
		guide = append(append(guide, '\n'), text...)
		for name := range plots {
			if want[filepath.Join(templates, "images", campaign+"-"+name)], err = svgOf(name, &manifest, rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	want[filepath.Join(templates, "guides", "benchmark.md")] = guide
	for path, content := range want {
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil { //nolint:gosec // as all files of the tree
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(string(content), string(have)); diff != "" {
			t.Errorf("%s is not what the rows give; see -update:\n%s", path, diff)
		}
	}
}
