// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// BenchmarkSnapshotAgainstRawClient takes snapshots of four running machines side by side, and does the same through the
// raw client:
//
//	TF_ACC=1 go test -run - -bench SnapshotAgainst -benchtime 1x ./internal/lab
func BenchmarkSnapshotAgainstRawClient(b *testing.B) {
	host, l := connect(b)
	client := host.Client(b)
	machines := []lab.MachineID{}
	for range 4 {
		machine, _ := create(b, l, tiny(b, host))
		machines = append(machines, machine.ID)
	}
	taken := 0
	each := func(snapshot func(machine lab.MachineID, name string) error) func() {
		return func() {
			taken++
			var all sync.WaitGroup
			for _, machine := range machines {
				all.Go(func() {
					if err := snapshot(machine, fmt.Sprintf("s%d", taken)); err != nil {
						b.Error(err)
					}
				})
			}
			all.Wait()
		}
	}
	acctest.Compare(b, each(func(machine lab.MachineID, name string) error {
		_, _, err := l.CreateSnapshot(b.Context(), lab.SnapshotSpec{Machine: machine, Name: name})
		return err
	}), each(func(machine lab.MachineID, name string) error {
		operation, err := client.CreateInstanceSnapshot(machine.Name, api.InstanceSnapshotsPost{Name: name})
		if err != nil {
			return err
		}
		return operation.Wait()
	}))
}

// BenchmarkSnapshotIsFlat takes snapshots of a machine with 50 MiB of data, and of one with 2 GiB:
//
//	TF_ACC=1 go test -run - -bench SnapshotIsFlat -benchtime 1x ./internal/lab
func BenchmarkSnapshotIsFlat(b *testing.B) {
	host, l := connect(b)
	holding := func(mebibytes int) func() {
		machine, _ := create(b, l, tiny(b, host))
		in(b, machine.Name, fmt.Sprintf("dd if=/dev/urandom of=/data bs=1M count=%d 2>/dev/null; sync", mebibytes))
		return func() {
			name := fmt.Sprintf("s%d", time.Now().UnixNano())
			if _, _, err := l.CreateSnapshot(b.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: name}); err != nil {
				b.Error(err)
			}
		}
	}
	small, large := holding(50), holding(2048)
	acctest.Compare(b, large, small)
}
