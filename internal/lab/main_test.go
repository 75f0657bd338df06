// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// connect gives the verbs on the package's daemon.
func connect(t testing.TB) (*acctest.Host, *lab.Lab) {
	t.Helper()
	host := acctest.Shared(t)
	return host, verbsOn(t, host)
}

// verbsOn gives the verbs on a daemon.
func verbsOn(t testing.TB, host *acctest.Host) *lab.Lab {
	t.Helper()
	environment := host.Environment()
	daemon, err := lxd.Connect(t.Context(), lxd.Config{
		Address: host.Address(), Project: host.Project(), ClientCertificate: environment["LAB_CLIENT_CERTIFICATE"],
		ClientKey: environment["LAB_CLIENT_KEY"], ServerFingerprint: environment["LAB_SERVER_FINGERPRINT"],
	})
	if err != nil {
		t.Fatal(err)
	}
	return lab.New(daemon, capability.New(daemon))
}

// tiny is a specification of the smallest machine that runs.
func tiny(t testing.TB, host *acctest.Host) lab.MachineSpec {
	t.Helper()
	return lab.MachineSpec{
		Name: acctest.Name(t, "m"), Type: lab.TypeContainer, Image: host.Tiny(t).Fingerprint, Pool: host.Pool(t), Running: true,
	}
}

// create makes a machine and removes it when the test ends.
func create(t testing.TB, l *lab.Lab, spec lab.MachineSpec) (*lab.Machine, lab.MachineTimings) {
	t.Helper()
	machine, timings, err := l.CreateMachine(t.Context(), spec)
	if machine != nil {
		t.Cleanup(func() {
			if err := l.DeleteMachine(context.Background(), machine.ID); err != nil {
				t.Errorf("clean up: %v", err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return machine, timings
}

// in runs a shell script in a machine of the package's daemon and gives what it printed.
func in(t testing.TB, machine, script string) string {
	t.Helper()
	return acctest.Shared(t).In(t, machine, script)
}
