// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// The example fans a machine out into eight branches by the scenario module, runs a job in each, collects what they
// found, and resets them.
func TestFanOut(t *testing.T) {
	t.Parallel()
	host := acctest.Start(t, acctest.Options{})
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	tiny := acctest.TinyFiles(t)
	copyFile(t, tiny.Metadata, filepath.Join(dir, "image", "debian-12.tar.xz"))
	copyFile(t, tiny.Rootfs, filepath.Join(dir, "image", "debian-12.squashfs"))

	script := acctest.NewCLI(t, "").Script(t, filepath.Join(dir, "examples", "fan-out", "fan-out.sh"), filepath.Join(dir, "results"))
	script.Env = append(script.Env, "LXD_DIR="+host.Dir, "IMAGE="+filepath.Join(dir, "image"))
	output, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if strings.Contains(string(output), "could not be destroyed") {
		t.Errorf("%s", output)
	}
	got := map[string]string{}
	for _, name := range []string{"fan-bytes", "fan-lines", "fan-largest", "fan-sum", "fan-odd", "fan-md5"} {
		content, err := os.ReadFile(filepath.Join(dir, "results", name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = strings.TrimSpace(string(content))
	}
	want := map[string]string{
		"fan-bytes": "6888896", "fan-lines": "1000000", "fan-largest": "1000000", "fan-sum": "500000500000", "fan-odd": "500000",
		"fan-md5": "8a7095c1c23bfadc311fe6b16d950582  -",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the results are others than they should be (-want +got):\n%s", diff)
	}
	if left := host.LXC(t, "list", "--format=csv", "--columns=n"); left != "" {
		t.Errorf("left over: %s", left)
	}
	gone(host, "storage-pools/fan")(t)
}
