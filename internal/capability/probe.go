// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// How a probe measures.
const (
	// probeBytes is how much random data it writes.
	probeBytes = 64 << 20
	// probeRuns is how often each operation is done with the data, and probeBaseline how often without.
	probeRuns, probeBaseline = 5, 3
	// repeatFactor is by how much more is written when the first measurement leaves a doubt.
	repeatFactor = 4
	// probeChunk is the size of the files that the data is written in; one is held in memory.
	probeChunk = 16 << 20
)

// The snapshots of a probe's machine.
const (
	emptySnapshot = "empty"
	fullSnapshot  = "full"
)

// probe is one measurement of a pool, on a stopped container of its own.
type probe struct {
	bench
	pool  PoolFacts
	bytes int64
	// rollback says that the driver only goes back to the newest snapshot.
	rollback bool
	// host is where the pool can be looked at; nil where it cannot.
	host *host
	// used is the pool's used space when it was last read.
	used int64
}

// run takes the measurement. The objects that it makes are the bench's to remove.
func (p *probe) run(ctx context.Context) (*measurement, error) {
	m := &measurement{bytes: p.bytes, meterBytes: meterResolution(p.pool)}
	if err := p.makeMachine(ctx, p.pool.Name); err != nil {
		return nil, err
	}
	if err := p.measureSeries(ctx, probeBaseline, emptySnapshot, &m.snapshots.empty, &m.branches.empty); err != nil {
		return nil, err
	}
	if err := p.measureRestores(ctx, &m.restores.empty, nil, emptySnapshot, func(context.Context) error { return nil }); err != nil {
		return nil, err
	}
	if err := p.fill(ctx, m); err != nil {
		return nil, err
	}
	if err := p.measureSeries(ctx, probeRuns, fullSnapshot, &m.snapshots.full, &m.branches.full); err != nil {
		return nil, err
	}
	family := p.lineageOfCopies()
	if err := p.measureRestores(ctx, &m.restores.full, &m.emptied, fullSnapshot, p.empty); err != nil {
		return nil, err
	}
	if family != nil {
		m.lineage = p.lineageOfRestore(*family)
	}
	return m, nil
}

// measureSeries takes a snapshot of a name, more of them, and branches off the first.
func (p *probe) measureSeries(ctx context.Context, runs int, name string, snapshots, branches *[]sample) error {
	// The first one is not measured: it also writes out what the daemon and the kernel had put off.
	if err := p.snapshot(ctx, name); err != nil {
		return err
	}
	if err := p.readUsed(ctx); err != nil {
		return err
	}
	for i := range runs {
		if err := p.sample(ctx, snapshots, func(ctx context.Context) error { return p.snapshot(ctx, fmt.Sprintf("%s-%d", name, i)) }); err != nil {
			return err
		}
	}
	for range runs {
		if err := p.sample(ctx, branches, func(ctx context.Context) error { return p.branch(ctx, p.pool.Name, name) }); err != nil {
			return err
		}
	}
	return nil
}

// measureRestores restores a snapshot again and again, each time after the machine was made to differ from it: a
// driver that compares files would write nothing otherwise. What that difference did to the pool's space is noted, too,
// if differed is not nil.
func (p *probe) measureRestores(ctx context.Context, samples, differed *[]sample, snapshot string, differ func(context.Context) error) error {
	runs := probeRuns
	if p.rollback {
		// Each of them waits for the daemon's file server to stop.
		snapshot, runs = p.newest, probeBaseline
		differ = p.truncate
	}
	if differed == nil {
		differed = new([]sample)
	}
	for range runs {
		if err := p.sample(ctx, differed, differ); err != nil {
			return err
		}
		if err := p.sample(ctx, samples, func(ctx context.Context) error { return p.restore(ctx, snapshot) }); err != nil {
			return err
		}
	}
	return nil
}

// empty takes the data away, by going back to before it was written.
func (p *probe) empty(ctx context.Context) error { return p.restore(ctx, emptySnapshot) }

// truncate takes the data away, by writing its files anew without content.
func (p *probe) truncate(ctx context.Context) error {
	for i := range max(1, p.files) {
		if err := p.push(ctx, i, nil); err != nil {
			return err
		}
	}
	return nil
}

