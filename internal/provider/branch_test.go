// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"net/http"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// sourceOn makes a machine through the provider, and gives its id.
func sourceOn(t *testing.T, daemon *lxdtest.Server, tf *terraform) string {
	t.Helper()
	machine := tf.resource("lab_machine")
	machine.mustApply(actionCreate, args{"name": "source", "image": daemon.AddImage(map[string]string{"/data": "x"}), "pool": "pool", "running": false})
	return machine.text("id")
}

// A branch that was made and then failed is kept as tainted, and replaced by the next apply; one that was not is not.
func TestBranchWhoseCreationFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule lxdtest.Rule
		kept bool
		says string
	}{
		"refused":               {lxdtest.Rule{Method: http.MethodPost, Path: `^/1\.0/instances$`, Status: 500, Error: "no room"}, false, "no room"},
		"answer lost":           {lxdtest.Rule{Method: http.MethodPost, Path: `^/1\.0/instances$`, DropAfter: true}, true, "not known"},
		"does not start":        {lxdtest.Rule{Method: http.MethodPut, Path: `/branch/state$`, Status: 500, Error: "no cgroup"}, true, "no cgroup"},
		"longer than it may be": {lxdtest.Rule{Method: http.MethodPut, Path: `/branch/state$`, Delay: time.Minute}, true, "timeouts.create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			daemon, proxy, tf := faulty(t)
			config := args{"name": "branch", "source": sourceOn(t, daemon, tf)}
			branch := tf.resource("lab_branch")
			proxy.Add(test.rule)
			_, d := branch.apply(args{"name": "branch", "source": config["source"], "timeouts": args{"create": "3s"}})
			wantError(t, d, `Unable to create branch "branch"`, test.says)
			if branch.gone() == test.kept {
				t.Fatalf("in the state: %t, want %t", !branch.gone(), test.kept)
			}
			proxy.Clear()
			want := actionCreate
			if test.kept {
				want = actionReplace
			}
			branch.mustApply(want, config)
			branch.mustDestroy()
			names, err := daemon.Client(t).GetInstanceNames(api.InstanceTypeAny)
			must(t, err)
			if len(names) != 1 {
				t.Errorf("left over: %v", names)
			}
		})
	}
}

// The first plan after an import of a branch is empty, whether what the daemon knows is declared or not.
func TestBranchImport(t *testing.T) {
	t.Parallel()
	daemon, _, tf := faulty(t)
	source := sourceOn(t, daemon, tf)
	made := tf.resource("lab_branch")
	full := args{"name": "branch", "source": source, "memory": "256MiB", "cpus": 2, "description": "mine", "config": args{"user.role": "x"}}
	made.mustApply(actionCreate, full)

	for _, config := range []args{full, {"name": "branch", "source": source}} {
		byName, byIdentity := tf.resource("lab_branch"), tf.resource("lab_branch")
		noErrors(t, byName.importID("branch"))
		byName.mustPlan(actionNone, config)
		noErrors(t, byIdentity.importIdentity(args{"name": "branch"}))
		byIdentity.mustPlan(actionNone, config)
	}
	wrong := tf.resource("lab_branch")
	wantError(t, wrong.importID("a/b/c"), "does not name a branch", `write "name", or "project/name"`)
}

// Changing what a branch is made from replaces it, and so does another place; what is in between is judged at plan.
func TestBranchIsReplacedByAnotherSource(t *testing.T) {
	t.Parallel()
	daemon, _, tf := faulty(t)
	source := sourceOn(t, daemon, tf)
	snapshot := tf.resource("lab_snapshot")
	snapshot.mustApply(actionCreate, args{"machine": source, "name": "clean"})
	branch := tf.resource("lab_branch")
	branch.mustApply(actionCreate, args{"name": "branch", "source": source})
	branch.mustApply(actionReplace, args{"name": "branch", "source": snapshot.text("id")})
	branch.mustPlan(actionReplace, args{"name": "branch", "source": unknown})
	branch.mustPlan(actionUpdate, args{"name": "branch", "source": snapshot.text("id"), "memory": "1GiB"})

	_, d := branch.plan(args{"name": "branch", "source": snapshot.text("id"), "pool": "other"})
	wantErrorAt(t, d, `AttributeName("pool")`, "Host refused", `the source is in pool "pool"`)
	_, d = branch.plan(args{"name": "branch", "source": "default/source/00000000-0000-4000-8000-000000000000", "memory": "1GiB"})
	wantErrorAt(t, d, `AttributeName("source")`, "is gone")
}
