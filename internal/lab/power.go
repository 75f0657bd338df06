// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"math"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// power starts a machine, or stops it by force: a lab is thrown away, and a guest that ignores a shutdown would hold
// it up. The daemon's own time limit is the context's, since it has none that suits all.
func (l *Lab) power(ctx context.Context, machine string, on bool) error {
	state := api.InstanceStatePut{Action: "stop", Force: true, Timeout: secondsLeft(ctx)}
	if on {
		state = api.InstanceStatePut{Action: "start", Timeout: secondsLeft(ctx)}
	}
	return l.daemon.SetInstanceState(ctx, machine, state)
}

// secondsLeft is the time to the context's deadline, for calls whose limit is in whole seconds; -1 is none.
func secondsLeft(ctx context.Context) int {
	deadline, ok := ctx.Deadline()
	if !ok {
		return -1
	}
	return max(1, int(math.Ceil(time.Until(deadline).Seconds())))
}
