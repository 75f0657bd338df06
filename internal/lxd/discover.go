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
	"strconv"
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
		{path: "/run/incus/unix.socket"},
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

// DeadSocketError says that a socket exists and no daemon answers on it, or none that this user may talk to.
type DeadSocketError struct {
	// Path is the socket.
	Path string
	// Group is the name of the group that the socket belongs to; empty where it cannot be told.
	Group string
	// Err is what connecting to it gave.
	Err error
}

func (e *DeadSocketError) Error() string {
	if !errors.Is(e.Err, fs.ErrPermission) {
		return fmt.Sprintf("the socket %s exists but no daemon answers on it: %v", e.Path, e.Err)
	}
	group := "that owns it"
	if e.Group != "" {
		group = strconv.Quote(e.Group)
	}
	return fmt.Sprintf("no permission to use the daemon's socket %s (%v): the user must be in the group %s", e.Path, e.Err, group)
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
		err := reach(ctx, c.path)
		if err == nil {
			return "unix://" + c.path, nil
		}
		if _, none := errors.AsType[*NoDaemonError](err); !none {
			return "", err
		}
		place := c.path
		if c.from != "" {
			place = fmt.Sprintf("%s (named by %s)", c.path, c.from)
		}
		looked = append(looked, place)
	}
	return "", &NoDaemonError{Looked: looked}
}

// reach makes sure that something answers on a socket. The error is a [NoDaemonError] where there is no socket, and a
// [DeadSocketError] where there is one.
func reach(ctx context.Context, path string) error {
	err := knock(ctx, path)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return classify("connect to unix://"+path, ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		return &NoDaemonError{Looked: []string{path}}
	default:
		return &DeadSocketError{Path: path, Group: groupOf(path), Err: err}
	}
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
