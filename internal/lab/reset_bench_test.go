// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// BenchmarkResetAgainstRawClient puts four running Debian machines back, by a reset and by the raw client doing the same
// to the same ready condition:
//
//	TF_ACC=1 go test -run - -bench Reset -benchtime 1x ./internal/lab
func BenchmarkResetAgainstRawClient(b *testing.B) {
	host, l := connect(b)
	client := host.Client(b)
	snapshots, names := map[string]lab.SnapshotID{}, []string{}
	for index := range 4 {
		spec := tiny(b, host)
		spec.Image = host.Debian(b).Fingerprint
		spec.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(b)}}
		spec.Ready = lab.Ready{Systemd: true}
		machine, _ := create(b, l, spec)
		snapshot, _, err := l.CreateSnapshot(b.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "clean"})
		if err != nil {
			b.Fatal(err)
		}
		snapshots[fmt.Sprint(index)] = snapshot.ID
		names = append(names, machine.Name)
	}
	ours := func() {
		if _, err := l.Reset(b.Context(), lab.ResetSpec{Snapshots: snapshots}, nil); err != nil {
			b.Fatal(err)
		}
	}
	raw := func() { rawReset(b, client, names) }

	acctest.Compare(b, ours, raw)
}

// rawReset restores machines side by side and waits until systemd has settled on each.
func rawReset(b *testing.B, client lxdclient.InstanceServer, names []string) {
	b.Helper()
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			operation, err := client.UpdateInstance(name, api.InstancePut{Restore: "clean"}, "")
			if err == nil {
				err = operation.Wait()
			}
			if err != nil {
				b.Error(err)
				return
			}
			for !rawSettled(b, client, name) {
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

// rawSettled asks systemd once; while it is too young to answer, it has not settled.
func rawSettled(b *testing.B, client lxdclient.InstanceServer, name string) bool {
	b.Helper()
	operation, err := client.ExecInstance(name, api.InstanceExecPost{Command: []string{"systemctl", "is-system-running", "--wait"}}, nil)
	if err != nil {
		return false
	}
	if err := operation.Wait(); err != nil {
		return false
	}
	// 0 is running and 1 another state: degraded, or none yet, which a state file tells apart.
	return operation.Get().Metadata["return"] == float64(0) || settledFile(client, name)
}

func settledFile(client lxdclient.InstanceServer, name string) bool {
	operation, err := client.ExecInstance(name, api.InstanceExecPost{Command: []string{"sh", "-c", "systemctl is-system-running | grep -q degraded"}}, nil)
	return err == nil && operation.Wait() == nil && operation.Get().Metadata["return"] == float64(0)
}
