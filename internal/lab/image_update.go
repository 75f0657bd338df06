// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// addAlias names an image. A name that somebody gave to another image is not taken from it.
func (l *Lab) addAlias(ctx context.Context, name, fingerprint string) error {
	have, err := l.daemon.ImageAlias(ctx, name)
	if err == nil && have.Target == fingerprint {
		return nil
	}
	if err == nil {
		return argumentErrorf("aliases", "alias %q belongs to image %s already", name, have.Target)
	}
	if !errors.Is(err, lxd.ErrNotFound) {
		return err
	}
	alias := api.ImageAliasesPost{}
	alias.Name, alias.Target = name, fingerprint
	return l.daemon.CreateImageAlias(ctx, alias)
}

// neverExpires is the latest of the moments by which daemons say "never".
var neverExpires = time.Unix(0, 0)

// Image reads an image: of its properties those that were declared, of the pools those on which it is unpacked.
func (l *Lab) Image(ctx context.Context, fingerprint string, declared map[string]string, pools []string) (*Image, error) {
	live, _, err := l.daemon.Image(ctx, fingerprint)
	if err != nil {
		return nil, err
	}
	image := &Image{Fingerprint: live.Fingerprint, SizeBytes: live.Size, Type: live.Type, Properties: map[string]string{}, Public: live.Public}
	if live.ExpiresAt.After(neverExpires) {
		image.ExpiresAt = live.ExpiresAt.UTC()
	}
	for _, alias := range live.Aliases {
		image.Aliases = append(image.Aliases, alias.Name)
	}
	for key := range declared {
		if value, ok := live.Properties[key]; ok {
			image.Properties[key] = value
		}
	}
	for _, pool := range pools {
		unpacked, err := l.daemon.ImageUnpacked(ctx, pool, fingerprint)
		if err != nil {
			return nil, err
		}
		if unpacked {
			image.Pools = append(image.Pools, pool)
		}
	}
	return image, nil
}

// UpdateImage changes what can be changed of an image: aliases, properties, who may have it, when it expires, and the
// pools on which it is unpacked. It returns how long the unpacking took, in milliseconds; 0 when it is wanted on no pool.
func (l *Lab) UpdateImage(ctx context.Context, fingerprint string, before, now ImageSpec) (*Image, int64, error) {
	unlock, err := l.lockImage(ctx, fingerprint)
	if err != nil {
		return nil, 0, err
	}
	defer unlock()
	if err := l.describe(ctx, fingerprint, before, now); err != nil {
		return nil, 0, err
	}
	for _, alias := range before.Aliases {
		if !slices.Contains(now.Aliases, alias) {
			if err := l.dropAlias(ctx, alias, fingerprint); err != nil {
				return nil, 0, err
			}
		}
	}
	for _, alias := range now.Aliases {
		if err := l.addAlias(ctx, alias, fingerprint); err != nil {
			return nil, 0, err
		}
	}
	unpackMS := int64(0)
	if len(now.Pools) > 0 {
		start := time.Now()
		if err := l.unpack(ctx, fingerprint, now.Pools); err != nil {
			return nil, 0, err
		}
		unpackMS = since(start)
	}
	image, err := l.Image(ctx, fingerprint, now.Properties, now.Pools)
	return image, unpackMS, err
}

// describe makes an image have what is declared of it now in the place of what was declared before.
func (l *Lab) describe(ctx context.Context, fingerprint string, before, now ImageSpec) error {
	live, etag, err := l.daemon.Image(ctx, fingerprint)
	if err != nil {
		return err
	}
	put := live.Writable()
	put.Properties = replaced(live.Properties, before.Properties, now.Properties)
	switch {
	case now.Public != nil:
		put.Public = *now.Public
	case before.Public != nil:
		put.Public = false
	}
	if !now.ExpiresAt.IsZero() || !before.ExpiresAt.IsZero() {
		put.ExpiresAt = now.ExpiresAt
	}
	if maps.Equal(put.Properties, live.Properties) && put.Public == live.Public && put.ExpiresAt.Equal(live.ExpiresAt) {
		return nil
	}
	return l.daemon.ReplaceImage(ctx, fingerprint, put, etag)
}

// dropAlias takes a name away from an image, if it has it.
func (l *Lab) dropAlias(ctx context.Context, name, fingerprint string) error {
	have, err := l.daemon.ImageAlias(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) || (err == nil && have.Target != fingerprint) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.daemon.DeleteImageAlias(ctx, name)
}

// DeleteImage removes an image that the daemon has from us; one that is gone already is no error. One that the daemon had before
// stays, and only loses the aliases of the specification.
func (l *Lab) DeleteImage(ctx context.Context, fingerprint string, spec ImageSpec, owned bool) error {
	if !owned {
		for _, alias := range spec.Aliases {
			if err := l.dropAlias(ctx, alias, fingerprint); err != nil {
				return err
			}
		}
		return nil
	}
	return deleted(l.daemon.DeleteImage(ctx, fingerprint), func() error {
		_, _, err := l.daemon.Image(ctx, fingerprint)
		return err
	})
}
