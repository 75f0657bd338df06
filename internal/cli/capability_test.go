// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// exitCode is the code that the program would end with.
func exitCode(err error) int {
	code, isCode := errors.AsType[exitError](err)
	switch {
	case err == nil:
		return exitOK
	case isCode:
		return int(code)
	default:
		return exitFailure
	}
}

func TestCapabilityExitCodes(t *testing.T) {
	t.Parallel()
	good, degraded := lxdtest.New(t).Address(), lxdtest.New(t, lxdtest.WithDrivers("dir")).Address()
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"adequate":          {[]string{"--address", good}, exitOK, "is adequate: it runs containers"},
		"proved":            {[]string{"--address", good, "--prove"}, exitOK, "is adequate"},
		"degraded":          {[]string{"--address", degraded}, exitMissing, "In the way: copy_on_write_pool of host (absent)"},
		"no such pool":      {[]string{"--address", good, "--pool", "none"}, exitMissing, `it has no pool "none"`},
		"required and gone": {[]string{"--address", good, "--require", "containers,virtual_machines"}, exitMissing, "In the way: virtual_machines of host (absent)"},
		"required, unknown": {[]string{"--address", good, "--require", "magic"}, exitFailure, `cannot require "magic"`},
		"pool not named":    {[]string{"--address", good, "--require", "copy_on_write_branch"}, exitFailure, "name the pool"},
		"no daemon":         {[]string{"--address", "unix://" + filepath.Join(t.TempDir(), "socket")}, exitMissing, "terraform-provider-lab bootstrap"},
		"no address":        {[]string{"--address", "nonsense://"}, exitFailure, "daemon of host (unproven)"},
		"no time":           {[]string{"--address", good, "--timeout", "1ns"}, exitFailure, "deadline"},
		"no such file":      {[]string{"--address", good, "--client-key", "/none"}, exitFailure, "the client's key: open /none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := execute(t, append([]string{"capability"}, test.args...)...)
			if code := exitCode(err); code != test.code {
				t.Errorf("the exit code is %d (%v), want %d\n%s", code, err, test.code, out)
			}
			if err != nil {
				out += err.Error()
			}
			if !strings.Contains(out, test.says) {
				t.Errorf("it does not say %q:\n%s", test.says, out)
			}
		})
	}
}

func TestCapabilityAsJSON(t *testing.T) {
	t.Parallel()
	out, err := execute(t, "capability", "--json", "--address", lxdtest.New(t, lxdtest.WithDrivers("dir")).Address())
	if code := exitCode(err); code != exitMissing {
		t.Errorf("the exit code is %d (%v), want %d", code, err, exitMissing)
	}
	var report capability.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if report.Adequate || len(report.Lacking) != 1 || report.Lacking[0].Capability != capability.Pools || report.Server.Version == "" {
		t.Errorf("got %+v", report)
	}
}

func TestShowReport(t *testing.T) {
	t.Parallel()
	bad := capability.Finding{
		Capability: capability.Snapshots, Subject: "plain", Verdict: capability.Degraded, Judged: "by doing it",
		Reason: "it copies", Evidence: []string{"64 MiB took 50 ms"}, Remedy: "Another driver.",
	}
	branches := bad
	branches.Capability = capability.Branches
	report := &capability.Report{
		Summary: "LXD 5.0.2 on Debian 12 is not adequate.\ncopy-on-write snapshots on pool \"plain\" degraded: it copies.",
		Findings: []capability.Finding{
			{Capability: capability.Daemon, Verdict: capability.Proven, Judged: "by asking", Evidence: []string{"it answers"}}, bad, branches,
		},
		Lacking: []capability.Finding{bad, branches},
		Server:  capability.ServerReport{Product: "LXD", Version: "5.0.2", OS: "Debian 12", Kernel: "6.1", Address: "unix:///s", Project: "default"},
	}
	var out strings.Builder
	if err := showReport(&out, report); err != nil {
		t.Fatal(err)
	}
	want := `LXD 5.0.2 on Debian 12, kernel 6.1
unix:///s, project default

CAPABILITY              OF          VERDICT   JUDGED
daemon                  host        proven    by asking
copy_on_write_snapshot  pool plain  degraded  by doing it
copy_on_write_branch    pool plain  degraded  by doing it
    it copies
    - 64 MiB took 50 ms
    What helps: Another driver.

LXD 5.0.2 on Debian 12 is not adequate.
In the way: copy_on_write_snapshot of pool plain (degraded), copy_on_write_branch of pool plain (degraded)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestDaemonFlags(t *testing.T) {
	t.Parallel()
	environment := func(name string) string { return "of " + name }
	all := lxd.Config{Address: "of LAB_ADDRESS", Project: "of LAB_PROJECT", ServerFingerprint: "of LAB_SERVER_FINGERPRINT"}
	all.ClientCertificate, all.ClientKey, all.TrustToken = "of LAB_CLIENT_CERTIFICATE", "of LAB_CLIENT_KEY", "of LAB_TRUST_TOKEN"
	inProject := all
	inProject.Project = "p"
	for name, test := range map[string]struct {
		flags daemonFlags
		want  lxd.Config
	}{
		"all of the environment": {daemonFlags{}, all},
		"a flag goes before":     {daemonFlags{project: "p"}, inProject},
		"an address ends it":     {daemonFlags{address: "unix:///s"}, lxd.Config{Address: "unix:///s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.flags.config(environment)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}
