// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ProvePool probes a pool now: it makes a small container there, snapshots, branches and restores it, measures time
// and space, and removes it again, also when it fails or is interrupted. The error is a [Refusal] when the pool is not
// copy-on-write for each of the three, or when that could not be told; the proof with its figures is then returned
// beside it.
func (c *Checker) ProvePool(ctx context.Context, name string) (*Proof, error) {
	facts, err := c.factsWithPool(ctx, name)
	if err != nil {
		return nil, err
	}
	unlock, err := lockPool(ctx, c.daemon, name)
	if err != nil {
		return nil, fmt.Errorf("wait for another probe of storage pool %q: %w", name, err)
	}
	defer unlock()
	return c.probe(ctx, facts, name)
}

// EnsureProof gives the proof that is recorded on a pool while it holds, else probes the pool and records the proof.
// Fresh says that it probed. However many ask at once, in this process or in others of this host, the pool is probed
// once. Errors are those of [Checker.ProvePool].
func (c *Checker) EnsureProof(ctx context.Context, name string) (proof *Proof, fresh bool, err error) {
	facts, err := c.factsWithPool(ctx, name)
	if err != nil {
		return nil, false, err
	}
	if proof := facts.proofOf(facts.present[name]); proof != nil {
		return proof, false, nil
	}
	unlock, err := lockPool(ctx, c.daemon, name)
	if err != nil {
		return nil, false, fmt.Errorf("wait for another probe of storage pool %q: %w", name, err)
	}
	defer unlock()
	// Somebody else may have proved it in the meantime.
	if proof, err = c.recorded(ctx, facts, name); proof != nil || err != nil {
		return proof, false, err
	}
	if proof, err = c.probe(ctx, facts, name); err != nil {
		return proof, true, err
	}
	return proof, true, c.record(ctx, name, proof)
}

// probe proves a pool whose lock is held.
func (c *Checker) probe(ctx context.Context, facts *Facts, name string) (*Proof, error) {
	pool, ok := facts.present[name]
	if !ok {
		return nil, facts.refuseMissing(fmt.Sprintf("a proof of storage pool %q", name), name)
	}
	// What cannot be swept is no reason not to probe; the next run tries again.
	_ = sweep(ctx, c.daemon, name)
	measured, err := c.measurePool(ctx, facts, pool, probeSize(pool))
	if err != nil {
		return nil, err
	}
	proof := prove(facts, pool, measured)
	// Doubt, and the word of a single witness, is met with more data.
	if !proof.conclusive() || !measured.metered() {
		measured, err = c.measurePool(ctx, facts, pool, repeatFactor*measured.bytes)
		if refusal, refused := errors.AsType[*Refusal](err); refused {
			return proof, refuseProof(name, proof, refusal)
		}
		if err != nil {
			return proof, err
		}
		proof = prove(facts, pool, measured)
	}
	if !proof.CopyOnWrite() {
		return proof, refuseProof(name, proof, nil)
	}
	return proof, nil
}

// probeSize is how much data to begin with: enough for LVM to show it.
func probeSize(pool PoolFacts) int64 {
	const most = 1 << 30
	if pool.Driver != "lvm" {
		return probeBytes
	}
	return max(probeBytes, min(most, 20*meterResolution(pool)))
}

// measurePool takes one measurement and cleans up after it.
func (c *Checker) measurePool(ctx context.Context, facts *Facts, pool PoolFacts, bytes int64) (*measurement, error) {
	resources, err := c.daemon.PoolResources(ctx, pool.Name)
	if err != nil {
		return nil, err
	}
	if refusal := facts.refuseSpace(pool, resources.Space, bytes); refusal != nil {
		return nil, refusal
	}
	if len(facts.Environment.Architectures) == 0 {
		return nil, errors.New("the daemon does not tell its architecture")
	}
	p := newProbe(c.daemon, newMark(pool.Name), facts.Environment.Architectures[0], pool, bytes)
	p.host = facts.host
	measured, err := p.run(ctx)
	if err != nil {
		err = fmt.Errorf("probe storage pool %q: %w", pool.Name, err)
	}
	return measured, errors.Join(err, p.clean(ctx))
}

// refuseProof turns a proof that does not do into a refusal. The cause says why a doubt could not be cleared.
func refuseProof(name string, proof *Proof, cause *Refusal) *Refusal {
	refusal := &Refusal{
		Capability: Pools, Asked: fmt.Sprintf("storage pool %q that copies on write", name),
		Found:    fmt.Sprintf("storage pool %q was probed, and what it does is a copy", name),
		Evidence: proof.Evidence(),
		Remedy:   "Use a pool that copies on write: lab_storage_pool makes one, with driver btrfs by default.",
	}
	if !proof.conclusive() {
		refusal.Found = fmt.Sprintf("storage pool %q was probed, and the measurements contradict each other", name)
		refusal.Remedy = fmt.Sprintf("Try again when the host is less busy: `terraform-provider-lab capability --prove --pool %s`.", name)
	}
	if cause != nil {
		refusal.Evidence = append(refusal.Evidence, "it could not be repeated with more data: "+cause.Error())
	}
	return refusal
}

// recorded reads a pool anew and gives the proof that is recorded on it and holds, or nil. A pool that is not there is
// left to the probe to tell.
func (c *Checker) recorded(ctx context.Context, facts *Facts, name string) (*Proof, error) {
	live, _, err := c.daemon.Pool(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil, nil //nolint:nilnil // no pool has no proof
	}
	if err != nil {
		return nil, err
	}
	c.notePool(name, live.Config)
	return facts.proofOf(PoolFacts{Name: name, Driver: live.Driver, Config: live.Config}), nil
}

// proofOf gives the recorded proof of a pool that holds, or nil.
func (f *Facts) proofOf(pool PoolFacts) *Proof {
	proof := RecordedProof(pool.Config)
	if proof == nil || !proof.CopyOnWrite() || !proof.holds(f, pool) {
		return nil
	}
	return proof
}

// record writes a proof into the pool's configuration. A client that may not change pools keeps it for the process.
func (c *Checker) record(ctx context.Context, name string, proof *Proof) error {
	text, err := json.Marshal(proof)
	if err != nil {
		return fmt.Errorf("record the proof of storage pool %q: %w", name, err)
	}
	pool, _, err := c.daemon.Pool(ctx, name)
	if err == nil {
		// The daemon takes an absent description for an empty one.
		err = c.daemon.PatchPool(ctx, name, api.StoragePoolPut{Description: pool.Description, Config: map[string]string{proofKey: string(text)}})
	}
	if err != nil && (pool == nil || !errors.Is(err, lxd.ErrRefused)) {
		return fmt.Errorf("record the proof of storage pool %q: %w", name, err)
	}
	if pool.Config == nil {
		pool.Config = map[string]string{}
	}
	pool.Config[proofKey] = string(text)
	c.notePool(name, pool.Config)
	return nil
}
