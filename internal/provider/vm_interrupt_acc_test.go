// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"bytes"
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
const onlyB = `-target=lab_branch.b["b"]`

// A branch with memory that is interrupted or killed at any of its steps leaves nothing that the next apply does not clear.
func TestVMInterruptedBranch(t *testing.T) { //nolint:paralleltest // There is one processor for all under emulation.
	host := acctest.VirtualMachinesAtLength(t)
	name := acctest.Name(t, "v")
	terraform := acctest.NewCLI(t, fill(liveLab, "NAME", name, "IMAGE", host.Guest(t).Fingerprint, "POOL", host.Pool(t), "NETWORK", host.Network(t)))
	terraform.Use(host)
	t.Cleanup(func() { terraform.Destroy(t) })
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
					return step.reached(stagingProject(t, client), live)
				})
				if !seen {
					t.Logf("the apply ended before it was seen that %s", step.name)
				}
				terraform.Run(t, "apply", "-auto-approve", "-no-color", onlyB)
				terraform.Run(t, "plan", "-detailed-exitcode", "-no-color", onlyB)
				if left := stagingProject(t, client); left != "" {
					t.Errorf("project %q was left", left)
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

// interruptedApply sends a signal to terraform and the provider when it is time, and waits for their end. It says whether
// that came before they ended by themselves.
func interruptedApply(t *testing.T, terraform *acctest.CLI, signal syscall.Signal, isTime func() bool) (sent bool) {
	t.Helper()
	command := terraform.Command(t.Context(), "apply", "-auto-approve", "-no-color", onlyB)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // interrupted, killed, or just done
	}()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !sent {
		select {
		case <-ended:
			return false
		case <-ticker.C:
			sent = isTime()
		}
	}
	_ = syscall.Kill(-command.Process.Pid, signal)
	<-ended
	t.Logf("it printed:\n%s", output.String())
	return true
}

// stagingProject gives the project that a branch is made in, if there is one.
func stagingProject(t *testing.T, client lxdclient.InstanceServer) string {
	t.Helper()
	projects, err := client.GetProjectNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, project := range projects {
		if strings.HasPrefix(project, "lab-staging-") {
			return project
		}
	}
	return ""
}

func present(client lxdclient.InstanceServer, project, name string) bool {
	_, _, err := client.UseProject(project).GetInstance(name)
	return err == nil
}
