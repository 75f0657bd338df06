// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/canonical/lxd/shared/api"
)

// Instance reads an instance and its ETag.
func (d *Daemon) Instance(ctx context.Context, name string) (*api.Instance, string, error) {
	instance, etag, err := d.client(ctx).GetInstance(name)
	return instance, etag, classify(fmt.Sprintf("read machine %q", name), err)
}

// Instances lists the instances of the project.
func (d *Daemon) Instances(ctx context.Context) ([]api.Instance, error) {
	return list(ctx, "list machines", func() ([]api.Instance, error) { return d.client(ctx).GetInstances(api.InstanceTypeAny) })
}

// AllInstances lists the instances of all projects, or of this one only where the client may see no other.
func (d *Daemon) AllInstances(ctx context.Context) ([]api.Instance, error) {
	instances, err := list(ctx, "list the machines of all projects", func() ([]api.Instance, error) {
		return d.client(ctx).GetInstancesAllProjects(api.InstanceTypeAny)
	})
	if errors.Is(err, ErrRefused) {
		return d.Instances(ctx)
	}
	return instances, err
}

// InstanceState reads the live state of an instance: power, processes, addresses.
func (d *Daemon) InstanceState(ctx context.Context, name string) (*api.InstanceState, error) {
	state, _, err := d.client(ctx).GetInstanceState(name)
	return state, classify(fmt.Sprintf("read the state of machine %q", name), err)
}

// CreateInstance makes an instance, from an image, as a copy, or empty, as its source says. It does not start it.
func (d *Daemon) CreateInstance(ctx context.Context, instance api.InstancesPost) error {
	return d.change(ctx, fmt.Sprintf("create machine %q", instance.Name), http.MethodPost, d.path("instances"), instance, "")
}

// PatchInstance changes the given parts of an instance and leaves all others; an empty configuration value removes its key.
func (d *Daemon) PatchInstance(ctx context.Context, name string, patch map[string]any) error {
	return d.change(ctx, fmt.Sprintf("update machine %q", name), http.MethodPatch, d.path("instances", name), patch, "")
}

// ReplaceInstance writes the whole of an instance, if nobody changed it since the etag was read; an empty etag writes
// in any case. The configuration must hold the volatile keys that were read.
func (d *Daemon) ReplaceInstance(ctx context.Context, name string, instance api.InstancePut, etag string) error {
	return d.change(ctx, fmt.Sprintf("update machine %q", name), http.MethodPut, d.path("instances", name), instance, etag)
}

// RestoreInstance puts an instance back to one of its snapshots. The daemon stops a running machine by force, puts
// back disk and configuration, and starts it again.
func (d *Daemon) RestoreInstance(ctx context.Context, name, snapshot string, stateful bool) error {
	restore := map[string]any{"restore": snapshot, "stateful": stateful}
	return d.change(ctx, fmt.Sprintf("restore machine %q to snapshot %q", name, snapshot), http.MethodPut, d.path("instances", name), restore, "")
}

// SetInstanceState starts, stops, freezes or unfreezes an instance.
func (d *Daemon) SetInstanceState(ctx context.Context, name string, state api.InstanceStatePut) error {
	return d.change(ctx, fmt.Sprintf("%s machine %q", state.Action, name), http.MethodPut, d.path("instances", name, "state"), state, "")
}

// DeleteInstance removes a stopped instance and its snapshots.
func (d *Daemon) DeleteInstance(ctx context.Context, name string) error {
	return d.change(ctx, fmt.Sprintf("delete machine %q", name), http.MethodDelete, d.path("instances", name), nil, "")
}

// Snapshot reads one snapshot of an instance.
func (d *Daemon) Snapshot(ctx context.Context, instance, name string) (*api.InstanceSnapshot, error) {
	snapshot, _, err := d.client(ctx).GetInstanceSnapshot(instance, name)
	return snapshot, classify(fmt.Sprintf("read snapshot %q of machine %q", name, instance), err)
}

// Snapshots lists the snapshots of an instance, oldest first.
func (d *Daemon) Snapshots(ctx context.Context, instance string) ([]api.InstanceSnapshot, error) {
	snapshots, err := d.client(ctx).GetInstanceSnapshots(instance)
	return snapshots, classify(fmt.Sprintf("list the snapshots of machine %q", instance), err)
}

// CreateSnapshot takes a snapshot. A snapshot without expiry must send the zero time: nothing at all means whatever
// snapshots.expiry says.
func (d *Daemon) CreateSnapshot(ctx context.Context, instance string, snapshot api.InstanceSnapshotsPost) error {
	ask := fmt.Sprintf("take snapshot %q of machine %q", snapshot.Name, instance)
	return d.change(ctx, ask, http.MethodPost, d.path("instances", instance, "snapshots"), snapshot, "")
}

// UpdateSnapshot changes the expiry of a snapshot, the only thing about it that can change.
func (d *Daemon) UpdateSnapshot(ctx context.Context, instance, name string, snapshot api.InstanceSnapshotPut) error {
	ask := fmt.Sprintf("update snapshot %q of machine %q", name, instance)
	return d.change(ctx, ask, http.MethodPut, d.path("instances", instance, "snapshots", name), snapshot, "")
}

// DeleteSnapshot removes a snapshot.
func (d *Daemon) DeleteSnapshot(ctx context.Context, instance, name string) error {
	ask := fmt.Sprintf("delete snapshot %q of machine %q", name, instance)
	return d.change(ctx, ask, http.MethodDelete, d.path("instances", instance, "snapshots", name), nil, "")
}

// Profiles lists the profiles of the project.
func (d *Daemon) Profiles(ctx context.Context) ([]api.Profile, error) {
	return list(ctx, "list profiles", d.client(ctx).GetProfiles)
}
