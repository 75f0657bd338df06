// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// A reset that is killed at the worst moments is finished by a plain apply.
func TestKilledResetIsFinishedByAnApply(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	proxy := lxdtest.NewProxy(t, host.Socket())
	s := newLate(t, host, proxy.Address())
	for _, moment := range []struct {
		name string
		rule lxdtest.Rule
	}{
		{"when the daemon has begun to restore", lxdtest.Rule{DropAfter: true}},
		{"between restoring and putting back", lxdtest.Rule{Skip: 1, DropBefore: true}},
	} {
		proxy.Clear()
		s.applyKilled(moment.name, func(kill func(), ended <-chan struct{}) {
			killed := make(chan struct{})
			rule := moment.rule
			rule.Method, rule.Path, rule.Times = http.MethodPut, "/instances/"+s.prefix+"-b$", 1
			rule.Do = func() { kill(); close(killed) }
			proxy.Add(rule)
			select {
			case <-killed:
			case <-ended:
				t.Errorf("the apply ended before the moment %s", moment.name)
			}
		})
		s.converges(moment.name)
	}
}

// Nor does it matter when it is killed.
func TestAccSoakOfKilledResets(t *testing.T) {
	t.Parallel()
	runs := acctest.Soak(t)
	host := acctest.Shared(t)
	s := newLate(t, host, host.Address())
	s.mark(s.keys...)
	start := time.Now()
	s.converges("undisturbed")
	undisturbed := time.Since(start)
	for run := range runs {
		after := rand.N(undisturbed) //nolint:gosec // no secret
		s.applyKilled(fmt.Sprint(run), func(kill func(), ended <-chan struct{}) {
			timer := time.NewTimer(after)
			select {
			case <-timer.C:
			case <-ended:
			}
			kill()
		})
		start := time.Now()
		s.converges(fmt.Sprint(run))
		t.Logf("run %d: killed after %v, converged in %v", run, after.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	}
}
