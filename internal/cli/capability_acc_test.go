// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// wantCapability runs the subcommand against a real daemon, and checks how it ends and what it says.
func wantCapability(t *testing.T, h *acctest.Host, args []string, code int, says ...string) {
	t.Helper()
	out, err := execute(t, append([]string{"capability", "--address", h.Address(), "--project", h.Project()}, args...)...)
	if got := exitCode(err); got != code {
		t.Errorf("%v: the exit code is %d (%v), want %d\n%s", args, got, err, code, out)
	}
	for _, text := range says {
		if !strings.Contains(out, text) {
			t.Errorf("%v: it does not say %q:\n%s", args, text, out)
		}
	}
}

func TestAccCapability(t *testing.T) {
	t.Parallel()
	h := acctest.Shared(t)
	pool := h.Pool(t)
	wantCapability(t, h, nil, exitOK, "is adequate: it runs containers")
	wantCapability(t, h, []string{"--pool", pool, "--prove", "--require", "containers,restore_past_branches"}, exitOK,
		"is adequate", pool, "proven", "by doing it on 20")
}

func TestAccCapabilityOfADegradedHost(t *testing.T) {
	t.Parallel()
	// A disk of its own, since directories are judged by the space of their disk.
	h := acctest.Start(t, acctest.Options{WithoutTools: []string{"btrfs", "mkfs.btrfs"}, DiskSize: "8G"})
	plain := acctest.Name(t, "plain")
	h.LXC(t, "storage", "create", plain, "dir")
	wantCapability(t, h, nil, exitMissing, "is not adequate", "mkfs.btrfs", "What helps: ", "In the way: copy_on_write_pool of host (absent)")
	wantCapability(t, h, []string{"--pool", plain, "--prove"}, exitMissing, "copy_on_write_restore of pool "+plain+" (degraded)", "by doing it on 20")
	wantCapability(t, h, []string{"--pool", plain, "--json"}, exitMissing, `"adequate": false`, `"storage_drivers": [`)
	h.AddTools(t)
	wantCapability(t, h, nil, exitOK, "is adequate")
	h.Kill(t)
	wantCapability(t, h, nil, exitMissing, "no daemon answers on it", "terraform-provider-lab bootstrap")
}
