// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// Checker judges one daemon. Its facts are read once and kept for the process, overlaid with what the plan at hand
// makes. It is safe for concurrent use.
type Checker struct {
	daemon *lxd.Daemon
	// reading admits one reader of facts at a time. It is a channel so that waiting for it obeys a context.
	reading chan struct{}

	mu      sync.Mutex
	facts   *Facts
	forgets int
	planned map[string]PoolFacts
	// machines are those that the plan at hand changes, by their ids.
	machines map[string]PlannedMachine
}

// PlannedMachine is what a plan makes of a machine that is there.
type PlannedMachine struct{ Checkpointable, Running bool }

// New makes a checker for a daemon. It asks nothing yet.
func New(d *lxd.Daemon) *Checker {
	return &Checker{
		daemon:  d,
		reading: make(chan struct{}, 1),
		planned: map[string]PoolFacts{},

		machines: map[string]PlannedMachine{},
	}
}

// enter takes a one-place channel as a lock, or gives up when the context ends.
func enter(ctx context.Context, slot chan struct{}) error {
	select {
	case slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Facts gives what the daemon says of itself, with the pools that the plan makes. It asks the daemon once, and again
// only after [Checker.Forget].
func (c *Checker) Facts(ctx context.Context) (*Facts, error) {
	if err := enter(ctx, c.reading); err != nil {
		return nil, fmt.Errorf("read what the host can do: %w", err)
	}
	defer func() { <-c.reading }()

	facts, forgets := c.cached()
	if facts != nil {
		return facts, nil
	}
	facts, err := readFacts(ctx, c.daemon)
	if err != nil {
		return nil, fmt.Errorf("read what the host can do: %w", err)
	}
	return c.keep(facts, forgets), nil
}

// cached gives the facts that are kept, if any, and how often facts were forgotten.
func (c *Checker) cached() (*Facts, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts == nil {
		return nil, c.forgets
	}
	return c.facts.overlaid(c.planned), c.forgets
}

// keep keeps facts, unless they were out of date before they had arrived.
func (c *Checker) keep(facts *Facts, forgets int) *Facts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgets == forgets {
		c.facts = facts
	}
	return facts.overlaid(c.planned)
}

// Forget drops the facts and what was planned, after a write that may have changed them.
func (c *Checker) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts = nil
	c.forgets++
	clear(c.planned)
	clear(c.machines)
}

// factsWithPool gives facts in which a pool is there. Where they lack it they are read once more: something other than
// this process may have made it since.
func (c *Checker) factsWithPool(ctx context.Context, name string) (*Facts, error) {
	facts, err := c.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := facts.present[name]; ok || name == "" {
		return facts, nil
	}
	c.mu.Lock()
	c.facts = nil
	c.forgets++
	c.mu.Unlock()
	return c.Facts(ctx)
}

// notePool takes over a pool's configuration that was read or written since the facts were read.
func (c *Checker) notePool(name string, config map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts == nil {
		return
	}
	copied := *c.facts
	copied.present = maps.Clone(copied.present)
	pool := copied.present[name]
	pool.Config = config
	copied.present[name] = pool
	copied.Pools = copied.present
	c.facts = &copied
}

// PlanPool notes a pool that the plan at hand makes or changes, so that what stands on it is judged by what it will be.
func (c *Checker) PlanPool(ask PoolAsk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.planned[ask.Name] = PoolFacts{Name: ask.Name, Driver: ask.driver(), Config: maps.Clone(ask.Config), Planned: true}
}

// PlanMachine notes what the plan at hand makes of a machine, so that its snapshots are judged by what it will be.
func (c *Checker) PlanMachine(id string, planned PlannedMachine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[id] = planned
}

// PlannedMachine gives what the plan at hand makes of a machine, if it changes it.
func (c *Checker) PlannedMachine(id string) (planned PlannedMachine, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	planned, ok = c.machines[id]
	return planned, ok
}

// overlaid gives the facts with the planned pools in the place of the present ones.
func (f *Facts) overlaid(planned map[string]PoolFacts) *Facts {
	if len(planned) == 0 {
		return f
	}
	copied := *f
	copied.Pools = maps.Clone(f.present)
	for name, pool := range planned {
		present := f.present[name]
		pool.Status, pool.TotalBytes, pool.FreeBytes = present.Status, present.TotalBytes, present.FreeBytes
		copied.Pools[name] = pool
	}
	return &copied
}
