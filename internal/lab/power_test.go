// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// A machine may end by itself between the look at it and the stop, which the daemon then calls an error. One that runs on
// is not deleted.
func TestStopOfMachineThatEndsByItself(t *testing.T) {
	t.Parallel()
	const text = `container is not running: "source"`
	for name, ends := range map[string]bool{"one that ends": true, "one that runs on": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, proxy, l := inMemory(t)
			machine := source(t, server, api.InstancesPost{Type: "container"}).Machine
			wait(t)(server.Client(t).UpdateInstanceState(machine.Name, api.InstanceStatePut{Action: "start"}, ""))
			rule := lxdtest.Rule{Method: http.MethodPut, Path: "/instances/source/state$", Status: http.StatusBadRequest, Error: text}
			if ends {
				rule.Do = func() {
					wait(t)(server.Client(t).UpdateInstanceState(machine.Name, api.InstanceStatePut{Action: "stop", Force: true}, ""))
				}
			}
			proxy.Add(rule)
			err := l.DeleteMachine(t.Context(), machine)
			proxy.Clear()
			_, _, look := server.Client(t).GetInstance(machine.Name)
			if gone := api.StatusErrorCheck(look, http.StatusNotFound); gone != ends {
				t.Errorf("the machine is gone: %t; %v", gone, look)
			}
			var failed *lxd.Error
			if errors.As(err, &failed) == ends {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
