// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestSharedRunsAMachine(t *testing.T) {
	t.Parallel()
	h := Shared(t)
	name := Name(t, "tiny")
	h.LXC(t, "launch", h.Tiny(t).Fingerprint, name, "--storage", h.Pool(t), "--network", h.Network(t))
	if got := h.LXC(t, "exec", name, "--", "hostname"); got != name {
		t.Errorf("hostname prints %q, want %q", got, name)
	}
}
