// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, full := filepath.Join(dir, "empty"), filepath.Join(dir, "full")
	hidden, file := filepath.Join(dir, "hidden"), filepath.Join(dir, "file")
	err := errors.Join(
		os.Mkdir(empty, 0o700), os.Mkdir(full, 0o700), os.Mkdir(hidden, 0o700),
		os.WriteFile(filepath.Join(full, "thesis.txt"), nil, 0o600),
		os.WriteFile(filepath.Join(hidden, ".keep"), nil, 0o600),
		os.WriteFile(file, []byte("mine"), 0o600),
		os.Symlink(full, filepath.Join(dir, "link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "absent"): "",
		empty:                        "",
		full:                         "thesis.txt",
		hidden:                       ".keep",
		file:                         "a file of 4 bytes",
		filepath.Join(dir, "link"):   "thesis.txt",
		"/dev/null":                  "neither a directory nor a block device",
	} {
		held, err := foreign(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if (held == "") != (want == "") || !strings.Contains(held, want) {
			t.Errorf("%s holds %q, want %q", path, held, want)
		}
	}
}

func TestForeignThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if held, err := foreign(filepath.Join(file, "below")); err == nil {
		t.Errorf("a path below a file holds %q, want an error", held)
	}
}

func TestFirstNonZero(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{-1, 0, 1, 65535, 65536, 99999} {
		data := make([]byte, 100000)
		if at >= 0 {
			data[at] = 1
		}
		got, err := firstNonZero(bytes.NewReader(data))
		if err != nil || got != at {
			t.Errorf("got %d (error %v), want %d", got, err, at)
		}
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"tank/lxd", "tank/lxd", true},
		{"tank/lxd", "tank/other", false},
		{"/dev/sdb", "/dev/sdb", true},
		{"/dev/sdb", "/dev/sdc", false},
		{"/srv/pool", "/srv/pool/", true},
		{"/srv/pool", "/srv/pool/below", true},
		{"/srv/pool/below", "/srv/pool", true},
		{"/srv/pool", "/srv/pool2", false},
		{dir + "/a", dir + "/link/a", true},
		{dir + "/a", dir + "/link/b", false},
		{"/srv/tank", "tank", false},
	} {
		if got := overlap(test.a, test.b); got != test.want {
			t.Errorf("%s and %s overlap: %v, want %v", test.a, test.b, got, test.want)
		}
	}
}
