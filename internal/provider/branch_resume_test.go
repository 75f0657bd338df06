// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/canonical/lxd/shared/api"
)

// A branch with memory is planned once and then managed like any other: what memory was declared stays in the state, and
// its network comes in place.
func TestBranchWithMemory(t *testing.T) {
	t.Parallel()
	daemon, tf, config := vmMemory(t)
	for _, name := range []string{"home", "apart"} {
		must(t, daemon.Client(t).CreateNetwork(api.NetworksPost{Name: name, Type: "bridge"}))
	}
	machine, snapshot, branch := tf.resource("lab_machine"), tf.resource("lab_snapshot"), tf.resource("lab_branch")
	machine.mustApply(actionCreate, with(config, args{"networks": args{"eth0": args{"network": "home"}}}))
	snapshot.mustApply(actionCreate, args{"machine": machine.text("id"), "name": "saved", "stateful": true})
	asked := args{"name": "branch", "source": snapshot.text("id"), "memory": "true"}

	_, d := branch.plan(asked)
	wantErrorAt(t, d, `AttributeName("networks")`, "Host refused", `on network "home" the two would collide`)
	_, d = branch.plan(with(asked, args{"source": machine.text("id")}))
	wantErrorAt(t, d, `AttributeName("memory")`, "Host refused", "the source holds no memory")
	_, d = branch.plan(with(asked, args{"networks": args{}, "cloud_init": args{"user_data": "#cloud-config"}}))
	wantErrorAt(t, d, `AttributeName("cloud_init")`, "does not boot")

	asked = with(asked, args{"networks": args{}})
	branch.mustApply(actionCreate, asked)
	memory := daemon.Boot("default", "vm")
	if got := daemon.Boot("default", "branch"); got != memory || branch.get("memory") != "true" {
		t.Errorf("its memory is of boot %q, want %q, and in the state %v", got, memory, branch.get("memory"))
	}
	noErrors(t, branch.refresh())
	branch.mustPlan(actionNone, asked)

	asked = with(asked, args{"networks": args{"eth0": args{"network": "apart"}}, "description": "set apart"})
	branch.mustApply(actionUpdate, asked)
	noErrors(t, branch.refresh())
	branch.mustPlan(actionNone, asked)
	if daemon.Boot("default", "branch") != memory {
		t.Error("it was booted")
	}

	imported := tf.resource("lab_branch")
	noErrors(t, imported.importID("branch"))
	imported.mustPlan(actionUpdate, asked) // which replaces nothing

	sized := with(asked, args{"memory": "1GiB", "allow_restart": true})
	branch.mustApply(actionUpdate, sized)
	branch.mustPlan(actionReplace, with(sized, args{"memory": "true"}))
	_, d = branch.plan(with(sized, args{"memory": "plenty"}))
	wantError(t, d, "Invalid size")
	branch.mustDestroy()
}
