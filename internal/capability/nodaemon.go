// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// Unassessed is the report on a host that could not be assessed, because there is no daemon to talk to or talking to
// it failed.
func Unassessed(err error) *Report {
	finding := Finding{Capability: Daemon, Verdict: Absent, Reason: err.Error(), Remedy: daemonRemedy(err), Judged: byDoing}
	if !errors.Is(err, lxd.ErrUnreachable) && !errors.Is(err, lxd.ErrRefused) {
		finding.Verdict = Unproven
	}
	report := &Report{Findings: []Finding{finding}, Lacking: []Finding{finding}, Pools: []PoolReport{}, Members: []MemberReport{}}
	report.Summary = fmt.Sprintf("There is no host that a lab can rely on.%s", problems(slices.Clone(report.Findings)))
	return report
}

// daemonRemedy says how to come to a daemon; the error is why there is none.
func daemonRemedy(err error) string {
	_, none := errors.AsType[*lxd.NoDaemonError](err)
	_, dead := errors.AsType[*lxd.DeadSocketError](err)
	switch {
	case none, dead:
		return fmt.Sprintf("Run `%s` as root on this host, which sets it up (`%s --check` only says what is missing), or name another daemon in the provider's address.",
			bootstrapCommand, bootstrapCommand)
	case errors.Is(err, lxd.ErrUnreachable):
		return "Make sure that the daemon runs and listens at the provider's address."
	case errors.Is(err, lxd.ErrRefused):
		return "Give the provider a client certificate and key that the daemon trusts, or a trust token."
	default:
		return "Look into the daemon's log, and try again."
	}
}
