// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// probeImage makes the smallest image that the daemon takes: no file at all. It depends on nothing but its arguments,
// so that a leftover is known by its fingerprint.
func probeImage(architecture, mark string) ([]byte, error) {
	metadata := fmt.Appendf(nil, "architecture: %s\ncreation_date: 1\nproperties:\n  description: throw-away image of a capability probe\n  %s: %q\n",
		architecture, markProbe, mark)
	var image bytes.Buffer
	archive := tar.NewWriter(&image)
	for _, header := range []*tar.Header{
		{Name: "metadata.yaml", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(metadata)), ModTime: time.Unix(1, 0)},
		{Name: "rootfs/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(1, 0)},
	} {
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := archive.Write(metadata); err != nil {
				return nil, err
			}
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return image.Bytes(), nil
}

// fingerprintOf is the fingerprint that the daemon gives an image.
func fingerprintOf(image []byte) string {
	sum := sha256.Sum256(image)
	return hex.EncodeToString(sum[:])
}