// sample does one operation and notes how long it took and what it cost in space.
func (p *probe) sample(ctx context.Context, samples *[]sample, operation func(context.Context) error) error {
	before, started := p.used, time.Now()
	if err := operation(ctx); err != nil {
		return err
	}
	took := time.Since(started)
	if err := p.readUsed(ctx); err != nil {
		return err
	}
	*samples = append(*samples, sample{took: took, grew: p.used - before})
	return nil
}

// fill writes the data, and notes how long that took and whether the pool's space shows it.
func (p *probe) fill(ctx context.Context, m *measurement) error {
	if err := p.readUsed(ctx); err != nil {
		return err
	}
	before := p.used
	random := newRandom()
	for rest := p.bytes; rest > 0; rest -= probeChunk {
		chunk := random.bytes(min(rest, probeChunk))
		started := time.Now()
		if err := p.push(ctx, p.files, chunk); err != nil {
			return err
		}
		m.write += time.Since(started)
		p.files++
	}
	// A snapshot makes the file system settle where the data goes.
	if err := p.snapshot(ctx, "flush"); err != nil {
		return err
	}
	if err := p.readUsed(ctx); err != nil {
		return err
	}
	m.written = p.used - before
	return nil
}

func (p *probe) readUsed(ctx context.Context) error {
	resources, err := p.daemon.PoolResources(ctx, p.pool.Name)
	if err != nil {
		return err
	}
	p.used = int64(resources.Space.Used) //nolint:gosec // bytes of a file system
	return nil
}

// meterResolution is the least growth that a driver's figures show: LVM tells a thin pool's use in hundredths of a
// percent, and Ceph's lag by seconds.
func meterResolution(pool PoolFacts) int64 {
	switch pool.Driver {
	case "lvm":
		return pool.TotalBytes / 10000
	case "ceph":
		return pool.TotalBytes
	default:
		return 0
	}
}

// refuseSpace refuses to probe a pool that could not hold the data if every operation copied it.
func (f *Facts) refuseSpace(pool PoolFacts, space api.ResourcesStoragePoolSpace, bytes int64) *Refusal {
	free := int64(space.Total - min(space.Used, space.Total))                                                       //nolint:gosec // bytes of a file system
	evidence := []string{fmt.Sprintf("free in pool %q: %s of %s", pool.Name, size(free), size(int64(space.Total)))} //nolint:gosec // as above
	if onLoopFile(pool.Config["source"]) {
		if below, known := f.freeForLoops(); known {
			evidence = append(evidence, fmt.Sprintf("free on the disk of %s: %s", pool.Config["source"], size(below)))
			free = min(free, below)
		}
	}
	needed := (2*probeRuns + 3) * bytes
	if free >= needed {
		return nil
	}
	return &Refusal{
		Capability: Headroom, Asked: fmt.Sprintf("a probe of storage pool %q with %s of data", pool.Name, size(bytes)),
		Found:    fmt.Sprintf("the pool has less than %s free, which the probe needs in case every operation is a full copy", size(needed)),
		Evidence: evidence,
		Remedy:   "Make the pool larger, or free some of it.",
	}
}

// diskSize is that of a machine that holds so much data, where the driver makes block devices: a thick one takes all of
// its space at once, and the daemon's default is 10 GiB. Elsewhere it would make the daemon count quotas.
func diskSize(pool PoolFacts, bytes int64) string {
	switch pool.Driver {
	case "lvm", "ceph":
		return strconv.FormatInt(4*bytes, 10)
	default:
		return ""
	}
}

// newProbe prepares a measurement in a pool.
func newProbe(d *lxd.Daemon, at site, pool PoolFacts, bytes int64) *probe {
	return &probe{
		bench:    bench{daemon: d, mark: newMark(pool.Name), architecture: at.environment.Architectures[0], diskSize: diskSize(pool, bytes)},
		pool:     pool,
		bytes:    bytes,
		rollback: traitsOf(pool.Driver, pool.Config).pastSnapshots.verdict == Absent,
		host:     at.host,
	}
}
