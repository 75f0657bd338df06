// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// labObject is an object of a lab: what it is, what is declared, and a change of that which a degraded host cannot do;
// nil where there is none.
type labObject struct {
	*managed
	config, change args
	importID       string // empty where an import is not offered
	refusedAt      string // the attribute at which the change is refused
}

// aLab makes one of each object on a pool that copies on write, and gives them in the order in which they depend on each
// other.
func aLab(t *testing.T) (*lxdtest.Server, []labObject) {
	t.Helper()
	daemon := lxdtest.New(t, lxdtest.WithDrivers("lvm"))
	must(t, daemon.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "pool", Driver: "lvm"}))
	tf := newTerraform(t, args{"address": daemon.Address()})
	objects := []labObject{}
	add := func(typeName, importID, refusedAt string, config, change args) *managed {
		object := labObject{tf.resource(typeName), config, maps.Clone(config), importID, refusedAt}
		maps.Copy(object.change, change)
		if change == nil {
			object.change = nil
		}
		object.mustApply(actionCreate, config)
		objects = append(objects, object)
		return object.managed
	}
	add("lab_network", "labnet", "", args{"name": "labnet"}, nil)
	image := add("lab_image", "", "", args{"file": newImageFiles(t, "a")}, nil)
	machine := add("lab_machine", "a", `AttributeName("pool")`,
		args{"name": "a", "image": image.text("fingerprint"), "pool": "pool"}, args{"cpus": 2})
	snapshot := add("lab_snapshot", "a/clean", `AttributeName("machine")`,
		args{"machine": machine.text("id"), "name": "clean"}, args{"name": "cleaner"})
	add("lab_branch", "b", "", args{"name": "b", "source": snapshot.text("id")}, nil)
	add("lab_reset", "", `AttributeName("snapshots").ElementKeyString("a")`,
		args{"snapshots": args{"a": snapshot.text("id")}, "triggers": args{"run": "1"}}, args{"triggers": args{"run": "2"}})
	return daemon, objects
}

// degrade makes the pool one that copies, behind everybody's back.
func degrade(t *testing.T, daemon *lxdtest.Server) {
	t.Helper()
	client := daemon.Client(t)
	pool, etag, err := client.GetStoragePool("pool")
	must(t, err)
	pool.Config["lvm.use_thinpool"] = "false"
	must(t, client.UpdateStoragePool("pool", pool.Writable(), etag))
}

func TestDegradedHostLocksNobodyOut(t *testing.T) {
	t.Parallel()
	daemon, objects := aLab(t)
	degrade(t, daemon)
	tf := newTerraform(t, args{"address": daemon.Address()})
	for _, object := range slices.Backward(objects) {
		here := object.in(tf)
		noErrors(t, here.refresh())
		if here.gone() {
			t.Errorf("%s was taken for gone", object.typeName)
			continue
		}
		here.mustPlan(actionNone, object.config)
		if object.change != nil {
			_, d := here.plan(object.change)
			wantErrorAt(t, d, object.refusedAt, "Host refused: ", "lvm.use_thinpool", "What helps: ")
		}
		if object.importID != "" {
			noErrors(t, tf.resource(object.typeName).importID(object.importID))
		}
		here.mustDestroy()
	}
	if names, err := daemon.Client(t).GetInstanceNames(api.InstanceTypeAny); err != nil || len(names) > 0 {
		t.Errorf("left over: %v, %v", names, err)
	}
}

// A pool that copies was made by somebody else, and taken over.
func TestPoolThatCopiesCanBeImportedAndDestroyed(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	must(t, daemon.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "slow", Driver: "dir"}))
	pool := tf.resource("lab_storage_pool")
	noErrors(t, pool.importID("slow"))
	config := args{"name": "slow", "driver": "dir"}
	pool.mustPlan(actionNone, config)
	_, d := pool.plan(args{"name": "slow", "driver": "dir", "description": "mine"})
	wantErrorAt(t, d, `AttributeName("driver")`, "Host refused: copy-on-write storage")
	noErrors(t, pool.refresh())
	pool.mustDestroy()
}

// A plan was made while the host was good, and is applied by another process on a host that is not any more.
func TestSavedPlanIsRefusedOnAHostThatDegradedSince(t *testing.T) {
	t.Parallel()
	daemon, objects := aLab(t)
	planner := objects[0].terraform
	image := objects[1].text("fingerprint")
	type saved struct {
		labObject
		planned
	}
	plans := []saved{}
	save := func(object labObject) {
		p, d := object.plan(object.change)
		noErrors(t, d)
		if p.action != actionReplace { // which is a deletion and a creation, and the latter has a plan here of its own
			plans = append(plans, saved{object, p})
		}
	}
	for _, object := range objects {
		if object.change == nil {
			continue
		}
		save(object)
		created := object
		created.managed = planner.resource(object.typeName)
		switch object.typeName {
		case "lab_machine":
			created.change = args{"name": "new", "image": image, "pool": "pool"}
		case "lab_reset":
			created.change = args{"snapshots": object.change["snapshots"], "restore_on_create": true}
		}
		save(created)
	}
	pool := labObject{managed: planner.resource("lab_storage_pool"), change: args{"name": "later", "driver": "lvm"}, refusedAt: `AttributeName("driver")`}
	save(pool)
	branch := labObject{managed: planner.resource("lab_branch"), change: args{"name": "later", "source": objects[3].text("id")}, refusedAt: `AttributeName("source")`}
	save(branch)

	degrade(t, daemon)
	daemon.Set(lxdtest.WithDrivers("dir"))
	before := len(daemon.Requests())
	tf := newTerraform(t, args{"address": daemon.Address()})
	for _, plan := range plans {
		wantErrorAt(t, plan.in(tf).applyPlanned(plan.planned, plan.change), plan.refusedAt, "Host refused: ", "What helps: ")
	}
	for _, request := range daemon.Requests()[before:] {
		if request.Method != http.MethodGet {
			t.Errorf("a refused plan changed something: %s %s", request.Method, request.Path)
		}
	}
}
