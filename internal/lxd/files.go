// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// File is a file or directory to put into a machine.
type File struct {
	// Path is absolute, inside the machine.
	Path string
	// Content is written as it is; it is ignored for a directory.
	Content []byte
	// Mode holds the permission bits.
	Mode uint32
	// UID and GID own it.
	UID, GID int64
	// Directory makes a directory rather than a file.
	Directory bool
}

// PushFile writes a file into an instance, running or (containers) stopped. The parent directory must exist.
func (d *Daemon) PushFile(ctx context.Context, instance string, file File) error {
	header := http.Header{}
	header.Set("X-LXD-uid", strconv.FormatInt(file.UID, 10))
	header.Set("X-LXD-gid", strconv.FormatInt(file.GID, 10))
	header.Set("X-LXD-mode", fmt.Sprintf("%04o", file.Mode))
	header.Set("X-LXD-type", "file")
	header.Set("X-LXD-write", "overwrite")
	header.Set("Content-Type", "application/octet-stream")
	if file.Directory {
		header.Set("X-LXD-type", "directory")
		file.Content = nil
	}
	at := d.path("instances", instance, "files").WithQuery("path", file.Path)
	_, err := d.upload(ctx, fmt.Sprintf("write %s in machine %q", file.Path, instance), at, header, bytes.NewReader(file.Content))
	return err
}
