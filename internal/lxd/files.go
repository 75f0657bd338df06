// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	lxdclient "github.com/canonical/lxd/client"
)

// File is a file or directory to put into a machine.
type File struct {
	// Path is absolute, inside the machine.
	Path string
	// Content is written as it is; it is ignored for a directory.
	Content []byte
	// Mode holds the permission bits, at most 0777.
	Mode uint32
	// UID and GID own it.
	UID, GID int64
	// Directory makes a directory rather than a file.
	Directory bool
}

// permissionBits are what the daemon sets of a file's mode; it drops all others without a word.
const permissionBits = 0o777

// PushFile writes a file into an instance, running or (containers) stopped, in the place of one that is there. The
// parent directory must exist; the error is [ErrNotFound] where it does not. A directory that exists stays as it is,
// and is no error.
func (d *Daemon) PushFile(ctx context.Context, instance string, file File) error {
	ask := fmt.Sprintf("write %s in machine %q", file.Path, instance)
	if file.Mode&^permissionBits != 0 {
		return &Error{Ask: ask, Kind: ErrUnsupported, Err: fmt.Errorf("the daemon sets no more than permissions (0777) on a file, and mode is %04o", file.Mode)}
	}
	at := d.path("instances", instance, "files").WithQuery("path", file.Path)
	if !file.Directory && !d.HasExtension("instances_files_modify_permissions") {
		// LXD 5.0 and Incus leave a file that exists with its owner and mode.
		if err := d.RemoveFile(ctx, instance, file.Path); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	header := http.Header{}
	setHeader(header, "uid", strconv.FormatInt(file.UID, 10))
	setHeader(header, "gid", strconv.FormatInt(file.GID, 10))
	setHeader(header, "mode", fmt.Sprintf("%04o", file.Mode))
	setHeader(header, "type", "file")
	setHeader(header, "write", "overwrite")
	setHeader(header, "modify-perm", "uid,gid,mode") // of a file that exists, where the daemon knows how
	header.Set("Content-Type", "application/octet-stream")
	if file.Directory {
		setHeader(header, "type", "directory")
		file.Content = nil
	}
	return withFileHelper(ctx, func() error {
		_, err := d.upload(ctx, ask, at, header, bytes.NewReader(file.Content))
		return err
	})
}

// File reads a regular file of an instance, running or (containers) stopped. The error is [ErrNotFound] where there is
// none, also when something other than a regular file has its path.
func (d *Daemon) File(ctx context.Context, instance, path string) (content []byte, err error) {
	ask := fmt.Sprintf("read %s in machine %q", path, instance)
	var body io.ReadCloser
	var found *lxdclient.InstanceFileResponse
	err = withFileHelper(ctx, func() (err error) {
		body, found, err = d.client(ctx).GetInstanceFile(instance, path)
		return classify(ask, err)
	})
	if err != nil {
		return nil, err
	}
	if body != nil { // a directory has none
		defer func() { err = errors.Join(err, body.Close()) }()
	}
	if found.Type != "file" {
		return nil, &Error{Ask: ask, Kind: ErrNotFound, Err: fmt.Errorf("it is a %s", found.Type)}
	}
	content, err = io.ReadAll(body)
	return content, classify(ask, err)
}

// RemoveFile deletes a file of an instance, running or (containers) stopped. The error is [ErrNotFound] where there is
// none.
func (d *Daemon) RemoveFile(ctx context.Context, instance, path string) error {
	at := d.path("instances", instance, "files").WithQuery("path", path)
	return withFileHelper(ctx, func() error {
		return d.change(ctx, fmt.Sprintf("remove %s in machine %q", path, instance), http.MethodDelete, at, nil, "")
	})
}
