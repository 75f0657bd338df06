// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dialTimeout bounds the knock on a local socket; a daemon that listens answers in microseconds.
const dialTimeout = 5 * time.Second

// candidate is a place where a daemon's socket may be.
type candidate struct {
	path string
	// from says who names it; empty for a well-known place.
	from string
}

// candidates lists the sockets to look at, in order. One that the environment names must exist; it is the only one.
func candidates(getenv func(string) string) []candidate {
	for _, c := range []struct{ variable, file string }{
		{"LXD_SOCKET", ""},
		{"LXD_DIR", "unix.socket"},
		{"INCUS_SOCKET", ""},
		{"INCUS_DIR", "unix.socket"},
	} {
		if value := getenv(c.variable); value != "" {
			return []candidate{{path: filepath.Join(value, c.file), from: c.variable}}
		}
	}
	return []candidate{
		{path: "/var/snap/lxd/common/lxd/unix.socket"},
		{path: "/var/lib/lxd/unix.socket"},
		{path: "/var/lib/incus/unix.socket"},
	}
}

// NoDaemonError says that no socket of a daemon exists on this host.
type NoDaemonError struct {
	// Looked lists the paths that were looked at.
	Looked []string
}

func (e *NoDaemonError) Error() string {
	return "no LXD or Incus daemon on this host: looked for " + strings.Join(e.Looked, ", ")
}

// Unwrap makes it an [ErrUnreachable].
func (e *NoDaemonError) Unwrap() error { return ErrUnreachable }

// DeadSocketError says that a socket exists and no daemon answers on it.
type DeadSocketError struct {
	// Path is the socket.
	Path string
	// Err is what connecting to it gave.
	Err error
}

func (e *DeadSocketError) Error() string {
	if errors.Is(e.Err, fs.ErrPermission) {
		return fmt.Sprintf("no permission to use the daemon's socket %s (%v): the user must be in the group that owns it", e.Path, e.Err)
	}
	return fmt.Sprintf("the socket %s exists but no daemon answers on it: %v", e.Path, e.Err)
}

// Unwrap makes it an [ErrUnreachable], and keeps the cause.
func (e *DeadSocketError) Unwrap() []error { return []error{ErrUnreachable, e.Err} }

// Discover finds the local daemon's socket: the one that LXD_SOCKET, LXD_DIR, INCUS_SOCKET or INCUS_DIR names, else
// the snap's, the distribution's, or that of Incus. It returns a "unix://" address. A socket that exists but does
// not answer is a [DeadSocketError]: the next place might belong to somebody else's daemon. Where there is none at
// all it is a [NoDaemonError].
func Discover(ctx context.Context) (string, error) {
	return discover(ctx, candidates(os.Getenv))
}

func discover(ctx context.Context, places []candidate) (string, error) {
	looked := make([]string, 0, len(places))
	for _, c := range places {
		looked = append(looked, c.path)
		_, err := os.Stat(c.path)
		if errors.Is(err, fs.ErrNotExist) && c.from == "" {
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			return "", &NoDaemonError{Looked: []string{fmt.Sprintf("%s (named by %s)", c.path, c.from)}}
		}
		if err == nil {
			err = knock(ctx, c.path)
		}
		if err != nil {
			return "", &DeadSocketError{Path: c.path, Err: err}
		}
		return "unix://" + c.path, nil
	}
	return "", &NoDaemonError{Looked: looked}
}

// knock connects to a socket and hangs up.
func knock(ctx context.Context, path string) error {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	return conn.Close()
}
