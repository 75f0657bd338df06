// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockHolder says which process holds a file's lock, as far as the kernel tells.
func lockHolder(path string) string {
	status := syscall.Stat_t{}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || syscall.Stat(path, &status) != nil {
		return someProcess
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(status.Dev), unix.Minor(status.Dev), status.Ino)
	pid := flockHolder(string(locks), file)
	if pid == 0 {
		return someProcess
	}
	command, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	program, _, _ := bytes.Cut(command, []byte{0})
	if err != nil || len(program) == 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, filepath.Base(string(program)))
}

// flockHolder finds the process that holds a file in the text of /proc/locks. A file is "MAJOR:MINOR:INODE"; 0 means
// that it is not there, or of another container.
func flockHolder(locks, file string) int {
	for line := range strings.Lines(locks) {
		// "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF"; a second field of "->" is one that waits.
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
