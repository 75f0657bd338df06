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

// probeImage makes the smallest image that the daemon takes and that can run: one program of some hundred bytes, where
// there is one for the architecture. It depends on nothing but its arguments, so that a leftover is known by its
// fingerprint.
func probeImage(architecture, mark string) ([]byte, error) {
	metadata := fmt.Appendf(nil, "architecture: %s\ncreation_date: 1\nproperties:\n  description: throw-away image of a capability probe\n  %s: %q\n",
		architecture, markProbe, mark)
	files := []imageFile{{"metadata.yaml", 0o644, metadata}, {"rootfs/", 0o755, nil}}
	if program := canaryProgram(architecture); program != nil {
		for _, dir := range []string{"dev", "proc", "sbin", "sys"} {
			files = append(files, imageFile{"rootfs/" + dir + "/", 0o755, nil})
		}
		files = append(files, imageFile{"rootfs" + canaryPath, 0o755, program})
	}
	var image bytes.Buffer
	archive := tar.NewWriter(&image)
	for _, file := range files {
		if err := file.write(archive); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return image.Bytes(), nil
}

// imageFile is a file of the image, or a directory: its name then ends in a slash.
type imageFile struct {
	name    string
	mode    int64
	content []byte
}

func (f imageFile) write(archive *tar.Writer) error {
	header := &tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(1, 0)}
	if f.content == nil {
		header.Typeflag = tar.TypeDir
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(f.content)
	return err
}

// fingerprintOf is the fingerprint that the daemon gives an image.
func fingerprintOf(image []byte) string {
	sum := sha256.Sum256(image)
	return hex.EncodeToString(sum[:])
}
