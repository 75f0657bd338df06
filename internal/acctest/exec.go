// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"strings"
	"testing"
)

// outputEnd is printed behind the output of a script, so that output which the daemon lost is noticed.
const outputEnd = "end of output"

// In runs a shell script in a machine and gives what it printed, without white space around it; a script that fails,
// fails the test. A busy LXD 5.0 now and then loses the output of a command that took more than a second to start; the
// script is run again then, so it must bear that.
func (h *Host) In(t testing.TB, machine, script string) string {
	t.Helper()
	return h.InProject(t, h.project, machine, script)
}

// InProject is the same for a machine in a project.
func (h *Host) InProject(t testing.TB, project, machine, script string) string {
	t.Helper()
	for range 5 {
		output := h.LXC(t, "exec", "--project", project, machine, "--", "sh", "-c", "{ "+script+"\n} && echo '"+outputEnd+"'")
		if body, whole := strings.CutSuffix(strings.TrimSpace(output), outputEnd); whole {
			return strings.TrimSpace(body)
		}
	}
	t.Fatalf("the daemon lost the output of %q on machine %q five times", script, machine)
	return ""
}
