// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ImageSpec is an image as it should be.
type ImageSpec struct {
	File       ImageFile
	Aliases    []string
	Properties map[string]string
	// Pools are the storage pools that it is unpacked on ahead of use.
	Pools []string
}

// Image is an image as the daemon has it.
type Image struct {
	Fingerprint string
	SizeBytes   int64
	Type        string
	Aliases     []string
	Properties  map[string]string
	// Pools are those of the asked ones on which it is unpacked.
	Pools []string
}

// ImageTimings are how long the steps of making an image took, in milliseconds.
type ImageTimings struct{ ObtainMS, UnpackMS int64 }

// CreateImage makes the daemon have an image. It is uploaded only when the daemon has none of this fingerprint;
// owned says that it was. An image that is there although an error came of it is returned beside the error.
func (l *Lab) CreateImage(ctx context.Context, spec ImageSpec) (image *Image, owned bool, timings ImageTimings, err error) {
	start := time.Now()
	fingerprint, err := spec.File.Fingerprint(ctx)
	if err != nil {
		return nil, false, timings, err
	}
	unlock, err := l.daemon.Lock(ctx, "image/"+fingerprint)
	if err != nil {
		return nil, false, timings, err
	}
	defer unlock()

	owned, err = l.obtain(ctx, spec, fingerprint)
	if err != nil && !owned {
		return nil, false, timings, err
	}
	image = &Image{Fingerprint: fingerprint}
	if err != nil {
		return image, true, timings, err
	}
	timings.ObtainMS = since(start)
	live, unpackMS, err := l.UpdateImage(ctx, fingerprint, ImageSpec{}, spec)
	if err != nil {
		return image, owned, timings, err
	}
	timings.UnpackMS = unpackMS
	return live, owned, timings, nil
}

// obtain uploads an image unless the daemon has it, and says whether the daemon now has it from us, which may be so
// although an error came of it.
func (l *Lab) obtain(ctx context.Context, spec ImageSpec, fingerprint string) (owned bool, err error) {
	_, _, err = l.daemon.Image(ctx, fingerprint)
	if err == nil || !errors.Is(err, lxd.ErrNotFound) {
		return false, err
	}
	id := uuid.NewString()
	made, err := l.upload(ctx, spec, id)
	switch {
	case errors.Is(err, lxd.ErrExists):
		return false, nil // somebody was faster
	case err != nil:
		return l.imageMadeAnyway(ctx, fingerprint, id), err
	case made != fingerprint:
		ctx, cancel := detached(ctx)
		defer cancel()
		err := fmt.Errorf("the daemon made image %s of files that hash to %s: they changed while they were read", made, fingerprint)
		return false, errors.Join(err, l.DeleteImage(ctx, made, ImageSpec{}, true))
	default:
		return true, nil
	}
}

// upload sends the files of an image, marked with an id, and gives the fingerprint that the daemon computed.
func (l *Lab) upload(ctx context.Context, spec ImageSpec, id string) (string, error) {
	upload := lxd.ImageUpload{Properties: map[string]string{keyID: id}}
	maps.Copy(upload.Properties, spec.Properties)
	metadata, err := os.Open(spec.File.Metadata)
	if err != nil {
		return "", argumentErrorf("file.metadata", "the file cannot be read: %w", err)
	}
	defer func() { _ = metadata.Close() }()
	upload.Metadata = metadata
	if spec.File.Rootfs != "" {
		rootfs, err := os.Open(spec.File.Rootfs)
		if err != nil {
			return "", argumentErrorf("file.rootfs", "the file cannot be read: %w", err)
		}
		defer func() { _ = rootfs.Close() }()
		upload.Rootfs = rootfs
		upload.VirtualMachine = isDisk(rootfs)
	}
	return l.daemon.UploadImage(ctx, upload)
}

// imageMadeAnyway says whether an image whose upload seemed to fail is there, by the id that we gave it.
func (l *Lab) imageMadeAnyway(ctx context.Context, fingerprint, id string) bool {
	ctx, cancel := detached(ctx)
	defer cancel()
	live, _, err := l.daemon.Image(ctx, fingerprint)
	return err == nil && live.Properties[keyID] == id
}

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

// Image reads an image: of its properties those that were declared, of the pools those on which it is unpacked.
func (l *Lab) Image(ctx context.Context, fingerprint string, declared map[string]string, pools []string) (*Image, error) {
	live, _, err := l.daemon.Image(ctx, fingerprint)
	if err != nil {
		return nil, err
	}
	image := &Image{Fingerprint: live.Fingerprint, SizeBytes: live.Size, Type: live.Type, Properties: map[string]string{}}
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

// UpdateImage changes aliases, properties and the pools on which an image is unpacked. It returns how long the
// unpacking took, in milliseconds; 0 when it is wanted on no pool.
func (l *Lab) UpdateImage(ctx context.Context, fingerprint string, before, now ImageSpec) (*Image, int64, error) {
	if err := l.setProperties(ctx, fingerprint, before.Properties, now.Properties); err != nil {
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

// setProperties makes an image have the properties that are declared now in the place of those declared before.
func (l *Lab) setProperties(ctx context.Context, fingerprint string, before, now map[string]string) error {
	live, etag, err := l.daemon.Image(ctx, fingerprint)
	if err != nil {
		return err
	}
	put := live.Writable()
	put.Properties = replaced(live.Properties, before, now)
	if maps.Equal(put.Properties, live.Properties) {
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

// DeleteImage removes an image that we uploaded; one that is gone already is no error. One that the daemon had before
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
