// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// captureTimeout bounds the wait for a capture that we no longer want: the daemon cannot call it off, and until it has
// ended the guest is paused and nobody can tell what will be left.
const captureTimeout = 5 * time.Minute

// createCheckpoint takes a snapshot with the memory, for which the daemon pauses the guest. When that fails the machine
// runs again and nothing is left, or the error says what is.
func (l *Lab) createCheckpoint(ctx context.Context, spec SnapshotSpec, live *api.Instance, post api.InstanceSnapshotsPost) (*Snapshot, int64, error) {
	// The daemon would pause the guest, and only then find that the name is taken.
	_, err := l.daemon.Snapshot(ctx, spec.Machine.Name, spec.Name)
	if err == nil {
		return nil, 0, &lxd.Error{
			Ask:  fmt.Sprintf("take snapshot %q of machine %q", spec.Name, spec.Machine.Name),
			Kind: lxd.ErrExists, Err: errors.New("the machine has a snapshot of this name already"),
		}
	}
	if !errors.Is(err, lxd.ErrNotFound) {
		return nil, 0, err
	}
	start := time.Now()
	if err := l.daemon.CreateSnapshot(ctx, spec.Machine.Name, post); err != nil {
		made, err := l.captureFailed(ctx, spec, err)
		return made, 0, err
	}
	took := since(start)
	made, err := l.daemon.Snapshot(ctx, spec.Machine.Name, spec.Name)
	if err != nil {
		return nil, took, err
	}
	snapshot := snapshotOf(spec.Machine, made)
	snapshot.StateBytes = l.stateBytes(ctx, spec, live, made)
	return snapshot, took, nil
}

// captureFailed tidies up after a capture that failed or that nobody waits for any more. A snapshot that is there in
// spite of that, and whole, is given beside the error.
func (l *Lab) captureFailed(ctx context.Context, spec SnapshotSpec, cause error) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), captureTimeout)
	defer cancel()
	name := spec.Machine.Name
	if err := l.daemon.Idle(ctx, name); err != nil {
		return nil, fmt.Errorf("%w; the daemon may still be at it: machine %q is paused until that has ended, and snapshot %q may be there then (%w)",
			cause, name, spec.Name, err)
	}
	resumed, stands := l.resume(ctx, name)
	made, err := l.daemon.Snapshot(ctx, name, spec.Name)
	left := "nothing is left of the snapshot"
	switch {
	case errors.Is(err, lxd.ErrNotFound):
	case err != nil:
		left = fmt.Sprintf("whether something is left of snapshot %q is not known (%v)", spec.Name, err)
	case outcomeOpen(cause) && !resumed:
		// The guest went on by itself, so the daemon had got to the end.
		return snapshotOf(spec.Machine, made), cause
	default:
		if err := l.daemon.DeleteSnapshot(ctx, name, spec.Name); err != nil && !errors.Is(err, lxd.ErrNotFound) {
			left = fmt.Sprintf("a leftover of snapshot %q could not be removed (%v): remove it with `lxc delete %s/%s`", spec.Name, err, name, spec.Name)
		}
	}
	return nil, fmt.Errorf("%w; %s, and %s", cause, stands, left)
}

// resume lets a guest go on that a failed capture left paused, which LXD 5.0 shows as stopped. It says whether that was
// so, and in words where the machine stands.
func (l *Lab) resume(ctx context.Context, name string) (resumed bool, stands string) {
	live, _, err := l.daemon.Instance(ctx, name)
	if err == nil && (live.StatusCode == api.Frozen || live.StatusCode == api.Stopped) {
		resumed = true
		// Of one that has really stopped the daemon says so; the next look shows it, too.
		_ = l.unfreeze(ctx, name)
		live, _, err = l.daemon.Instance(ctx, name)
	}
	switch {
	case err != nil:
		return resumed, fmt.Sprintf("whether machine %q runs is not known (%v)", name, err)
	case live.StatusCode != api.Stopped && live.StatusCode != api.Frozen && live.StatusCode != api.Error:
		return resumed, fmt.Sprintf("machine %q is running", name)
	default:
		return resumed, fmt.Sprintf("machine %q is %s, and did not go on when it was told to (see `lxc info --show-log %s`)", name, strings.ToLower(live.Status), name)
	}
}

// leastState is what the memory of a guest takes at the least, in bytes. Less is the size of a snapshot that the file
// system has not counted yet.
const leastState = mebibyte

// stateBytes is how much a snapshot alone holds; 0 when that cannot be told. On btrfs and zfs the file system counts what
// the memory takes only when it next writes its tree, up to half a minute later, or when a volume is made.
func (l *Lab) stateBytes(ctx context.Context, spec SnapshotSpec, live *api.Instance, made *api.InstanceSnapshot) int64 {
	if made.Size >= 0 && made.Size < leastState {
		if err := l.makeCount(ctx, spec, machineOf(live, nil).Pool, live.Location); err != nil {
			return 0
		}
		again, err := l.daemon.Snapshot(ctx, spec.Machine.Name, spec.Name)
		if err != nil {
			return 0
		}
		made = again
	}
	if made.Size < leastState {
		return 0
	}
	return made.Size
}

// makeCount makes and removes an empty machine on a pool, so that the file system brings its count of space up to date.
func (l *Lab) makeCount(ctx context.Context, spec SnapshotSpec, pool, member string) (err error) {
	name := momentaryName("count", spec.Machine.String(), spec.Name)
	if err := l.discard(ctx, name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove(ctx, name)) }()
	daemon := l.daemon
	if member != "none" {
		daemon = daemon.OnMember(member)
	}
	id := uuid.NewString()
	post := api.InstancesPost{Name: name, Type: api.InstanceTypeContainer, Source: api.InstanceSource{Type: api.SourceTypeNone}}
	post.Description = "What makes a pool count its space. It goes at once."
	post.Profiles = []string{}
	post.Config = map[string]string{keyUUID: id, keyID: id}
	post.Devices = map[string]map[string]string{rootName: rootDevice(pool, "")}
	return daemon.CreateInstance(ctx, post)
}
