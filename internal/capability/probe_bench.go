// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const (
	// stepTimeout bounds one operation of a probe, beyond the caller's context: one that has begun is waited for, as
	// the daemon cannot cancel it and it must have ended before it can be undone.
	stepTimeout = 2 * time.Minute
	// cleanTimeout bounds the removal of what a probe made.
	cleanTimeout = 2 * time.Minute
)

// bench is the throw-away objects of a probe: an image of next to nothing, a container made of it, its snapshots, and
// branches. What it makes it remembers, and removes in [bench.clean].
type bench struct {
	daemon       *lxd.Daemon
	mark         mark
	architecture string
	// diskSize is that of the machines' root disks, in LXD's form; empty leaves it to the daemon.
	diskSize string

	// started says that the machine may be running.
	machine, started bool
	fingerprint      string
	branches         []string
	// newest is the newest snapshot, and files is how many files of data there are.
	newest string
	files  int
}

// step does one thing that cannot be cancelled, unless the context has ended already.
func step(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	return do(bounded)
}

// makeMachine makes the image and the container, which stays stopped.
func (b *bench) makeMachine(ctx context.Context, pool string) error {
	image, err := probeImage(b.architecture, b.mark.String())
	if err != nil {
		return fmt.Errorf("make an image to probe with: %w", err)
	}
	b.fingerprint = fingerprintOf(image)
	err = step(ctx, func(ctx context.Context) error {
		_, err := b.daemon.UploadImage(ctx, lxd.ImageUpload{Metadata: bytes.NewReader(image)})
		return err
	})
	if err != nil {
		return err
	}
	return b.create(ctx, api.InstancesPost{
		Type:        api.InstanceTypeContainer,
		Source:      api.InstanceSource{Type: api.SourceTypeImage, Fingerprint: b.fingerprint},
		InstancePut: b.put(pool),
	})
}

// create makes the bench's machine.
func (b *bench) create(ctx context.Context, post api.InstancesPost) error {
	b.machine, post.Name = true, b.mark.name()
	return step(ctx, func(ctx context.Context) error { return b.daemon.CreateInstance(ctx, post) })
}

// start starts the machine.
func (b *bench) start(ctx context.Context) error {
	b.started = true
	return step(ctx, func(ctx context.Context) error {
		return b.daemon.SetInstanceState(ctx, b.mark.name(), api.InstanceStatePut{Action: "start", Timeout: -1})
	})
}

// put is what the probe's machines have in common: no profile, no network, a root disk in the pool, and the mark.
func (b *bench) put(pool string) api.InstancePut {
	root := map[string]string{"type": "disk", "path": "/", "pool": pool}
	if b.diskSize != "" {
		root["size"] = b.diskSize
	}
	return api.InstancePut{
		Architecture: b.architecture,
		Description:  "Throw-away machine of a capability probe",
		Config:       b.mark.config(),
		Profiles:     []string{},
		Devices:      map[string]map[string]string{"root": root},
	}
}

// snapshot takes one that never expires.
func (b *bench) snapshot(ctx context.Context, name string) error {
	b.newest = name
	return step(ctx, func(ctx context.Context) error {
		return b.daemon.CreateSnapshot(ctx, b.mark.name(), api.InstanceSnapshotsPost{Name: name, ExpiresAt: &time.Time{}})
	})
}

// branch makes a machine from a snapshot.
func (b *bench) branch(ctx context.Context, pool, snapshot string) error {
	name := fmt.Sprintf("%s-%d", b.mark.name(), len(b.branches))
	b.branches = append(b.branches, name)
	return step(ctx, func(ctx context.Context) error {
		return b.daemon.CreateInstance(ctx, api.InstancesPost{
			Name: name, Type: api.InstanceTypeContainer,
			Source:      api.InstanceSource{Type: api.SourceTypeCopy, Source: b.mark.name() + "/" + snapshot, InstanceOnly: true},
			InstancePut: b.put(pool),
		})
	})
}

func (b *bench) restore(ctx context.Context, snapshot string) error {
	return step(ctx, func(ctx context.Context) error {
		return b.daemon.RestoreInstance(ctx, b.mark.name(), snapshot, false)
	})
}

// push writes a file of data. It may be interrupted: what it leaves goes with the machine.
func (b *bench) push(ctx context.Context, number int, content []byte) error {
	return b.daemon.PushFile(ctx, b.mark.name(), lxd.File{Path: fmt.Sprintf("/data-%d", number), Content: content, Mode: 0o600})
}

// clean removes what the bench made. It takes no notice of the caller's context, which may have ended, but has a
// time limit of its own.
func (b *bench) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	left := leftovers{mark: b.mark, branches: b.branches, fingerprint: b.fingerprint}
	if b.machine {
		left.machines = []string{b.mark.name()}
	}
	if b.started {
		left.running = left.machines
	}
	return left.remove(ctx, b.daemon)
}

// random gives data that cannot be compressed.
type random struct{ source *rand.ChaCha8 }

func newRandom() random {
	var seed [32]byte
	_, _ = cryptorand.Read(seed[:]) // it never fails
	return random{rand.NewChaCha8(seed)}
}

func (r random) bytes(n int64) []byte {
	data := make([]byte, n)
	_, _ = r.source.Read(data) // it never fails
	return data
}
