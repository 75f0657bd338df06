// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// canaries are a daemon in memory with a pool "lab", behind a proxy, and what proving both types of machines asks for.
func canaries(t *testing.T, options ...lxdtest.Option) (*lxdtest.Server, *lxdtest.Proxy, *capability.Checker) {
	t.Helper()
	server := lxdtest.New(t, append([]lxdtest.Option{lxdtest.WithVirtualMachines()}, options...)...)
	if err := server.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "lab", Driver: "btrfs"}); err != nil {
		t.Fatal(err)
	}
	proxy := lxdtest.NewProxy(t, server.Socket())
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: proxy.Address()})
	if err != nil {
		t.Fatal(err)
	}
	return server, proxy, capability.New(daemon)
}

var proveMachines = capability.Request{Prove: []string{string(capability.Containers), string(capability.VirtualMachines)}}

func TestCanaries(t *testing.T) {
	t.Parallel()
	const containers, vms = capability.Containers, capability.VirtualMachines
	const proven, absent, unproven = capability.Proven, capability.Absent, capability.Unproven
	commandFails := lxdtest.WithExec(func(context.Context, lxdtest.Exec) lxdtest.ExecResult { return lxdtest.ExecResult{Code: 1} })
	mips := lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.Architectures = []string{"mips"} })
	noVMs := lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.Driver = "lxc" })
	fails := func(status int, text string) *lxdtest.Rule {
		return &lxdtest.Rule{Method: http.MethodPut, Path: `/state$`, Status: status, Error: text}
	}
	for name, test := range map[string]struct {
		options         []lxdtest.Option
		rule            *lxdtest.Rule
		containers, vms capability.Verdict
		says            string // of virtual machines
	}{
		"both run":                {nil, nil, proven, proven, "was running its firmware"},
		"a command fails":         {[]lxdtest.Option{commandFails}, nil, absent, proven, ""},
		"neither starts":          {nil, fails(http.StatusInternalServerError, "no room for a process"), absent, absent, "no room for a process"},
		"neither may be started":  {nil, fails(http.StatusForbidden, "not allowed"), unproven, unproven, "not allowed"},
		"virtual machines cannot": {[]lxdtest.Option{noVMs}, nil, proven, absent, `Instance type "virtual-machine" is not supported on this server`},
		"no program to run":       {[]lxdtest.Option{mips}, nil, unproven, proven, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, checker := canaries(t, test.options...)
			if test.rule != nil {
				proxy.Add(*test.rule)
			}
			report, err := checker.Assess(t.Context(), proveMachines)
			if err != nil {
				t.Fatal(err)
			}
			for about, want := range map[capability.Capability]capability.Verdict{containers: test.containers, vms: test.vms} {
				if finding := findingOn(t, report, about); finding.Verdict != want || finding.Judged != "by doing it" {
					t.Errorf("%s is %s, want %s: %v, judged %s", about, finding.Verdict, want, finding.Evidence, finding.Judged)
				}
			}
			if text := strings.Join(findingOn(t, report, vms).Evidence, "\n"); !strings.Contains(text, test.says) {
				t.Errorf("the evidence does not say %q:\n%s", test.says, text)
			}
			if report.Adequate != (test.containers == proven) {
				t.Errorf("with containers %s the host is adequate: %v", test.containers, report.Adequate)
			}
			if left := leftOn(t, server); len(left) > 0 {
				t.Errorf("the canaries left %q", left)
			}
		})
	}
}

func TestVirtualMachineThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	server, proxy, checker := canaries(t)
	proxy.Add(lxdtest.Rule{Method: http.MethodGet, Path: `/state$`, Do: func() {
		client := server.Client(t)
		names, err := client.GetInstanceNames(api.InstanceTypeVM)
		if err != nil || len(names) != 1 {
			t.Errorf("there are the virtual machines %v (error %v), want one", names, err)
			return
		}
		operation, err := client.UpdateInstanceState(names[0], api.InstanceStatePut{Action: "stop", Force: true}, "")
		if err == nil {
			err = operation.Wait()
		}
		if err != nil {
			t.Error(err)
		}
	}})
	report, err := checker.Assess(t.Context(), capability.Request{Prove: []string{string(capability.VirtualMachines)}})
	if err != nil {
		t.Fatal(err)
	}
	finding := findingOn(t, report, capability.VirtualMachines)
	if finding.Verdict != capability.Absent || !strings.Contains(strings.Join(finding.Evidence, "\n"), "the daemon says that it is Stopped") {
		t.Errorf("virtual machines are %s: %v", finding.Verdict, finding.Evidence)
	}
}

func TestCanaryWithoutAPool(t *testing.T) {
	t.Parallel()
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: lxdtest.New(t).Address()})
	if err != nil {
		t.Fatal(err)
	}
	report, err := capability.New(daemon).Assess(t.Context(), proveMachines)
	if err != nil {
		t.Fatal(err)
	}
	finding := findingOn(t, report, capability.Containers)
	if finding.Verdict != capability.Reported || !strings.Contains(strings.Join(finding.Evidence, "\n"), "not tried: there is no storage pool") {
		t.Errorf("containers are %s: %v", finding.Verdict, finding.Evidence)
	}
}

// A run that could not clean up leaves a machine that runs; the next one removes it.
func TestRunningCanaryIsSwept(t *testing.T) {
	t.Parallel()
	server, proxy, checker := canaries(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	proxy.Add(
		lxdtest.Rule{Method: http.MethodPost, Path: `/exec$`, Do: cancel},
		lxdtest.Rule{Method: http.MethodPut, Path: `/state$`, Skip: 1, Status: http.StatusInternalServerError, Error: "not now"},
		lxdtest.Rule{Method: http.MethodDelete, Path: `/instances/|/images/`, Status: http.StatusInternalServerError, Error: "not now"},
	)
	request := capability.Request{Prove: []string{string(capability.Containers)}}
	if _, err := checker.Assess(ctx, request); !errors.Is(err, context.Canceled) {
		t.Fatalf("the interrupted canary gave %v, want %v", err, context.Canceled)
	}
	if left := leftOn(t, server); len(left) == 0 {
		t.Fatal("nothing is left to be swept")
	}
	proxy.Clear()
	if _, err := checker.Assess(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if left := leftOn(t, server); len(left) > 0 {
		t.Errorf("%q was not swept", left)
	}
}
