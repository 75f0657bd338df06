// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
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

func (l *Lab) unpackOn(ctx context.Context, fingerprint, pool string) error {
	unpacked, err := l.daemon.ImageUnpacked(ctx, pool, fingerprint)
	if err != nil || unpacked {
		return err
	}
	image, _, err := l.daemon.Image(ctx, fingerprint)
	if err != nil {
		return err
	}
	id := uuid.NewString()
	name := "lab-unpack-" + id[:8]
	post := api.InstancesPost{Name: name, Type: api.InstanceType(image.Type)}
	post.Source = api.InstanceSource{Type: api.SourceTypeImage, Fingerprint: fingerprint}
	post.Profiles = []string{}
	post.Config = map[string]string{keyUUID: id, keyID: id}
	post.Devices = map[string]map[string]string{"root": rootDevice(pool, "")}
	createErr := l.daemon.CreateInstance(ctx, post)

	ctx, cancel := detached(ctx)
	defer cancel()
	deleteErr := l.daemon.DeleteInstance(ctx, name)
	if createErr != nil && errors.Is(deleteErr, lxd.ErrNotFound) {
		deleteErr = nil
	}
	return errors.Join(createErr, deleteErr)
}
