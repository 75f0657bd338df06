// SPDX-License-Identifier: MPL-2.0

package capability_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// benchPairs is how many times each side is measured; the sides take turns, so that both see the same host.
const benchPairs = 15

// BenchmarkProofAgainstRawClient proves a btrfs pool, and has the raw client do the same calls. It reports the ratio of
// the medians, and that of the raw client against itself, which says how far the host can be trusted:
//
//	TF_ACC=1 go test -run - -bench Proof -benchtime 1x ./internal/capability
func BenchmarkProofAgainstRawClient(b *testing.B) {
	h := acctest.Shared(b)
	pool := acctest.Name(b, "pool")
	client := h.Client(b)
	post := api.StoragePoolsPost{Name: pool, Driver: "btrfs", StoragePoolPut: api.StoragePoolPut{Config: map[string]string{"size": "8GiB"}}}
	if err := client.CreateStoragePool(post); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.LXC(b, "storage", "delete", pool) })
	daemon, err := lxd.Connect(b.Context(), lxd.Config{Address: h.Address(), Project: h.Project()})
	if err != nil {
		b.Fatal(err)
	}
	checker := capability.New(daemon)
	ours := func() error { _, err := checker.ProvePool(b.Context(), pool); return err }
	image := h.Tiny(b).Fingerprint
	runs := 0
	raw := func() error { runs++; return rawProof(client, pool, image, fmt.Sprintf("raw-%d", runs)) }

	times := map[string][]time.Duration{}
	for b.Loop() {
		for range benchPairs {
			for _, side := range []struct {
				name string
				work func() error
			}{{"raw", raw}, {"ours", ours}, {"again", raw}} {
				start := time.Now()
				if err := side.work(); err != nil {
					b.Fatal(err)
				}
				times[side.name] = append(times[side.name], time.Since(start))
			}
		}
	}
	median := func(side string) float64 {
		sorted := slices.Sorted(slices.Values(times[side]))
		return sorted[len(sorted)/2].Seconds() * 1000
	}
	b.ReportMetric(median("ours")/median("raw"), "ours/raw")
	b.ReportMetric(median("again")/median("raw"), "raw/raw")
	b.ReportMetric(median("ours"), "ours-ms")
	b.ReportMetric(median("raw"), "raw-ms")
}

// rawProbe is the calls of a probe by the raw client, without any judgement.
type rawProbe struct {
	client     lxdclient.InstanceServer
	pool, name string
	branches   []string
	err        error // the first one; what comes after it does nothing
}

// do waits for an operation, and reads the pool's space as the probe does after each.
func (r *rawProbe) do(start func() (lxdclient.Operation, error)) {
	if r.err != nil {
		return
	}
	operation, err := start()
	if err == nil {
		err = operation.Wait()
	}
	if err == nil {
		_, err = r.client.GetStoragePoolResources(r.pool)
	}
	r.err = err
}

func (r *rawProbe) snapshot(name string) {
	r.do(func() (lxdclient.Operation, error) {
		return r.client.CreateInstanceSnapshot(r.name, api.InstanceSnapshotsPost{Name: name, ExpiresAt: &time.Time{}})
	})
}

func (r *rawProbe) restore(name string) {
	r.do(func() (lxdclient.Operation, error) {
		return r.client.UpdateInstance(r.name, api.InstancePut{Restore: name}, "")
	})
}

func (r *rawProbe) create(name string, source api.InstanceSource) {
	r.do(func() (lxdclient.Operation, error) {
		return r.client.CreateInstance(api.InstancesPost{Name: name, Type: api.InstanceTypeContainer, Source: source, InstancePut: api.InstancePut{
			Profiles: []string{}, Devices: map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": r.pool}},
		}})
	})
}

// series takes a snapshot, more of them, and branches off the first.
func (r *rawProbe) series(name string, count int) {
	r.snapshot(name)
	for i := range count {
		r.snapshot(fmt.Sprintf("%s-%d", name, i))
	}
	for range count {
		branch := fmt.Sprintf("%s-%d", r.name, len(r.branches))
		r.branches = append(r.branches, branch)
		r.create(branch, api.InstanceSource{Type: api.SourceTypeCopy, Source: r.name + "/" + name, InstanceOnly: true})
	}
}

// fill writes 64 MiB of random data.
func (r *rawProbe) fill() {
	data := make([]byte, 16<<20)
	for i := range 4 {
		rand.Read(data)
		if r.err == nil {
			r.err = r.client.CreateInstanceFile(r.name, fmt.Sprintf("/data-%d", i), lxdclient.InstanceFileArgs{Content: bytes.NewReader(data), Mode: 0o600, Type: "file"})
		}
	}
}

// remove deletes the branches, four at a time, and then the machine.
func (r *rawProbe) remove() error {
	remove := func(name string) error {
		operation, err := r.client.DeleteInstance(name)
		if err != nil {
			return err
		}
		return operation.Wait()
	}
	group := errgroup.Group{}
	group.SetLimit(4)
	for _, branch := range r.branches {
		group.Go(func() error { return remove(branch) })
	}
	return errors.Join(r.err, group.Wait(), remove(r.name))
}

// rawProof does what the proof of a pool does, on an image that is there already.
func rawProof(client lxdclient.InstanceServer, pool, image, name string) error {
	const baseline, runs = 3, 5
	r := &rawProbe{client: client, pool: pool, name: name}
	r.create(name, api.InstanceSource{Type: api.SourceTypeImage, Fingerprint: image})
	r.series("empty", baseline)
	for range runs {
		r.restore("empty")
	}
	r.fill()
	r.snapshot("flush")
	r.series("full", runs)
	for range runs {
		r.restore("empty")
		r.restore("full")
	}
	return r.remove()
}
