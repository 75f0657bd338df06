// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"maps"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// vmMemory is a daemon in memory with virtual machines, the provider on it, and a machine whose memory can be captured.
func vmMemory(t *testing.T) (*lxdtest.Server, *terraform, args) {
	t.Helper()
	daemon, tf := memory(t)
	daemon.Set(lxdtest.WithVirtualMachines())
	client := daemon.Client(t)
	operation, err := client.CreateInstance(api.InstancesPost{
		Name: "seed", Type: api.InstanceTypeVM, Source: api.InstanceSource{Type: api.SourceTypeNone},
		InstancePut: api.InstancePut{Devices: map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}},
	})
	must(t, err)
	must(t, operation.Wait())
	operation, err = client.CreateImage(api.ImagesPost{Source: &api.ImagesPostSource{Type: "instance", Name: "seed"}}, nil)
	must(t, err)
	must(t, operation.Wait())
	image := operation.Get().Metadata["fingerprint"]
	operation, err = client.DeleteInstance("seed")
	must(t, err)
	must(t, operation.Wait())
	return daemon, tf, args{"name": "vm", "type": "virtual-machine", "image": image, "pool": "pool", "memory": "512MiB", "checkpointable": true}
}

// with is a configuration with some arguments more, or others.
func with(config, more args) args {
	all := maps.Clone(config)
	maps.Copy(all, more)
	return all
}

func TestCheckpointableMachine(t *testing.T) {
	t.Parallel()
	_, tf, config := vmMemory(t)
	machine := tf.resource("lab_machine")
	_, d := machine.plan(with(config, args{"devices": args{"chip": args{"type": "tpm"}}}))
	wantErrorAt(t, d, `AttributeName("devices").ElementKeyString("chip")`, "cannot be captured", "TPM")
	_, d = machine.plan(with(config, args{"devices": args{"more": args{"type": "disk", "pool": "pool", "source": "data"}}}))
	wantErrorAt(t, d, `AttributeName("devices")`, "Host refused", `driver "btrfs"`)

	machine.mustApply(actionCreate, config)
	noErrors(t, machine.refresh())
	machine.mustPlan(actionNone, config)
	if machine.get("checkpointable") != true || machine.get("devices") != nil {
		t.Errorf("the state has checkpointable %v and devices %v", machine.get("checkpointable"), machine.get("devices"))
	}

	_, d = machine.plan(with(config, args{"memory": "1GiB"}))
	wantErrorAt(t, d, `AttributeName("allow_restart")`, "The change of memory takes effect only")
	_, d = machine.plan(with(config, args{"checkpointable": false}))
	wantErrorAt(t, d, `AttributeName("allow_restart")`, "The change of checkpointable takes effect only")
	config = with(config, args{"memory": "1GiB", "allow_restart": true})
	machine.mustApply(actionUpdate, config)

	imported := tf.resource("lab_machine")
	noErrors(t, imported.importID("vm"))
	noErrors(t, imported.refresh())
	if imported.get("checkpointable") != true || imported.text("memory") != "1GiB" || imported.get("devices") != nil {
		t.Errorf("imported was %v", imported.state)
	}
	machine.mustApply(actionUpdate, with(config, args{"checkpointable": false}))
	machine.mustDestroy()
}

func TestCheckpointAndReset(t *testing.T) {
	t.Parallel()
	daemon, tf, config := vmMemory(t)
	machine := tf.resource("lab_machine")
	machine.mustApply(actionCreate, config)
	boot := daemon.Boot("default", "vm")
	asked := args{"machine": machine.text("id"), "name": "saved", "stateful": true}
	saved, plain := tf.resource("lab_snapshot"), tf.resource("lab_snapshot")
	// A container whose disk has a size makes the pool count what its volumes hold.
	tf.resource("lab_machine").mustApply(actionCreate, args{"name": "beside", "image": daemon.AddImage(nil), "pool": "pool", "disk": "1GiB"})
	saved.mustApply(actionCreate, asked)
	if got := saved.get("state_bytes"); got != 38<<20 {
		t.Errorf("its memory takes %v bytes", got)
	}
	noErrors(t, saved.refresh())
	saved.mustPlan(actionNone, asked)
	plain.mustApply(actionCreate, args{"machine": machine.text("id"), "name": "plain"})
	if got := plain.get("state_bytes"); got != nil {
		t.Errorf("without memory there are %v bytes of it", got)
	}

	reset := tf.resource("lab_reset")
	reset.mustApply(actionCreate, args{"snapshots": args{"x": saved.text("id")}, "restore_on_create": true})
	if daemon.Boot("default", "vm") != boot || reset.get("machines", "x", "start_ms") != nil {
		t.Errorf("it was booted: %v", reset.get("machines", "x", "start_ms"))
	}

	// A machine that is stopped has no memory, unless this plan starts it.
	stopped := with(config, args{"running": false})
	machine.mustApply(actionUpdate, stopped)
	another := with(asked, args{"name": "another"})
	_, d := tf.resource("lab_snapshot").plan(another)
	wantErrorAt(t, d, `AttributeName("stateful")`, "the machine does not run")
	machine.mustPlan(actionUpdate, config)
	tf.resource("lab_snapshot").mustPlan(actionCreate, another)
	_, d = tf.resource("lab_snapshot").apply(another)
	wantErrorAt(t, d, `AttributeName("stateful")`, "the machine does not run")
}
