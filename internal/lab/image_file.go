// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ImageFile is an image in files of this host.
type ImageFile struct {
	// Metadata is a unified tarball, or the metadata tarball of an image whose root file system is in Rootfs.
	Metadata string
	// Rootfs is a squashfs or tarball for containers; empty for a unified tarball.
	Rootfs string
	// SHA256 is what the image must hash to, in hex; empty is not checked. It is the image's fingerprint.
	SHA256 string
}

// Fingerprint computes what the daemon will call the image: the SHA-256 of its files, one after the other. Files that
// did not change since they were last read by this process are not read again. The error names the argument at fault.
func (f ImageFile) Fingerprint(ctx context.Context) (string, error) {
	version, err := f.version()
	if err != nil {
		return "", err
	}
	fingerprint, known := readBefore.Load(version)
	if !known {
		if fingerprint, err = f.hash(ctx); err != nil {
			return "", err
		}
		readBefore.Store(version, fingerprint)
	}
	if text, _ := fingerprint.(string); f.SHA256 == "" || f.SHA256 == text {
		return text, nil
	}
	return "", argumentErrorf("file.sha256", "the files hash to %s, not to %s: they are damaged or of another version", fingerprint, f.SHA256)
}

// readBefore holds the fingerprints of files that this process has read, by their version.
var readBefore sync.Map

// version tells the files, as they are now, from any others and from what they may become.
func (f ImageFile) version() (string, error) {
	var version strings.Builder
	for argument, path := range f.paths() {
		info, err := os.Stat(path)
		if err != nil {
			return "", argumentErrorf(argument, "the file cannot be read: %w", err)
		}
		fmt.Fprintf(&version, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return version.String(), nil
}

func (f ImageFile) hash(ctx context.Context) (string, error) {
	hash := sha256.New()
	for argument, path := range f.paths() {
		if err := hashFile(ctx, hash, path); err != nil {
			return "", argumentErrorf(argument, "the file cannot be read: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// paths gives the image's files in the order in which they are hashed, by the argument that names each.
func (f ImageFile) paths() iter.Seq2[string, string] {
	return func(yield func(argument, path string) bool) {
		if yield("file.metadata", f.Metadata) && f.Rootfs != "" {
			yield("file.rootfs", f.Rootfs)
		}
	}
}

// hashFile feeds a file to a hash, and stops when the context ends.
func hashFile(ctx context.Context, hash io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(hash, contextReader{ctx, file})
	return err
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context //nolint:containedctx // a reader has no other way to know of it
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// isDisk says whether a file is a qcow2 disk, by its magic number.
func isDisk(file io.ReaderAt) bool {
	magic := make([]byte, 4)
	_, err := file.ReadAt(magic, 0)
	return err == nil && string(magic) == "QFI\xfb"
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
