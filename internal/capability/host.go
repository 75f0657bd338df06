// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// host is this machine as the daemon's host. There is none for a daemon elsewhere: nothing can be looked at there.
type host struct {
	// dir is the daemon's own directory, with its loop files and the mounts of its pools.
	dir string
	// searchPath is where the daemon looks for tools, or where this process does.
	searchPath []string
	// daemonsPath says that searchPath is the daemon's own.
	daemonsPath bool
	// snap says that the daemon brings its own tools, which cannot be seen from here.
	snap bool
	// kernelHas says whether the kernel has a file system or a module; known is false where that cannot be told.
	kernelHas func(name string) (has, known bool)
	// freeBytes gives the free space of the file system that a path is on.
	freeBytes func(path string) (int64, error)
}

// driverTools are the programs that LXD runs for a driver, the package that has them on Debian and its kin, and the
// kernel's part.
var driverTools = map[string]struct {
	programs []string
	packages string
	module   string
}{
	"btrfs": {[]string{"btrfs", "mkfs.btrfs"}, "btrfs-progs", "btrfs"},
	"zfs":   {[]string{"zfs", "zpool"}, "zfsutils-linux", "zfs"},
	"lvm":   {[]string{"lvm"}, "lvm2 thin-provisioning-tools", ""},
	"ceph":  {[]string{"ceph", "rbd"}, "ceph-common", ""},
}

// missing lists what a driver needs and this host lacks, in words. It is empty when nothing is known to be missing.
func (h *host) missing(driver string) []string {
	tools, ok := driverTools[driver]
	if !ok || h == nil {
		return nil
	}
	var missing []string
	programs := slices.DeleteFunc(slices.Clone(tools.programs), func(program string) bool { return h.find(program) != "" })
	if len(programs) > 0 && !h.snap {
		missing = append(missing, fmt.Sprintf("not on the PATH of %s: %s (PATH is %s)",
			h.whosePath(), strings.Join(programs, ", "), strings.Join(h.searchPath, ":")))
	}
	if tools.module == "" {
		return missing
	}
	if has, known := h.kernelHas(tools.module); known && !has {
		missing = append(missing, fmt.Sprintf("the kernel has no %s, neither built in nor as a module", tools.module))
	}
	return missing
}

func (h *host) whosePath() string {
	if h.daemonsPath {
		return "the daemon"
	}
	return "this process; the daemon's own cannot be read"
}

// find gives the path of a program that the daemon can run, or nothing.
func (h *host) find(program string) string { return findIn(h.searchPath, program) }

func findIn(dirs []string, program string) string {
	for _, dir := range dirs {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// loopDir is the directory of the daemon's loop files.
func (h *host) loopDir() string { return filepath.Join(h.dir, "disks") }
