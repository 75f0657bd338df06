// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// proxied gives the verbs on a daemon behind a proxy.
func proxied(t *testing.T, server *lxdtest.Server) (*lxdtest.Proxy, *lab.Lab) {
	t.Helper()
	proxy := lxdtest.NewProxy(t, server.Socket())
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: proxy.Address()})
	if err != nil {
		t.Fatal(err)
	}
	return proxy, lab.New(daemon, capability.New(daemon))
}

// TestBranchWithMemoryThatFailsAnywhere has each request of the making of a branch with memory fail, in turn, in several
// ways. Whatever fails, no staging project is left, nor a branch that the caller is not told of, and the next try succeeds.
// One that is killed leaves what it likes, and the next try removes that.
func TestBranchWithMemoryThatFailsAnywhere(t *testing.T) {
	t.Parallel()
	const most = 100
	for name, rule := range map[string]lxdtest.Rule{
		"refused":     {Status: http.StatusInternalServerError, Error: "broken", Times: 1},
		"answer lost": {DropAfter: true, Times: 1},
		"interrupted": {Times: 1},
		"killed":      {Status: http.StatusNotFound, Error: "not found"}, // so nothing of it can be undone
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _, spec := saved(t, "btrfs")
			spec.Ready = lab.Ready{Address: "ipv4"} // which takes no time here
			proxy, l := proxied(t, server)
			for skip := range most {
				rule.Skip = skip
				if branchWithFault(t, server, proxy, l, spec, rule) {
					return
				}
			}
			t.Errorf("a branch takes more than %d requests", most)
		})
	}
}

// branchWithFault makes a branch while the request after some others fails, and says whether there was none to fail.
func branchWithFault(t *testing.T, server *lxdtest.Server, proxy *lxdtest.Proxy, l *lab.Lab, spec lab.BranchSpec, rule lxdtest.Rule) (done bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var hit atomic.Bool
	killed, interrupt := rule.Times == 0, rule.Status == 0 && !rule.DropAfter
	rule.Do = func() {
		hit.Store(true)
		if interrupt || killed {
			cancel()
		}
	}
	proxy.Add(rule)
	made, _, err := l.CreateBranch(ctx, spec)
	proxy.Clear()
	when := fmt.Sprintf("request %d", rule.Skip+1)
	switch {
	case !hit.Load() && (err != nil || made == nil):
		t.Errorf("nothing failed, and yet: %v", err)
		return true
	case made == nil && err == nil:
		t.Errorf("%s: neither a branch nor an error", when)
	}
	if !killed {
		wantTold(t, server, when, made)
	}
	if made != nil {
		// What a killed run got hold of in its last moment is in no state, and is for its owner to delete.
		if err := l.DeleteMachine(t.Context(), made.ID); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	again, _, err := l.CreateBranch(t.Context(), spec)
	if err != nil {
		t.Errorf("after %s failed: %v", when, err)
		return true
	}
	wantNoStaging(t, server, []string{"default"}, "default/branch", "default/vm")
	if err := l.DeleteMachine(t.Context(), again.ID); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	return !hit.Load()
}

// wantTold fails unless all that is left is a branch that was given to the caller.
func wantTold(t *testing.T, server *lxdtest.Server, when string, made *lab.Machine) {
	t.Helper()
	left := []string{"default/vm"}
	if made != nil {
		left = []string{"default/branch", "default/vm"}
	}
	before := t.Failed()
	wantNoStaging(t, server, []string{"default"}, left...)
	if !before && t.Failed() {
		t.Logf("after %s", when)
	}
}

// What a run that died has left is removed by the next branch with memory, whatever its name; what one that lives is at
// work on is not, nor what somebody else has put there.
func TestSweepOfStagingProjects(t *testing.T) {
	t.Parallel()
	server, l, spec := saved(t, "btrfs")
	client := server.Client(t)
	old, fresh := "2020-01-02T03:04:05Z", time.Now().UTC().Format(time.RFC3339)
	here := capability.ThisHost()
	for name, mark := range map[string]string{
		"lab-staging-aaaaaaaaaaaa": "aaaaaaaaaaaa " + old + " " + here + " default/dead",
		"lab-staging-bbbbbbbbbbbb": "bbbbbbbbbbbb " + fresh + " " + here + " default/alive",
		"lab-staging-cccccccccccc": "cccccccccccc " + fresh + " elsewhere default/faraway",
		"lab-staging-dddddddddddd": "dddddddddddd " + old + " elsewhere default/forgotten",
		"lab-staging-eeeeeeeeeeee": "eeeeeeeeeeee " + old + " " + here + " default/used",
		"renamed":                  "ffffffffffff " + old + " " + here + " default/renamed",
	} {
		put := api.ProjectPut{Config: map[string]string{"features.images": "false", "features.profiles": "false", "user.lab.staging": mark}}
		if err := client.CreateProject(api.ProjectsPost{Name: name, ProjectPut: put}); err != nil {
			t.Fatal(err)
		}
	}
	post := api.InstancesPost{Name: "theirs", Type: "container", Source: api.InstanceSource{Type: "none"}}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
	wait(t)(client.UseProject("lab-staging-eeeeeeeeeeee").CreateInstance(post))
	unlock, err := l.Daemon().Lock(t.Context(), "alive")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, _, err := l.CreateBranch(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	wantNoStaging(t, server, []string{
		"default", "lab-staging-bbbbbbbbbbbb", "lab-staging-cccccccccccc", "lab-staging-eeeeeeeeeeee", "renamed",
	}, "default/branch", "lab-staging-eeeeeeeeeeee/theirs", "default/vm")
}
