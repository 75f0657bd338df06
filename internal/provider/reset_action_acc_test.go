// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// invoke plans and invokes an action, as Terraform 1.14 does, and gives the progress that it told of.
func (tf *terraform) invoke(actionType string, config args) (progress []string, diags diagnostics) {
	tf.t.Helper()
	server, ok := tf.server.(tfprotov6.ActionServer)
	if !ok {
		tf.t.Fatal("the provider has no actions")
	}
	value := wire(tf.t, encode(tf.t, tf.schemas.ActionSchemas[actionType].Schema.ValueType(), config))
	planned, err := server.PlanAction(tf.t.Context(), &tfprotov6.PlanActionRequest{ActionType: actionType, Config: value})
	must(tf.t, err)
	if diagnostics(planned.Diagnostics).failed() {
		return nil, planned.Diagnostics
	}
	stream, err := server.InvokeAction(tf.t.Context(), &tfprotov6.InvokeActionRequest{ActionType: actionType, Config: value})
	must(tf.t, err)
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			diags = append(diags, event.Diagnostics...)
		}
	}
	return progress, diags
}

func TestResetAction(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	tf := newTerraform(t, args{"address": host.Address(), "project": host.Project()})
	machine := tf.resource("lab_machine")
	config := args{"name": acctest.Name(t, "m"), "image": host.Tiny(t).Fingerprint, "pool": host.Pool(t)}
	machine.mustApply(actionCreate, config)
	defer machine.mustDestroy()
	snapshot := tf.resource("lab_snapshot")
	snapshot.mustApply(actionCreate, args{"machine": machine.text("id"), "name": "clean"})
	host.LXC(t, "exec", machine.text("name"), "--", "touch", "/root/mark")
	host.LXC(t, "stop", "--force", machine.text("name"))

	progress, diags := tf.invoke("lab_reset", args{"snapshots": args{"x": snapshot.text("id")}})
	noErrors(t, diags)
	if told := strings.Join(progress, "\n"); !strings.Contains(told, "x: restoring") || !strings.Contains(told, "x: usable") || !strings.Contains(told, "usable after") {
		t.Errorf("it told of %q", progress)
	}
	if got := host.In(t, machine.text("name"), "ls /root"); got != "" {
		t.Errorf("the disk did not go back: %q", got)
	}

	_, diags = tf.invoke("lab_reset", args{"snapshots": args{"x": "not an id"}})
	wantError(t, diags, "is not the id of a snapshot")
	id := snapshot.text("id")
	snapshot.mustDestroy()
	_, diags = tf.invoke("lab_reset", args{"snapshots": args{"x": id}})
	wantError(t, diags, "cannot be put back", "not found")
}
