// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// onlyB is the branch of liveLab that is interrupted.
const onlyB = "-target=lab_branch.b"

// A branch with memory that is interrupted or killed at any of its steps leaves nothing that the next apply does not clear.
func TestVMInterruptedBranch(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachinesAtLength(t)
	name, terraform := liveOn(t, host)
	terraform.Run(t, "apply", "-auto-approve", "-no-color", "-target=lab_snapshot.checkpoint")
	branch, client := name+"-b", host.Client(t)
	clean := host.In(t, name, liveLook)
	for _, step := range []struct { //nolint:paralleltest // nor for its steps
		name    string
		reached func(staging string, live *api.Instance) bool
	}{
		{"the staging project is there", func(staging string, _ *api.Instance) bool { return staging != "" }},
		{"the copy is there", func(staging string, _ *api.Instance) bool { return staging != "" && present(client, staging, name) }},
		{"the copy has its own name", func(staging string, _ *api.Instance) bool { return staging != "" && present(client, staging, branch) }},
		{"it has been moved", func(_ string, live *api.Instance) bool { return live != nil }},
		{"it runs", func(_ string, live *api.Instance) bool { return live != nil && live.StatusCode == api.Running }},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			t.Run(fmt.Sprintf("%v when %s", signal, step.name), func(t *testing.T) {
				seen := interruptedApply(t, terraform, signal, func() bool {
					live, _, err := client.GetInstance(branch)
					if err != nil {
						live = nil
					}
					return step.reached(strings.Join(host.StagingProjects(t), ","), live)
				})
				if !seen {
					t.Logf("the apply ended before it was seen that %s", step.name)
				}
				terraform.Apply(t, onlyB)
				if left := host.StagingProjects(t); len(left) != 0 {
					t.Errorf("projects %q were left", left)
				}
				if got := host.In(t, branch, liveLook); got != clean {
					t.Errorf("the branch is at %q, want %q", got, clean)
				}
				terraform.Run(t, "destroy", "-auto-approve", "-no-color", onlyB)
				gone(host, "instances/"+branch)(t)
			})
		}
	}
}

// interruptedApply applies and sends a signal when it is time. It says whether that came before the apply had ended.
func interruptedApply(t *testing.T, terraform *acctest.CLI, signal syscall.Signal, isTime func() bool) (sent bool) {
	t.Helper()
	terraform.Interrupt(t, signal, func(send func(), ended <-chan struct{}) {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for !sent {
			select {
			case <-ended:
				return
			case <-ticker.C:
				sent = isTime()
			}
		}
		send()
	}, "apply", "-auto-approve", "-no-color", onlyB)
	return sent
}

func present(client lxdclient.InstanceServer, project, name string) bool {
	_, _, err := client.UseProject(project).GetInstance(name)
	return err == nil
}
