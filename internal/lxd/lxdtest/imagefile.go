// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
	"go.yaml.in/yaml/v3"
)

// upload is an image as it was sent: one file, or metadata with a root directory or disk.
type upload struct {
	metadata, rootfs []byte
	split, disk      bool
	header           http.Header
}

func readUpload(r *http.Request) (upload, error) {
	u := upload{header: r.Header}
	mediaType, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if mediaType != "multipart/form-data" {
		var err error
		u.metadata, err = readBody(r)
		return u, err
	}
	u.split = true
	form := multipart.NewReader(r.Body, params["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return u, nil
		}
		if err != nil {
			return u, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return u, err
		}
		switch part.FormName() {
		case "metadata":
			u.metadata = data
		case "rootfs", "rootfs.img":
			u.rootfs, u.disk = data, part.FormName() == "rootfs.img"
		}
	}
}

// parse makes an image of the upload.
func (u upload) parse() (*image, error) {
	sum := sha256.Sum256(append(bytes.Clone(u.metadata), u.rootfs...))
	i := &image{root: newRoot(), Image: api.Image{
		Fingerprint: hex.EncodeToString(sum[:]), Size: int64(len(u.metadata) + len(u.rootfs)), Type: "container",
		Architecture: "x86_64", UploadedAt: time.Now().UTC(), Filename: u.header.Get("X-LXD-filename"),
		Public: u.header.Get("X-LXD-public") == "true", Properties: map[string]string{},
	}}
	if u.disk {
		i.Type = "virtual-machine"
	}
	properties, err := url.ParseQuery(u.header.Get("X-LXD-properties"))
	if err != nil {
		return nil, err
	}
	for key := range properties {
		i.Properties[key] = properties.Get(key)
	}
	if u.split && u.metadata == nil {
		return nil, internalf("Invalid multipart image")
	}
	files, known, err := unpack(u.metadata)
	if err != nil {
		return nil, err
	}
	if known {
		if err := i.describe(files); err != nil {
			return nil, err
		}
	}
	if !u.split {
		i.fill(files, "/rootfs/", int64(len(u.metadata)))
		return i, nil
	}
	if files, _, err = unpack(u.rootfs); err != nil {
		return nil, err
	}
	i.fill(files, "/", int64(len(u.rootfs)))
	return i, nil
}

// fill puts the files below prefix into the root directory. An archive that cannot be looked into still takes its space.
func (i *image) fill(files tree, prefix string, size int64) {
	if files == nil {
		i.root["/rootfs"] = &blob{kind: "file", size: size}
	}
	for name, b := range files {
		if inRoot, ok := strings.CutPrefix(name, prefix); ok {
			i.root["/"+inRoot] = b
		}
	}
}

// describe takes over what the image says of itself. What was given with the upload comes first.
func (i *image) describe(files tree) error {
	b, ok := files["/metadata.yaml"]
	if !ok {
		return internalf("Metadata tarball is missing metadata.yaml")
	}
	var m api.ImageMetadata
	if err := yaml.Unmarshal(b.data, &m); err != nil {
		return err
	}
	if m.CreationDate == 0 {
		return internalf("Missing creation date")
	}
	i.Architecture, i.CreatedAt = m.Architecture, time.Unix(m.CreationDate, 0).UTC()
	for key, v := range m.Properties {
		setDefault(i.Properties, key, v)
	}
	return nil
}

// newRoot returns the directories that a root directory has in any case.
func newRoot() tree {
	t := tree{}
	for _, dir := range []string{"/", "/etc", "/root", "/run", "/tmp", "/usr", "/var"} {
		t[dir] = &blob{kind: "directory", mode: 0o755}
	}
	return t
}

// unpack returns the files of a tar archive, also of a compressed one. known is false for xz and squashfs, which are
// images to LXD but cannot be read here.
func unpack(data []byte) (files tree, known bool, err error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xfd7zXZ")), bytes.HasPrefix(data, []byte("hsqs")), bytes.HasPrefix(data, []byte("QFI\xfb")):
		return nil, false, nil
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, false, err
		}
		if data, err = io.ReadAll(z); err != nil {
			return nil, false, err
		}
	case len(data) < 512 || string(data[257:262]) != "ustar":
		return nil, false, internalf("Unsupported compression")
	}
	files = tree{}
	for archive := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, false, err
		}
		files[path.Join("/", h.Name)] = blobOf(h, content) //nolint:gosec // Nothing is written to a disk.
	}
}

func blobOf(h *tar.Header, content []byte) *blob {
	b := &blob{kind: "file", data: content, size: int64(len(content)), mode: uint32(h.Mode & 0o7777), uid: int64(h.Uid), gid: int64(h.Gid)}
	switch h.Typeflag {
	case tar.TypeDir:
		b.kind = "directory"
	case tar.TypeSymlink:
		b.kind, b.data = "symlink", []byte(h.Linkname)
	}
	return b
}

// headers describe the file as the API does.
func (b *blob) headers(h http.Header) {
	h.Set("X-LXD-type", b.kind)
	h.Set("X-LXD-mode", "0"+strconv.FormatUint(uint64(b.mode), 8))
	h.Set("X-LXD-uid", strconv.FormatInt(b.uid, 10))
	h.Set("X-LXD-gid", strconv.FormatInt(b.gid, 10))
}
