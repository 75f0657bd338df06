// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// findingOn gives the verdict on the host about a capability.
func findingOn(t *testing.T, report *capability.Report, about capability.Capability) capability.Finding {
	t.Helper()
	at := slices.IndexFunc(report.Findings, func(f capability.Finding) bool { return f.Capability == about && f.Subject == "" })
	if at < 0 {
		t.Fatalf("there is no finding about %s: %v", about, report.Findings)
	}
	return report.Findings[at]
}

func TestAccCanaries(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	pool := newPool(t, h, "btrfs", map[string]string{"size": "2GiB"})
	_, checker := connect(t, h)
	report, err := checker.Assess(t.Context(), capability.Request{Prove: []string{string(capability.Containers), string(capability.VirtualMachines)}})
	if err != nil {
		t.Fatal(err)
	}
	container := findingOn(t, report, capability.Containers)
	t.Log(container)
	if container.Verdict != capability.Proven || !strings.Contains(strings.Join(container.Evidence, "\n"), "had run a command") {
		t.Errorf("containers are %s: %v", container.Verdict, container.Evidence)
	}
	vm := findingOn(t, report, capability.VirtualMachines)
	t.Log(vm)
	server, _, err := h.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(server.Environment.Driver, "qemu") {
		if vm.Verdict == capability.Unproven || vm.Verdict == capability.Reported {
			t.Errorf("virtual machines were tried and are %s: %v", vm.Verdict, vm.Evidence)
		}
	} else if vm.Verdict != capability.Absent || !strings.Contains(strings.Join(vm.Evidence, "\n"), "is not supported on this server: ") {
		t.Errorf("virtual machines are %s, want %s in the daemon's own words: %v", vm.Verdict, capability.Absent, vm.Evidence)
	}
	if left := holdings(t, h, pool); len(left) > 0 {
		t.Errorf("the canaries left %q", left)
	}
}
