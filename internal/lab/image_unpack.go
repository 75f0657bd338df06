// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
)

// unpack makes the daemon unpack an image on pools, so that the first machine there does not have to wait for it. The
// API has no call for that; a machine that is created and deleted again, without ever being started, does it.
func (l *Lab) unpack(ctx context.Context, fingerprint string, pools []string) error {
	for _, pool := range pools {
		if err := l.unpackOn(ctx, fingerprint, pool); err != nil {
			return argumentErrorf("pools", "unpack the image on pool %q: %w", pool, err)
		}
	}
	return nil
}

func (l *Lab) unpackOn(ctx context.Context, fingerprint, pool string) (err error) {
	unpacked, err := l.daemon.ImageUnpacked(ctx, pool, fingerprint)
	if err != nil || unpacked {
		return err
	}
	image, _, err := l.daemon.Image(ctx, fingerprint)
	if err != nil {
		return err
	}
	name := momentaryName("unpack", fingerprint, pool)
	unlock, err := l.daemon.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.discard(ctx, name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.remove(ctx, name)) }()
	post := api.InstancesPost{Name: name, Type: api.InstanceType(image.Type)}
	post.Source = api.InstanceSource{Type: api.SourceTypeImage, Fingerprint: fingerprint}
	post.Description = "What an image is being unpacked by. It goes when that is done."
	post.Profiles = []string{}
	id := uuid.NewString()
	post.Config = map[string]string{keyUUID: id, keyID: id}
	post.Devices = map[string]map[string]string{rootName: rootDevice(pool, "")}
	return l.daemon.CreateInstance(ctx, post)
}
