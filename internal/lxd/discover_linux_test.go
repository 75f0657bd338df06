// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is the user that owns nothing.
const nobody = 65534

func TestDiscoverWithoutPermission(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	path := listen(t, http.NotFoundHandler())
	must(t, errors.Join(os.Chmod(filepath.Dir(path), 0o755), os.Chmod(path, 0o600))) //nolint:gosec // others may look for the socket

	answer := make(chan error)
	go func() {
		// This thread touches files as nobody from now on; it ends with the goroutine, as it is never unlocked.
		runtime.LockOSThread()
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, nobody, 0, 0) // it never fails
		_, err := discover(t.Context(), []candidate{{path: path}})
		answer <- err
	}()
	err := <-answer
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, ErrUnreachable) {
		t.Fatalf("got %v, want permission denied", err)
	}
	if want := `the user must be in the group "root"`; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not contain %q", err, want)
	}
}
