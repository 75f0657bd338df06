// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"os"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(victimAddress); address != "" {
		victim(address, os.Getenv(victimPool))
	}
	acctest.Main(m)
}

// connect gives a daemon, as the provider connects to it, and a checker of it.
func connect(t *testing.T, h *acctest.Host) (*lxd.Daemon, *capability.Checker) {
	t.Helper()
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: h.Address(), Project: h.Project()})
	if err != nil {
		t.Fatal(err)
	}
	return daemon, capability.New(daemon)
}
