// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"fmt"
	"net/http"

	"github.com/canonical/lxd/shared/api"
)

// Pools lists the daemon's storage pools.
func (d *Daemon) Pools(ctx context.Context) ([]api.StoragePool, error) {
	return list(ctx, "list storage pools", d.client(ctx).GetStoragePools)
}

// Pool reads a storage pool and its ETag. On a cluster the configuration of one member is only shown through
// [Daemon.OnMember].
func (d *Daemon) Pool(ctx context.Context, name string) (*api.StoragePool, string, error) {
	pool, etag, err := d.memberClient(ctx).GetStoragePool(name)
	return pool, etag, classify(fmt.Sprintf("read storage pool %q", name), err)
}

// PoolResources reads the space and inodes of a pool, in bytes; both are those of the whole file system below it.
func (d *Daemon) PoolResources(ctx context.Context, name string) (*api.ResourcesStoragePool, error) {
	resources, err := d.memberClient(ctx).GetStoragePoolResources(name)
	return resources, classify(fmt.Sprintf("read the space of storage pool %q", name), err)
}

// CreatePool makes a storage pool.
func (d *Daemon) CreatePool(ctx context.Context, pool api.StoragePoolsPost) error {
	return d.change(ctx, fmt.Sprintf("create storage pool %q", pool.Name), http.MethodPost, d.path("storage-pools"), pool, "")
}

// PatchPool changes the given configuration keys and the description of a pool, and leaves all others.
func (d *Daemon) PatchPool(ctx context.Context, name string, pool api.StoragePoolPut) error {
	return d.change(ctx, fmt.Sprintf("update storage pool %q", name), http.MethodPatch, d.path("storage-pools", name), pool, "")
}

// ReplacePool writes the whole configuration of a pool; with an etag only if nobody changed it since.
func (d *Daemon) ReplacePool(ctx context.Context, name string, pool api.StoragePoolPut, etag string) error {
	return d.change(ctx, fmt.Sprintf("update storage pool %q", name), http.MethodPut, d.path("storage-pools", name), pool, etag)
}

// DeletePool removes a pool and, on most drivers, everything on its source.
func (d *Daemon) DeletePool(ctx context.Context, name string) error {
	return besideDeletions(ctx, func() error {
		return d.change(ctx, fmt.Sprintf("delete storage pool %q", name), http.MethodDelete, d.path("storage-pools", name), nil, "")
	})
}

// Resources reads the host's processors, memory and disks.
func (d *Daemon) Resources(ctx context.Context) (*api.Resources, error) {
	resources, err := d.client(ctx).GetServerResources()
	return resources, classify("read the host's resources", err)
}

// Warnings lists what the daemon itself found wrong, in all projects: most of it is the host's and belongs to none,
// and a request that names a project would not be told of it.
func (d *Daemon) Warnings(ctx context.Context) ([]api.Warning, error) {
	warnings, err := bind(ctx, d.server.UseProject("")).GetWarnings()
	return warnings, classify("list the daemon's warnings", err)
}

// Members lists the members of the cluster; it is empty for a daemon that stands alone.
func (d *Daemon) Members(ctx context.Context) ([]api.ClusterMember, error) {
	if !d.info.Environment.ServerClustered {
		return nil, nil
	}
	members, err := d.client(ctx).GetClusterMembers()
	return members, classify("list cluster members", err)
}
