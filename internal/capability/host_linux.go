// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sys/unix"
)

// lookAtHost gives the host of a daemon that runs here, or nil. A socket may lead elsewhere (a tunnel, a socket that
// was mounted into a container), so the daemon's process must be seen here, under this kernel.
func lookAtHost(address string, environment api.ServerEnvironment) *host {
	socket, ok := strings.CutPrefix(address, "unix://")
	if !ok || environment.ServerPid <= 0 || environment.KernelVersion != kernelRelease() {
		return nil
	}
	process := filepath.Join("/proc", strconv.Itoa(environment.ServerPid))
	name, err := os.ReadFile(filepath.Join(process, "comm"))
	if err != nil || !slices.Contains([]string{"lxd", "incusd"}, strings.TrimSpace(string(name))) {
		return nil
	}
	h := &host{
		dir:        filepath.Dir(socket),
		searchPath: guessedPath(os.Getenv("PATH")),
		kernelHas:  kernelHas,
		freeBytes:  freeBytes,
	}
	// Only root, or the daemon's own user, may read this.
	if variables, err := os.ReadFile(filepath.Join(process, "environ")); err == nil {
		h.readEnvironment(variables)
	}
	h.snap = strings.HasPrefix(h.dir, "/var/snap/")
	return h
}

// guessedPath is where the daemon may find tools, as far as somebody else's PATH tells: the directories of administrators
// are not on the PATH of everybody, but on that of a daemon.
func guessedPath(own string) []string {
	dirs := filepath.SplitList(own)
	for _, dir := range systemPath {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// readEnvironment takes over what a daemon's environment says of its directory and its PATH.
func (h *host) readEnvironment(variables []byte) {
	for variable := range bytes.SplitSeq(variables, []byte{0}) {
		name, value, _ := strings.Cut(string(variable), "=")
		switch {
		case value == "":
		case name == "PATH":
			h.searchPath, h.daemonsPath = filepath.SplitList(value), true
		case name == "LXD_DIR" || name == "INCUS_DIR":
			h.dir = value
		}
	}
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// kernelHas looks for a file system or module: loaded, built in, or to be loaded.
func kernelHas(name string) (has, known bool) {
	if _, err := os.Stat(filepath.Join("/sys/module", name)); err == nil {
		return true, true
	}
	if listed, err := anyLine("/proc/filesystems", func(line string) bool {
		return slices.Contains(strings.Fields(line), name)
	}); err == nil && listed {
		return true, true
	}
	modules := filepath.Join("/lib/modules", kernelRelease())
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		listed, err := anyLine(filepath.Join(modules, list), func(line string) bool {
			module, _, _ := strings.Cut(filepath.Base(strings.TrimSuffix(strings.SplitN(line, ":", 2)[0], " ")), ".")
			return module == name
		})
		if err != nil {
			return false, false
		}
		if listed {
			return true, true
		}
	}
	return false, true
}

func anyLine(path string, match func(line string) bool) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20) // modules.dep has long lines
	for lines.Scan() {
		if match(lines.Text()) {
			return true, nil
		}
	}
	return false, lines.Err()
}

// freeBytes gives the free space of the file system of a path, without what it keeps back for root: a pool that ate
// into that would leave none for the host.
func freeBytes(path string) (int64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return 0, fmt.Errorf("read the free space at %s: %w", path, err)
	}
	return int64(stat.Bavail) * stat.Frsize, nil //nolint:gosec // blocks of a file system
}
