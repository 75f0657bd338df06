// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// Image is an image as files and, once imported, on the daemon.
type Image struct {
	// Fingerprint is what the daemon calls the image: of Unified where there is one, else of Metadata and Rootfs.
	Fingerprint string
	// Metadata and Rootfs are the files of a split image.
	Metadata, Rootfs string
	// Unified is the file that holds both.
	Unified string
}

// Tiny returns an image that boots in a tenth of a second: busybox with a shell as init, which asks for an address on
// every interface that it finds and offers the host's name for DNS. It is imported.
func (h *Host) Tiny(t testing.TB) Image {
	t.Helper()
	image, err := h.tiny.get(func() (Image, error) {
		image, err := buildTiny(filepath.Join(h.root, "tiny"), "")
		if err != nil {
			return image, err
		}
		return image, importImage(h.Client(t), image.Unified, "", api.InstanceTypeContainer)
	})
	if err != nil {
		t.Fatalf("Unable to import the tiny image: %v", err)
	}
	return image
}

// TinyFiles returns an image like that of Host.Tiny, but with a fingerprint of its own, as files only.
func TinyFiles(t testing.TB) Image {
	t.Helper()
	image, err := buildTiny(t.TempDir(), Name(t, "tiny"))
	if err != nil {
		t.Fatalf("Unable to build a tiny image: %v", err)
	}
	return image
}

// importImage uploads a unified image, or a split one if rootfs is not empty.
func importImage(c lxd.InstanceServer, metadata, rootfs string, kind api.InstanceType) error {
	meta, err := os.Open(metadata)
	if err != nil {
		return err
	}
	defer func() { _ = meta.Close() }()
	args := &lxd.ImageCreateArgs{MetaFile: meta, MetaName: filepath.Base(metadata), Type: string(kind)}
	if rootfs != "" {
		root, err := os.Open(rootfs)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		args.RootfsFile, args.RootfsName = root, filepath.Base(rootfs)
	}
	op, err := c.CreateImage(api.ImagesPost{Filename: args.MetaName}, args)
	if err != nil {
		return err
	}
	return op.Wait()
}

// fingerprint returns what LXD calls an image that consists of the files.
func fingerprint(files ...string) (string, error) {
	hash := sha256.New()
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(hash, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
