// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	lxdclient "github.com/canonical/lxd/client"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

// freeBranchBytes is what a branch may take of its pool before it starts, whatever its source holds.
const freeBranchBytes = 1 << 20

// BenchmarkBranchAgainstRawClient makes branches of a snapshot with more and more data, and copies of it through the raw
// client. "ours" is all of it, with what a copy does not have: locks, a look at the source, a machine id of its own.
// "branch-ms" is the step that both have, as the timings tell of it.
//
//	TF_ACC=1 go test -run - -bench Branch -benchtime 1x ./internal/lab
func BenchmarkBranchAgainstRawClient(b *testing.B) {
	for _, mebibytes := range []int{50, 500, 2048} {
		b.Run(fmt.Sprintf("%dMiB", mebibytes), func(b *testing.B) {
			host, l := connect(b)
			machine, _ := create(b, l, tiny(b, host))
			in(b, machine.Name, fmt.Sprintf("dd if=/dev/urandom of=/root/data bs=1M count=%d 2>/dev/null; sync", mebibytes))
			source := snapshotOf(b, l, machine)
			branch(b, l, stopped(b, source)) // proves the pool, if nobody has
			grown := growth(b, host, func() { branch(b, l, stopped(b, source)) })

			client := host.Client(b)
			existed := []int64{}
			ours := func() {
				_, timings := branch(b, l, stopped(b, source))
				existed = append(existed, timings.BranchMS)
			}
			acctest.Compare(b, ours, func() { rawBranch(b, client, source) })
			b.ReportMetric(float64(acctest.Median(existed)), "branch-ms")
			b.ReportMetric(float64(grown)/1024, "grown-KiB")
		})
	}
}

// stopped is a branch of a source that does not run.
func stopped(t testing.TB, source lab.SourceID) lab.BranchSpec {
	t.Helper()
	spec := running(t, source)
	spec.Running = false
	return spec
}

// rawBranch copies a snapshot as the daemon's own client does, and removes the copy when the benchmark ends.
func rawBranch(b *testing.B, client lxdclient.InstanceServer, source lab.SourceID) {
	b.Helper()
	name := acctest.Name(b, "r")
	snapshot, _, err := client.GetInstanceSnapshot(source.Machine.Name, source.Snapshot.Name)
	if err != nil {
		b.Fatal(err)
	}
	operation, err := client.CopyInstanceSnapshot(client, source.Machine.Name, *snapshot, &lxdclient.InstanceSnapshotCopyArgs{Name: name})
	if err == nil {
		err = operation.Wait()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		operation, err := client.DeleteInstance(name)
		if err == nil {
			err = operation.Wait()
		}
		if err != nil {
			b.Error(err)
		}
	})
}

// growth is by how much the pool of a host grew.
func growth(t testing.TB, host *acctest.Host, work func()) int64 {
	t.Helper()
	clean(t, host) // what was deleted before must not be taken for it
	before := used(t, host)
	work()
	grown := used(t, host) - before
	if grown > freeBranchBytes {
		t.Errorf("a branch that has not started took %d KiB of its pool", grown/1024)
	}
	return grown
}

// used is what is used of the pool of a host, when everything is written.
func used(t testing.TB, host *acctest.Host) int64 {
	t.Helper()
	pool := filepath.Join(host.Dir, "storage-pools", host.Pool(t))
	if out, err := exec.CommandContext(context.Background(), "btrfs", "filesystem", "sync", pool).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	resources, err := host.Client(t).GetStoragePoolResources(host.Pool(t))
	if err != nil {
		t.Fatal(err)
	}
	return int64(resources.Space.Used) //nolint:gosec // bytes of a disk
}
