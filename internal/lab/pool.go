// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// PoolSpec is a storage pool as it should be.
type PoolSpec struct {
	Name, Driver, Description string
	// Size is that of the loop file, in LXD's form; empty leaves it to the daemon.
	Size string
	// Source is a block device, directory or volume group; empty means a loop file of the daemon's own.
	Source string
	Config map[string]string
	// Members gives source and size for each member of a cluster; empty on a daemon that stands alone.
	Members map[string]PoolMember
}

// PoolMember is what a storage pool has of its own on one member of a cluster.
type PoolMember struct{ Source, Size string }

// Pool is a storage pool as the daemon has it.
type Pool struct {
	Name, Driver, Description string
	// Size is the declared size of the loop file, in LXD's form; empty for other sources.
	Size string
	// Source is what the pool was made from; empty when the daemon made a loop file.
	Source string
	Config map[string]string
	// Proof is the recorded proof of what the pool can do; nil when there is none.
	Proof *capability.Proof
}

// PoolTimings are how long the steps of making a pool took, in milliseconds.
type PoolTimings struct{ CreateMS, VerifyMS int64 }

// Ask is a specification in the words of package capability; update says that the pool is there already.
func (s PoolSpec) Ask(update bool) capability.PoolAsk {
	ask := capability.PoolAsk{Name: s.Name, Driver: s.Driver, SizeBytes: bytesOf(s.Size), Source: s.Source, Config: s.Config, Update: update}
	if len(s.Members) > 0 {
		ask.Members = map[string]capability.PoolPart{}
		for name, member := range s.Members {
			ask.Members[name] = capability.PoolPart{SizeBytes: bytesOf(member.Size), Source: member.Source}
		}
	}
	return ask
}

// onSource says that the pool, or a part of it, is on something of the user's.
func (s PoolSpec) onSource() bool {
	for _, member := range s.Members {
		if member.Source != "" {
			return true
		}
	}
	return s.Source != ""
}

// CreatePool makes a storage pool and proves that it is copy-on-write. A pool on a loop file that fails the proof is
// removed again; one on a source of the user's stays as it is, and is returned beside the error.
func (l *Lab) CreatePool(ctx context.Context, spec PoolSpec) (*Pool, PoolTimings, error) {
	timings := PoolTimings{}
	if err := l.checker.AdmitPool(ctx, spec.Ask(false)); err != nil {
		return nil, timings, err
	}
	start := time.Now()
	id := uuid.NewString()
	if begun, err := l.createPool(ctx, spec, id); err != nil {
		made := l.poolMadeAnyway(ctx, spec, id)
		if begun && (made == nil || !outcomeOpen(err)) {
			return nil, timings, errors.Join(err, l.removeMade(ctx, spec.Name))
		}
		return made, timings, err
	}
	timings.CreateMS = since(start)
	l.checker.Forget()

	start = time.Now()
	proof, _, err := l.checker.EnsureProof(ctx, spec.Name)
	timings.VerifyMS = since(start)
	if err == nil {
		pool, err := l.Pool(ctx, spec.Name, spec.Config)
		if pool != nil {
			pool.Proof = proof
		}
		return pool, timings, err
	}
	if _, refused := errors.AsType[*capability.Refusal](err); refused && !spec.onSource() {
		return nil, timings, errors.Join(err, l.removeMade(ctx, spec.Name))
	}
	return &Pool{Name: spec.Name, Driver: spec.Driver, Description: spec.Description, Size: spec.Size, Source: spec.Source, Config: spec.Config}, timings, err
}

// createPool asks the daemon for the pool: once, or on a cluster for each member first. When it fails, begun says that
// parts of it are there, which nobody else made.
func (l *Lab) createPool(ctx context.Context, spec PoolSpec, id string) (begun bool, err error) {
	post := api.StoragePoolsPost{Name: spec.Name, Driver: spec.Driver}
	for _, member := range slices.Sorted(maps.Keys(spec.Members)) {
		post.Config = map[string]string{}
		setOrDelete(post.Config, "source", spec.Members[member].Source)
		setOrDelete(post.Config, "size", spec.Members[member].Size)
		if err := l.daemon.OnMember(member).CreatePool(ctx, post); err != nil {
			return begun, fmt.Errorf("on member %q: %w", member, err)
		}
		begun = true
	}
	post.Config = maps.Clone(spec.Config)
	if post.Config == nil {
		post.Config = map[string]string{}
	}
	if len(spec.Members) == 0 {
		setOrDelete(post.Config, "size", spec.Size)
		setOrDelete(post.Config, "source", spec.Source)
	}
	post.Config[keyID] = id
	post.Description = spec.Description
	return begun, l.daemon.CreatePool(ctx, post)
}

