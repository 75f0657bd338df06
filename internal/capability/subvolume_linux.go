// SPDX-License-Identifier: MPL-2.0

//go:build linux && cgo

package capability

import "github.com/containerd/btrfs/v2"

// subvolume reads from the file system what a btrfs subvolume is and what it was made from.
func subvolume(path string) (uuid, parent string, ok bool) {
	info, err := btrfs.SubvolInfo(path)
	if err != nil {
		return "", "", false
	}
	return info.UUID, info.ParentUUID, true
}
