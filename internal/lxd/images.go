// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/canonical/lxd/shared/api"
)

// Image reads an image by its full fingerprint.
func (d *Daemon) Image(ctx context.Context, fingerprint string) (*api.Image, string, error) {
	image, etag, err := d.client(ctx).GetImage(fingerprint)
	return image, etag, classify(fmt.Sprintf("read image %s", fingerprint), err)
}

// Images lists the images of the project.
func (d *Daemon) Images(ctx context.Context) ([]api.Image, error) {
	return list(ctx, "list images", d.client(ctx).GetImages)
}

// ImageAlias reads where an alias points.
func (d *Daemon) ImageAlias(ctx context.Context, name string) (*api.ImageAliasesEntry, error) {
	alias, _, err := d.client(ctx).GetImageAlias(name)
	return alias, classify(fmt.Sprintf("read image alias %q", name), err)
}

// ImageUpload is an image to send: a unified tarball, or metadata with a root file system beside it.
type ImageUpload struct {
	// Metadata is the unified tarball, or the metadata tarball.
	Metadata io.Reader
	// Rootfs is a squashfs or tarball (container) or a qcow2 disk (virtual machine); nil for a unified tarball.
	Rootfs io.Reader
	// VirtualMachine says that Rootfs is a disk.
	VirtualMachine bool
	// Properties are set on the image, beside those in its metadata.
	Properties map[string]string
}

// UploadImage sends an image and returns its fingerprint. A fingerprint beside an error is that of an image that was made
// all the same.
func (d *Daemon) UploadImage(ctx context.Context, image ImageUpload) (string, error) {
	header := http.Header{}
	if len(image.Properties) > 0 {
		properties := url.Values{}
		for key, value := range image.Properties {
			properties.Set(key, value)
		}
		setHeader(header, "properties", properties.Encode())
	}
	body, contentType := image.body()
	defer func() { _ = body.Close() }()
	header.Set("Content-Type", contentType)

	const ask = "upload image"
	operation, err := d.upload(ctx, ask, d.path("images"), header, body)
	return d.imageMade(ctx, ask, operation, err)
}

// body streams the image: as it is when unified, as a multipart form of two files otherwise.
func (u ImageUpload) body() (io.ReadCloser, string) {
	if u.Rootfs == nil {
		return io.NopCloser(local{u.Metadata}), "application/octet-stream"
	}
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	field := "rootfs"
	if u.VirtualMachine {
		field = "rootfs.img"
	}
	go func() {
		err := addFile(form, "metadata", u.Metadata)
		if err == nil {
			err = addFile(form, field, u.Rootfs)
		}
		if err == nil {
			err = form.Close()
		}
		_ = writer.CloseWithError(err) // it never fails; the reader gets err, or the end
	}()
	return reader, form.FormDataContentType()
}

func addFile(form *multipart.Writer, field string, content io.Reader) error {
	part, err := form.CreateFormFile(field, field)
	if err != nil {
		return err
	}
	_, err = io.Copy(part, local{content})
	return err
}

// local is a source of ours; that it fails says nothing about the daemon.
type local struct{ io.Reader }

func (l local) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &Error{Ask: "read the image to upload", Err: err}
	}
	return n, err
}

// ReplaceImage writes the properties and flags of an image.
func (d *Daemon) ReplaceImage(ctx context.Context, fingerprint string, image api.ImagePut, etag string) error {
	return d.change(ctx, "update image "+fingerprint, http.MethodPut, d.path("images", fingerprint), image, etag)
}

// DeleteImage removes an image, with its copies on pools.
func (d *Daemon) DeleteImage(ctx context.Context, fingerprint string) error {
	return besideDeletions(ctx, func() error {
		return d.change(ctx, "delete image "+fingerprint, http.MethodDelete, d.path("images", fingerprint), nil, "")
	})
}

// CreateImageAlias gives an image a name.
func (d *Daemon) CreateImageAlias(ctx context.Context, alias api.ImageAliasesPost) error {
	return d.change(ctx, fmt.Sprintf("create image alias %q", alias.Name), http.MethodPost, d.path("images", "aliases"), alias, "")
}

// DeleteImageAlias takes a name away from an image.
func (d *Daemon) DeleteImageAlias(ctx context.Context, name string) error {
	return d.change(ctx, fmt.Sprintf("delete image alias %q", name), http.MethodDelete, d.path("images", "aliases", name), nil, "")
}

// ImageUnpacked says whether a pool holds an image unpacked, so that a machine made from it there costs no more than
// a copy.
func (d *Daemon) ImageUnpacked(ctx context.Context, pool, fingerprint string) (bool, error) {
	_, _, err := d.client(ctx).GetStoragePoolVolume(pool, "image", fingerprint)
	err = classify(fmt.Sprintf("look for image %s on storage pool %q", fingerprint, pool), err)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
