// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestBenchArguments(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	out := filepath.Join(t.TempDir(), "out")
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"no image":             {nil, "name the image of the machines"},
		"two images":           {[]string{"--image", "a", "--metadata", "b"}, "name the image of the machines"},
		"rootfs alone":         {[]string{"--image", "a", "--rootfs", "b"}, "--rootfs goes with --metadata"},
		"no trials":            {[]string{"--image", "a", "--trials", "0"}, "--trials is 0"},
		"unknown type":         {[]string{"--image", "a", "--type", "vm"}, `--type is "vm"`},
		"unknown campaign":     {[]string{"--image", "a", "outer-loop"}, `invalid argument "outer-loop"`},
		"image that is not":    {[]string{"--image", "no-such"}, "read image no-such"},
		"file that is not":     {[]string{"--metadata", "/no/such"}, "the file cannot be read"},
		"a daemon that is not": {[]string{"--image", "a", "--address", "unix:///no/such"}, "/no/such"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"bench", "--address", daemon.Address(), "--out", out}, test.args...)
			if said, err := execute(t, args...); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q\n%s", err, test.err, said)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(out); err == nil {
			t.Error("a campaign was begun")
		}
	})
}
