// SPDX-License-Identifier: MPL-2.0

//go:build unix

package lxd

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// groupOf gives the name of the group that a file belongs to; empty where it cannot be told.
func groupOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	group, err := user.LookupGroupId(strconv.FormatUint(uint64(status.Gid), 10))
	if err != nil {
		return ""
	}
	return group.Name
}