// poolMadeAnyway finds a pool whose creation seemed to fail, by the id that we gave it.
func (l *Lab) poolMadeAnyway(ctx context.Context, spec PoolSpec, id string) *Pool {
	ctx, cancel := detached(ctx)
	defer cancel()
	live, _, err := l.daemon.Pool(ctx, spec.Name)
	if err != nil || live.Config[keyID] != id {
		return nil
	}
	return poolOf(live, spec.Config)
}

// removeMade deletes a pool that we have just made, or parts of it, and that does not do.
func (l *Lab) removeMade(ctx context.Context, name string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := l.daemon.DeletePool(ctx, name); err != nil {
		return fmt.Errorf("and what was made of the pool could not be removed again; remove it with `lxc storage delete %s`: %w", name, err)
	}
	l.checker.Forget()
	return nil
}

// Pool reads a storage pool. The declared configuration says which keys the owner wants to see beyond those that
// somebody set.
func (l *Lab) Pool(ctx context.Context, name string, declared map[string]string) (*Pool, error) {
	live, _, err := l.daemon.Pool(ctx, name)
	if err != nil {
		return nil, err
	}
	return poolOf(live, declared), nil
}

// daemonPoolKeys are configuration keys that the daemon fills in by itself, or that are arguments of their own.
var daemonPoolKeys = []string{"source", "size", "zfs.pool_name", "lvm.vg_name", "lvm.thinpool_name", "ceph.osd.pool_name", "ceph.cluster_name", "ceph.user.name"}

func poolOf(live *api.StoragePool, declared map[string]string) *Pool {
	pool := &Pool{
		Name: live.Name, Driver: live.Driver, Description: live.Description,
		Size:   live.Config["size"],
		Source: live.Config["volatile.initial_source"],
		Config: shown(live.Config, declared, func(key string) bool {
			return internalKey(key) || slices.Contains(daemonPoolKeys, key)
		}),
		Proof: capability.RecordedProof(live.Config),
	}
	if strings.HasSuffix(pool.Source, "/disks/"+live.Name+".img") {
		pool.Source = "" // the daemon's own loop file
	}
	return pool
}

// UpdatePool changes description, size and configuration in place, and proves the pool anew when that changed what
// it is made of. It returns the pool and, when it was proved, how long that took in milliseconds (otherwise 0).
func (l *Lab) UpdatePool(ctx context.Context, before, now PoolSpec) (*Pool, int64, error) {
	if err := l.checker.AdmitPool(ctx, now.Ask(true)); err != nil {
		return nil, 0, err
	}
	live, etag, err := l.daemon.Pool(ctx, now.Name)
	if err != nil {
		return nil, 0, err
	}
	put := live.Writable()
	put.Description = now.Description
	put.Config = replaced(live.Config, before.Config, now.Config)
	if now.Size != "" && len(now.Members) == 0 {
		put.Config["size"] = now.Size
	}
	if err := l.daemon.ReplacePool(ctx, now.Name, put, etag); err != nil {
		return nil, 0, err
	}
	l.checker.Forget()

	start := time.Now()
	_, fresh, err := l.checker.EnsureProof(ctx, now.Name)
	if err != nil {
		return nil, 0, err
	}
	verifyMS := int64(0)
	if fresh {
		verifyMS = since(start)
	}
	pool, err := l.Pool(ctx, now.Name, now.Config)
	return pool, verifyMS, err
}

// DeletePool removes a storage pool; one that is gone already is no error. A pool in use is an error that lists by what.
func (l *Lab) DeletePool(ctx context.Context, name string) error {
	defer l.checker.Forget()
	look := func() (*api.StoragePool, error) {
		live, _, err := l.daemon.Pool(ctx, name)
		return live, err
	}
	return deletedUnused(l.daemon.DeletePool(ctx, name), look, func(live *api.StoragePool) []string { return live.UsedBy })
}
