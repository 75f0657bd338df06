// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"net/http"
	"testing"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// newMachine makes a machine on a daemon in memory, by other means than the provider, and gives its id.
func newMachine(t *testing.T, daemon *lxdtest.Server, name string, ephemeral bool) lab.MachineID {
	t.Helper()
	client := daemon.Client(t)
	post := api.InstancesPost{Name: name, Type: "container"}
	post.Source = api.InstanceSource{Type: "image", Fingerprint: daemon.AddImage(map[string]string{"/data": name})}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
	post.Ephemeral = ephemeral
	finish(t)(client.CreateInstance(post))
	live, _, err := client.GetInstance(name)
	must(t, err)
	return lab.MachineID{Project: "default", Name: name, UUID: live.Config["volatile.uuid"]}
}

// finish makes sure that what a client was asked for gets done.
func finish(t *testing.T) func(lxd.Operation, error) {
	t.Helper()
	return func(operation lxd.Operation, err error) {
		t.Helper()
		must(t, err)
		must(t, operation.Wait())
	}
}

func start(t *testing.T, daemon *lxdtest.Server, name string) {
	t.Helper()
	finish(t)(daemon.Client(t).UpdateInstanceState(name, api.InstanceStatePut{Action: "start"}, ""))
}

// newSnapshot takes a snapshot, by other means than the provider, and gives its id.
func newSnapshot(t *testing.T, daemon *lxdtest.Server, machine lab.MachineID, name string) string {
	t.Helper()
	finish(t)(daemon.Client(t).CreateInstanceSnapshot(machine.Name, api.InstanceSnapshotsPost{Name: name}))
	live, _, err := daemon.Client(t).GetInstanceSnapshot(machine.Name, name)
	must(t, err)
	return lab.SnapshotID{Machine: machine, Name: name, CreatedAt: live.CreatedAt}.String()
}

func TestImagePublished(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	golden := newMachine(t, daemon, "golden", false)
	start(t, daemon, "golden")
	image := tf.resource("lab_image")
	config := args{"publish": args{"source": golden.String(), "stop": true}, "aliases": list{"golden"}, "pools": list{"pool"}}
	image.mustApply(actionCreate, config)
	sum := image.text("fingerprint")
	if image.get("owned") != true {
		t.Error("an image that we made is not ours")
	}
	state, _, err := daemon.Client(t).GetInstanceState("golden")
	must(t, err)
	if state.StatusCode != api.Running {
		t.Errorf("the source is %s", state.Status)
	}

	// Consent and compression are about the making, which is done.
	config["publish"] = args{"source": golden.String(), "compression": "zstd"}
	image.mustApply(actionUpdate, config)

	// A source that is gone, or not named any more, is no reason to lose the image; another one is.
	finish(t)(daemon.Client(t).UpdateInstanceState("golden", api.InstanceStatePut{Action: "stop", Force: true}, ""))
	finish(t)(daemon.Client(t).DeleteInstance("golden"))
	image.mustPlan(actionNone, config)
	config["publish"] = args{"source": nil}
	image.mustApply(actionUpdate, config)
	if image.text("fingerprint") != sum {
		t.Error("the image was made anew")
	}
	image.mustPlan(actionReplace, args{"publish": args{"source": unknown}})
	image.mustPlan(actionReplace, args{"publish": unknown})
	other := newMachine(t, daemon, "other", false)
	image.mustApply(actionReplace, args{"publish": args{"source": other.String()}})
	image.mustDestroy()
	if left, err := daemon.Client(t).GetImageAliasNames(); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestImagePublishedOfSnapshot(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	golden := newMachine(t, daemon, "golden", false)
	start(t, daemon, "golden")
	clean := newSnapshot(t, daemon, golden, "clean")
	image := tf.resource("lab_image")
	daemon.ForgetRequests()
	image.mustApply(actionCreate, args{"publish": args{"source": clean}})
	for _, request := range daemon.Requests() {
		if request.Path == "/1.0/instances/golden/state" && request.Method != http.MethodGet {
			t.Errorf("the machine of the snapshot was touched: %v", request)
		}
	}

	imported := tf.resource("lab_image")
	noErrors(t, imported.importID(image.text("fingerprint")))
	imported.mustApply(actionUpdate, args{"publish": args{"source": clean}})
}

func TestImageWhoseSourceIsRefused(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	golden := newMachine(t, daemon, "golden", false)
	clean := newSnapshot(t, daemon, golden, "clean")
	finish(t)(daemon.Client(t).DeleteInstanceSnapshot("golden", "clean"))
	start(t, daemon, "golden")
	passing := newMachine(t, daemon, "passing", true)
	start(t, daemon, "passing")
	elsewhere := lab.MachineID{Project: "other", Name: "m", UUID: golden.UUID}
	for name, test := range map[string]struct {
		publish args
		at      string
		message string
	}{
		"running":       {args{"source": golden.String()}, "stop", `"golden" is running`},
		"ephemeral":     {args{"source": passing.String(), "stop": true}, "source", "stopping it would delete it"},
		"gone":          {args{"source": clean}, "source", "not found"},
		"other machine": {args{"source": lab.MachineID{Project: "default", Name: "golden", UUID: passing.UUID}.String()}, "source", "is another"},
		"other project": {args{"source": elsewhere.String()}, "source", "set project"},
		"no id":         {args{"source": "golden"}, "source", "lab_machine.a.id"},
		"nothing":       {args{"stop": true}, "source", "without a source"},
		"compression":   {args{"source": golden.String(), "compression": "lz4"}, "compression", "zstd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, d := newTerraform(t, args{"address": daemon.Address()}).resource("lab_image").plan(args{"publish": test.publish})
			wantErrorAt(t, d, `AttributeName("publish").AttributeName("`+test.at+`")`, test.message)
		})
	}
	// What is known at apply only is refused then, before anything is touched.
	image := tf.resource("lab_image")
	p := image.mustPlan(actionCreate, args{"publish": args{"source": unknown}})
	daemon.ForgetRequests()
	wantErrorAt(t, image.carryOut(p, args{"publish": args{"source": golden.String()}}), `AttributeName("publish").AttributeName("stop")`, "is running")
	for _, request := range daemon.Requests() {
		if request.Method != http.MethodGet {
			t.Errorf("a refused image made the daemon %v", request)
		}
	}
}
