// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ImageSpec is an image as it should be.
type ImageSpec struct {
	// File, Remote or Publish says where it comes from; all are nil for one that is there already.
	File    *ImageFile
	Remote  *ImageRemote
	Publish *ImagePublish

	Aliases    []string
	Properties map[string]string
	// Public says whether everybody who reaches the daemon may fetch it; nil leaves that as it is.
	Public *bool
	// ExpiresAt is when it becomes obsolete; the zero time leaves that as it is.
	ExpiresAt time.Time
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
	Public      bool
	// ExpiresAt is when it becomes obsolete; the zero time is never.
	ExpiresAt time.Time
	// Pools are those of the asked ones on which it is unpacked.
	Pools []string
}

// ImageTimings are how long the steps of making an image took, in milliseconds.
type ImageTimings struct{ ObtainMS, UnpackMS int64 }

// CreateImage makes the daemon have an image. It is sent, fetched or made only when the daemon has none of this
// fingerprint; owned says that it was. An image that is there although an error came of it is returned beside the error.
func (l *Lab) CreateImage(ctx context.Context, spec ImageSpec) (image *Image, owned bool, timings ImageTimings, err error) {
	start := time.Now()
	var fingerprint string
	if spec.Publish != nil {
		fingerprint, owned, err = l.produce(ctx, spec, "")
	} else {
		fingerprint, owned, err = l.obtain(ctx, spec)
	}
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

// obtain makes the daemon have an image whose fingerprint can be told beforehand, unless it has it, and says whether it
// now has it from us. Those who want the same image wait for the first one.
func (l *Lab) obtain(ctx context.Context, spec ImageSpec) (fingerprint string, owned bool, err error) {
	if spec.File != nil {
		fingerprint, err = spec.File.Fingerprint(ctx)
	} else {
		fingerprint, err = l.FindImage(ctx, *spec.Remote)
	}
	if err != nil {
		return "", false, err
	}
	unlock, err := l.lockImage(ctx, fingerprint)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	_, _, err = l.daemon.Image(ctx, fingerprint)
	if err == nil || !errors.Is(err, lxd.ErrNotFound) {
		return fingerprint, false, err
	}
	made, owned, err := l.produce(ctx, spec, fingerprint)
	switch {
	case errors.Is(err, lxd.ErrExists):
		return fingerprint, false, nil // somebody was faster
	case err == nil && made != fingerprint:
		ctx, cancel := detached(ctx)
		defer cancel()
		err := fmt.Errorf("the daemon made image %s of files that hash to %s: they changed while they were read", made, fingerprint)
		return "", false, errors.Join(err, l.DeleteImage(ctx, made, ImageSpec{}, true))
	default:
		return made, owned, err
	}
}

// lockImage keeps others from making or changing an image.
func (l *Lab) lockImage(ctx context.Context, fingerprint string) (unlock func(), err error) {
	return l.daemon.Lock(ctx, "image/"+fingerprint)
}

// produce makes the daemon have an image that it does not have, of its files, from its server, or of a machine. The
// daemon may have it from us although an error came of it.
func (l *Lab) produce(ctx context.Context, spec ImageSpec, fingerprint string) (made string, owned bool, err error) {
	id := uuid.NewString()
	switch {
	case spec.File != nil:
		made, err = l.upload(ctx, spec, id)
	case spec.Remote != nil:
		made, err = l.fetch(ctx, *spec.Remote, fingerprint, id)
	default:
		made, err = l.publish(ctx, spec.Publish, id)
	}
	if err == nil {
		return made, true, nil
	}
	if errors.Is(err, lxd.ErrExists) {
		return "", false, err
	}
	made = l.imageMadeAnyway(ctx, id)
	return made, made != "", err
}

// imageMadeAnyway finds an image whose making failed or seemed to, by the id that we gave it.
func (l *Lab) imageMadeAnyway(ctx context.Context, id string) (fingerprint string) {
	ctx, cancel := detached(ctx)
	defer cancel()
	images, err := l.daemon.Images(ctx)
	if err != nil {
		return ""
	}
	for _, image := range images {
		if image.Properties[keyID] == id {
			return image.Fingerprint
		}
	}
	return ""
}
