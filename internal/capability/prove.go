// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ProvePool probes a pool now: it makes a small container there, snapshots, branches and restores it, measures time
// and space, and removes it again, also when it fails or is interrupted. On a cluster it does so on each member that
// answers. The error is a [Refusal] when the pool is not copy-on-write for each of the three, or when that could not be
// told; the proof with its figures is then returned beside it.
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
	var first *Proof
	for _, at := range facts.sites() {
		proof, err := c.probe(ctx, facts, at, name)
		if err != nil {
			return proof, err
		}
		first = cmp.Or(first, proof)
	}
	return first, nil
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
	pool, err := c.rereadPool(ctx, name)
	if err != nil {
		return nil, false, err
	}
	var first *Proof
	for _, at := range facts.sites() {
		proof := at.proofOf(pool)
		if proof == nil {
			fresh = true
			if proof, err = c.probe(ctx, facts, at, name); err != nil {
				return proof, fresh, err
			}
			if err := c.record(ctx, at, name, proof); err != nil {
				return proof, fresh, err
			}
		}
		first = cmp.Or(first, proof)
	}
	return first, fresh, nil
}

// probe proves a pool, whose lock is held, at one site.
func (c *Checker) probe(ctx context.Context, facts *Facts, at site, name string) (*Proof, error) {
	pool, ok := facts.present[name]
	if !ok {
		return nil, facts.refuseMissing(fmt.Sprintf("a proof of storage pool %q", name), name)
	}
	// What cannot be swept is no reason not to probe; the next run tries again.
	_ = sweep(ctx, c.daemon, name)
	measured, err := c.measurePool(ctx, facts, at, pool, probeSize(pool))
	if err != nil {
		return nil, err
	}
	proof := prove(at, pool, measured)
	var noRoom *Refusal
	// Doubt, and the word of a single witness, is met with more data; a copy that was seen is beyond both.
	if !proof.copies() && (!proof.conclusive() || !measured.metered()) {
		again, err := c.measureAgain(ctx, facts, at, pool, measured)
		refused := errors.As(err, &noRoom)
		if err != nil && !refused {
			return proof, err
		}
		if again == nil {
			return proof, refuseProof(name, proof, noRoom)
		}
		proof = prove(at, pool, again)
	}
	if !proof.CopyOnWrite() {
		return proof, refuseProof(name, proof, noRoom)
	}
	return proof, nil
}

// measureAgain repeats a measurement with more data. Where there is no room for that, which the error says, two witnesses
// are heard once more on the same amount: what disturbed them may be over. It gives nil when nothing was measured.
func (c *Checker) measureAgain(ctx context.Context, facts *Facts, at site, pool PoolFacts, first *measurement) (*measurement, error) {
	again, err := c.measurePool(ctx, facts, at, pool, repeatFactor*first.bytes)
	if noRoom, refused := errors.AsType[*Refusal](err); refused && first.metered() {
		again, err = c.measurePool(ctx, facts, at, pool, first.bytes)
		if err == nil {
			err = noRoom
		}
	}
	return again, err
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
func (c *Checker) measurePool(ctx context.Context, facts *Facts, at site, pool PoolFacts, bytes int64) (*measurement, error) {
	daemon := c.daemon.OnMember(at.member)
	resources, err := daemon.PoolResources(ctx, pool.Name)
	if err != nil {
		return nil, err
	}
	if refusal := facts.refuseSpace(pool, resources.Space, bytes); refusal != nil {
		return nil, refusal
	}
	if len(at.environment.Architectures) == 0 {
		return nil, errors.New("the daemon does not tell its architecture")
	}
	p := newProbe(daemon, at, pool, bytes)
	measured, err := p.run(ctx)
	if err != nil {
		err = fmt.Errorf("probe storage pool %q: %w", pool.Name, err)
	}
	return measured, errors.Join(err, p.clean(ctx))
}

// refuseProof turns a proof that does not do into a refusal. The cause says why a doubt could not be cleared.
func refuseProof(name string, proof *Proof, cause *Refusal) *Refusal {
	where := fmt.Sprintf("storage pool %q", name)
	if proof.Member != "" {
		where += fmt.Sprintf(" on member %q", proof.Member)
	}
	refusal := &Refusal{
		Capability: Pools, Asked: fmt.Sprintf("storage pool %q that copies on write", name),
		Found:    fmt.Sprintf("%s was probed, and what it does is a copy", where),
		Evidence: proof.Evidence(),
		Remedy:   "Use a pool that copies on write: lab_storage_pool makes one, with driver btrfs by default.",
	}
	if !proof.copies() {
		refusal.Found = where + " was probed, and the measurements contradict each other"
		refusal.Remedy = fmt.Sprintf("Try again when the host is less busy: `terraform-provider-lab capability --prove --pool %s`.", name)
	}
	if cause != nil {
		refusal.Evidence = append(refusal.Evidence, "it could not be repeated with more data: "+cause.Error())
	}
	return refusal
}

// rereadPool reads a pool anew, as others may have changed it. One that is not there is left to the probe to tell.
func (c *Checker) rereadPool(ctx context.Context, name string) (PoolFacts, error) {
	live, _, err := c.daemon.Pool(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return PoolFacts{}, nil
	}
	if err != nil {
		return PoolFacts{}, err
	}
	c.notePool(name, live.Config)
	return PoolFacts{Name: name, Driver: live.Driver, Config: live.Config}, nil
}

// record writes a proof into the pool's configuration. A client that may not change pools keeps it for the process.
func (c *Checker) record(ctx context.Context, at site, name string, proof *Proof) error {
	text, err := json.Marshal(proof)
	if err != nil {
		return fmt.Errorf("record the proof of storage pool %q: %w", name, err)
	}
	pool, _, err := c.daemon.Pool(ctx, name)
	if err == nil {
		// The daemon takes an absent description for an empty one.
		err = c.daemon.PatchPool(ctx, name, api.StoragePoolPut{Description: pool.Description, Config: map[string]string{at.key(): string(text)}})
	}
	if err != nil && (pool == nil || !errors.Is(err, lxd.ErrRefused)) {
		return fmt.Errorf("record the proof of storage pool %q: %w", name, err)
	}
	if pool.Config == nil {
		pool.Config = map[string]string{}
	}
	pool.Config[at.key()] = string(text)
	c.notePool(name, pool.Config)
	return nil
}
