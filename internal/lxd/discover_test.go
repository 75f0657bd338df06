// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	wellKnown := []candidate{
		{path: "/var/snap/lxd/common/lxd/unix.socket"},
		{path: "/var/lib/lxd/unix.socket"},
		{path: "/run/incus/unix.socket"},
		{path: "/var/lib/incus/unix.socket"},
	}
	tests := map[string]struct {
		environment map[string]string
		want        []candidate
	}{
		"nothing named":             {nil, wellKnown},
		"empty names nothing":       {map[string]string{"LXD_DIR": "", "LXD_SOCKET": ""}, wellKnown},
		"a socket":                  {map[string]string{"LXD_SOCKET": "/s"}, []candidate{{"/s", "LXD_SOCKET"}}},
		"a directory":               {map[string]string{"LXD_DIR": "/d/"}, []candidate{{"/d/unix.socket", "LXD_DIR"}}},
		"the socket goes first":     {map[string]string{"LXD_DIR": "/d", "LXD_SOCKET": "/s"}, []candidate{{"/s", "LXD_SOCKET"}}},
		"Incus' socket":             {map[string]string{"INCUS_SOCKET": "/i"}, []candidate{{"/i", "INCUS_SOCKET"}}},
		"Incus' directory":          {map[string]string{"INCUS_DIR": "/i"}, []candidate{{"/i/unix.socket", "INCUS_DIR"}}},
		"LXD goes first":            {map[string]string{"INCUS_SOCKET": "/i", "LXD_DIR": "/d"}, []candidate{{"/d/unix.socket", "LXD_DIR"}}},
		"Incus' socket goes first":  {map[string]string{"INCUS_SOCKET": "/s", "INCUS_DIR": "/d"}, []candidate{{"/s", "INCUS_SOCKET"}}},
		"what is not ours is noise": {map[string]string{"LXD_CONF": "/c"}, wellKnown},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := candidates(func(variable string) string { return test.environment[variable] })
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(candidate{})); diff != "" {
				t.Errorf("candidates differ (-want +got):\n%s", diff)
			}
		})
	}
}

// deadSocket leaves a socket that nobody listens on.
func deadSocket(t *testing.T) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(listen(t, http.NotFoundHandler())), "dead.socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	listener.SetUnlinkOnClose(false)
	must(t, listener.Close())
	return path
}

func TestDiscover(t *testing.T) {
	t.Parallel()
	first, second := listen(t, http.NotFoundHandler()), listen(t, http.NotFoundHandler())
	dead, none := deadSocket(t), filepath.Join(t.TempDir(), "none")

	t.Run("the first one that is there", func(t *testing.T) {
		t.Parallel()
		got, err := discover(t.Context(), []candidate{{path: none}, {path: first}, {path: second}, {path: dead}})
		if err != nil || got != "unix://"+first {
			t.Errorf("got %q, %v, want %s", got, err, first)
		}
	})
	t.Run("nothing falls through a dead one", func(t *testing.T) {
		t.Parallel()
		_, err := discover(t.Context(), []candidate{{path: none}, {path: dead}, {path: second}})
		found, ok := errors.AsType[*DeadSocketError](err)
		if !ok || found.Path != dead || !errors.Is(err, ErrUnreachable) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("got %v, want a refused connection to %s", err, dead)
		}
		if !strings.Contains(err.Error(), dead+" exists but no daemon answers on it") {
			t.Errorf("error %q does not tell that the socket exists", err)
		}
	})
	t.Run("none says where it looked", func(t *testing.T) {
		t.Parallel()
		_, err := discover(t.Context(), []candidate{{path: none}, {path: none + "2"}})
		want := &NoDaemonError{Looked: []string{none, none + "2"}}
		if diff := cmp.Diff(error(want), err); diff != "" || !errors.Is(err, ErrUnreachable) {
			t.Fatalf("error differs (-want +got):\n%s", diff)
		}
		if text := err.Error(); !strings.HasSuffix(text, none+", "+none+"2") {
			t.Errorf("error %q does not list the places", text)
		}
	})
	t.Run("one that was named says by what", func(t *testing.T) {
		t.Parallel()
		_, err := discover(t.Context(), []candidate{{path: none, from: "LXD_DIR"}})
		if want := none + " (named by LXD_DIR)"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	})
	t.Run("an interrupt is not a dead socket", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := discover(ctx, []candidate{{path: first}})
		if _, dead := errors.AsType[*DeadSocketError](err); dead || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want an interrupt", err)
		}
	})
}

func TestDiscoverReadsTheEnvironment(t *testing.T) {
	path := listen(t, http.NotFoundHandler())
	t.Setenv("LXD_SOCKET", "")
	t.Setenv("LXD_DIR", filepath.Dir(path))
	if got, err := Discover(t.Context()); err != nil || got != "unix://"+path {
		t.Errorf("got %q, %v, want %s", got, err, path)
	}
}

func TestDeadSocketErrorNamesTheGroup(t *testing.T) {
	t.Parallel()
	err := &DeadSocketError{Path: "/s", Group: "lxd", Err: &os.PathError{Op: "connect", Path: "/s", Err: syscall.EACCES}}
	if want := `the user must be in the group "lxd"`; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not contain %q", err, want)
	}
	err.Group = ""
	if want := "the user must be in the group that owns it"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not contain %q", err, want)
	}
	if !errors.Is(fmt.Errorf("wrapped: %w", err), fs.ErrPermission) {
		t.Error("the cause is lost")
	}
}

func TestConnectToADaemonThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	_, server := inMemory(t)
	proxy := lxdtest.NewProxy(t, server.Socket())
	proxy.Add(lxdtest.Rule{Delay: patience})

	_, err := Connect(patient(t), Config{Address: proxy.Address(), AnswerTimeout: time.Millisecond})
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "takes connections but does not answer") {
		t.Errorf("got %v, want one that is unreachable because it does not answer", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := Connect(ctx, Config{Address: proxy.Address()}); !isOnly(err, ErrTimeout) {
		t.Errorf("when the caller's time is up: got %v, want a timeout", err)
	}
}
