// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
)

// execute runs the command line in this process.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot("1.2.3", nil)
	var out strings.Builder
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		err  string
	}{
		"unknown command":            {[]string{"frobnicate"}, `unknown command "frobnicate"`},
		"command without dashes":     {[]string{"bootstrap", "make"}, "goes after --"},
		"command before the dashes":  {[]string{"bootstrap", "make", "--", "lab"}, "goes after --"},
		"command after a check":      {[]string{"bootstrap", "--check", "--", "make"}, "only when the host was prepared"},
		"command after the packages": {[]string{"bootstrap", "--packages-only", "--", "make"}, "only when the host was prepared"},
		"unknown flag":               {[]string{"bootstrap", "--force"}, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := execute(t, test.args...); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q\n%s", err, test.err, out)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	out, err := execute(t, "bootstrap", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--check", "--packages-only", "--user", "--receipt", "-- COMMAND", "Exit codes", "snap, which is not\ntested"} {
		if !strings.Contains(out, want) {
			t.Errorf("the help does not tell of %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "--elevated") || strings.Contains(out, "--in-group") {
		t.Errorf("the help tells of what is not for people:\n%s", out)
	}
	if out, err := execute(t, "--version"); err != nil || !strings.Contains(out, "1.2.3") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestConclude(t *testing.T) {
	t.Parallel()
	missing := []bootstrap.Step{{Title: "start the daemon"}}
	for name, test := range map[string]struct {
		flags   bootstrapFlags
		outcome bootstrap.Outcome
		want    []string
	}{
		"check, adequate": {bootstrapFlags{check: true}, bootstrap.Outcome{}, []string{"nothing is missing"}},
		"check, missing":  {bootstrapFlags{check: true}, bootstrap.Outcome{Missing: missing}, []string{"nothing was changed"}},
		"proved": {
			bootstrapFlags{receipt: "/r"},
			bootstrap.Outcome{Done: []bootstrap.Entry{{}}, Verdict: &bootstrap.Verdict{Adequate: true, Summary: "it does", Evidence: []string{"3 ms"}}},
			[]string{"noted in /r", "it does\n  - 3 ms"},
		},
		"not proved": {
			bootstrapFlags{},
			bootstrap.Outcome{Verdict: &bootstrap.Verdict{Summary: "it copies", Remedy: "another disk"}},
			[]string{"it copies\nWhat helps: another disk"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			b := &bootstrapping{flags: test.flags, out: &out}
			b.conclude(&test.outcome)
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("does not tell %q:\n%s", want, out.String())
				}
			}
		})
	}
}
