// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// parallelReads bounds the reads that are under way at once.
const parallelReads = 4

// Facts are what a daemon says of itself and its host. They are read only, and shared: do not change them.
type Facts struct {
	// Environment is the daemon's version, kernel, drivers and so on.
	Environment api.ServerEnvironment
	// Pools are the storage pools, by name: those that are there, and those that the plan at hand makes.
	Pools map[string]PoolFacts
	// Warnings are what the daemon itself found wrong and nobody has acknowledged.
	Warnings []api.Warning
	// Resources are the host's processors and memory; nil where the daemon does not tell.
	Resources *api.Resources
	// Profiles are those of the project; nil where the daemon does not tell.
	Profiles []api.Profile
	// Members are the members of the cluster; empty for a daemon that stands alone.
	Members []MemberFacts
	// Untold lists what this client could not learn, and the daemon's words for why.
	Untold []string

	// present are the pools that are there.
	present map[string]PoolFacts
	host    *host
}

// PoolFacts are what the daemon says of one storage pool.
type PoolFacts struct {
	// Name is the pool's name.
	Name string
	// Driver is the storage driver.
	Driver string
	// Status is the daemon's word for its state, such as "Created".
	Status string
	// Config is its configuration.
	Config map[string]string
	// TotalBytes and FreeBytes are those of the file system below the pool; 0 when unknown.
	TotalBytes, FreeBytes int64
	// Planned says that the pool, or this configuration of it, exists only in the plan so far.
	Planned bool
}

// readFacts asks the daemon: five requests at most, and one for each pool and each member. What a member of a cluster
// says of itself is among what the members say.
func readFacts(ctx context.Context, d *lxd.Daemon) (*Facts, error) {
	facts := &Facts{present: map[string]PoolFacts{}}
	var untold [4]error
	var pools []api.StoragePool
	var members []api.ClusterMember
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	self := d.Server().Environment
	if !self.ServerClustered {
		group.Go(func() error { return facts.readEnvironment(groupCtx, d) })
	}
	group.Go(func() (err error) {
		pools, err = d.Pools(groupCtx)
		return err
	})
	// The rest needs rights that a restricted client may lack; what it cannot learn is unproven, and no error.
	group.Go(func() error { facts.Warnings, untold[0] = d.Warnings(groupCtx); return nil })
	group.Go(func() error { facts.Resources, untold[1] = d.Resources(groupCtx); return nil })
	group.Go(func() error { members, untold[2] = d.Members(groupCtx); return nil })
	group.Go(func() error { facts.Profiles, untold[3] = d.Profiles(groupCtx); return nil })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, err := range untold {
		if err != nil {
			facts.Untold = append(facts.Untold, err.Error())
		}
	}
	facts.Warnings = slices.DeleteFunc(facts.Warnings, func(w api.Warning) bool { return w.Status != "new" })
	facts.Members = readMembers(ctx, d, members)
	if self.ServerClustered && !facts.takeEnvironment(self.ServerName) {
		if err := facts.readEnvironment(ctx, d); err != nil {
			return nil, err
		}
	}
	facts.host = lookAtHost(d.Address(), facts.Environment)
	if err := facts.readPools(ctx, d, pools); err != nil {
		return nil, err
	}
	return facts, ctx.Err()
}

// readEnvironment asks the daemon what it is.
func (f *Facts) readEnvironment(ctx context.Context, d *lxd.Daemon) error {
	server, err := d.Refresh(ctx)
	if err == nil {
		f.Environment = server.Environment
	}
	return err
}

// takeEnvironment takes over what a member of the cluster has said of itself, if it has.
func (f *Facts) takeEnvironment(member string) bool {
	at := slices.IndexFunc(f.Members, func(m MemberFacts) bool { return m.Name == member && m.Environment != nil })
	if at < 0 {
		return false
	}
	f.Environment = *f.Members[at].Environment
	return true
}

// readPools adds the space of each pool. One that does not tell (not mounted, or no right to know) stays without.
func (f *Facts) readPools(ctx context.Context, d *lxd.Daemon, pools []api.StoragePool) error {
	read := make([]PoolFacts, len(pools))
	var group errgroup.Group
	group.SetLimit(parallelReads)
	for i, pool := range pools {
		read[i] = PoolFacts{Name: pool.Name, Driver: pool.Driver, Status: pool.Status, Config: pool.Config}
		group.Go(func() error {
			resources, err := d.PoolResources(ctx, pool.Name)
			if err == nil {
				read[i].TotalBytes = int64(resources.Space.Total)                                                   //nolint:gosec // bytes of a file system
				read[i].FreeBytes = int64(resources.Space.Total - min(resources.Space.Used, resources.Space.Total)) //nolint:gosec // as above
			}
			return nil
		})
	}
	_ = group.Wait() // none of them returns an error
	for _, pool := range read {
		f.present[pool.Name] = pool
	}
	f.Pools = f.present
	return ctx.Err()
}

// drivers lists the storage drivers that the daemon offers, in order.
func (f *Facts) drivers() []string { return driversOf(&f.Environment) }

// instanceTypes lists the types of machines that the daemon can run ("container", "virtual-machine").
func (f *Facts) instanceTypes() []api.InstanceType {
	var types []api.InstanceType
	for driver := range strings.SplitSeq(f.Environment.Driver, "|") {
		switch strings.TrimSpace(driver) {
		case "lxc":
			types = append(types, api.InstanceTypeContainer)
		case "qemu":
			types = append(types, api.InstanceTypeVM)
		}
	}
	return types
}

// notOperational gives the daemon's own words for why it cannot run a type of machines; empty when it has none.
func (f *Facts) notOperational() []string {
	var words []string
	for _, warning := range f.Warnings {
		if warning.Type == "Instance type not operational" {
			words = append(words, fmt.Sprintf("the daemon's warning: %s: %s", warning.Type, warning.LastMessage))
		}
	}
	return words
}

// sortedPools gives the pools by name.
func (f *Facts) sortedPools() []PoolFacts {
	return slices.SortedFunc(maps.Values(f.Pools), func(a, b PoolFacts) int { return cmp.Compare(a.Name, b.Name) })
}
