// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// through gives the verbs on the package's daemon through a proxy that makes requests fail.
func through(t *testing.T, host *acctest.Host) (*lxdtest.Proxy, *lab.Lab) {
	t.Helper()
	proxy := lxdtest.NewProxy(t, host.Socket())
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: proxy.Address(), Project: host.Project()})
	if err != nil {
		t.Fatal(err)
	}
	return proxy, lab.New(daemon, capability.New(daemon))
}

// reconfigure changes a machine after its snapshot, so that a restore rewinds something that must be put back.
func reconfigure(t *testing.T, l *lab.Lab, machine *lab.Machine) {
	t.Helper()
	now := machine.MachineSpec
	now.Memory, now.Description = "300MiB", "changed after"
	if _, err := l.UpdateMachine(t.Context(), machine.ID, machine.MachineSpec, now); err != nil {
		t.Fatal(err)
	}
}

// A reset that fails half-way puts back what it can, says of each other machine where it stands, and a second one
// finishes it.
func TestResetThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	host, direct := connect(t)
	proxy, l := through(t, host)
	faults := []struct {
		rule lxdtest.Rule // its path is what follows the machine's
		says string
	}{
		{lxdtest.Rule{Path: `/state$`, Status: 500, Error: "cannot stop"}, "it is running now, and its disk was not touched"},
		{lxdtest.Rule{Path: `$`, Status: 500, Error: "cannot restore"}, "it is stopped now, and its disk was not put back"},
		{lxdtest.Rule{Path: `$`, DropAfter: true}, `it is stopped now, and whether its disk is back at snapshot "clean" is not known`},
		{lxdtest.Rule{Path: `$`, Skip: 1, Status: 500, Error: "cannot write"}, `it is stopped now, and its disk is back at snapshot "clean", but so is its configuration, which is not yet as declared`},
		{lxdtest.Rule{Path: `/state$`, Skip: 1, Status: 500, Error: "cannot start"}, `it is stopped now, and its disk is back at snapshot "clean"`},
	}
	machines, snapshots := scenario(t, host, direct, len(faults)+1)
	for index, machine := range machines {
		reconfigure(t, direct, machine)
		in(t, machine.Name, "echo dirty > /root/mark; sync")
		if index < len(faults) {
			rule := faults[index].rule
			rule.Method, rule.Path = http.MethodPut, "/instances/"+machine.Name+rule.Path
			proxy.Add(rule)
		}
	}

	_, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: snapshots}, nil)
	failed, ok := errors.AsType[*lab.ResetError](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	t.Log(err)
	for index, fault := range faults {
		if got := failed.Failed[machines[index].Name]; got == nil || !strings.HasSuffix(got.Error(), fault.says) {
			t.Errorf("of machine %d it says: %v\nwant: %s", index, got, fault.says)
		}
	}
	if want := machines[len(faults)].Name; len(failed.Back) != 1 || failed.Back[0] != want || !strings.Contains(err.Error(), "as they should be: "+want) {
		t.Errorf("of the machine that is back it says %q", failed.Back)
	}
	if got := in(t, machines[len(faults)].Name, "cat /root/mark"); got != "clean" {
		t.Errorf("the machine that is back is %q", got)
	}

	proxy.Clear()
	if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: snapshots}, nil); err != nil {
		t.Fatal(err)
	}
	for _, machine := range machines {
		if got := in(t, machine.Name, "cat /root/mark"); got != "clean" {
			t.Errorf("%s came back as %q", machine.Name, got)
		}
	}
}
