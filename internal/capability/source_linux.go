// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openUnused opens a block device for reading, unless the kernel says that somebody has it: with O_EXCL it fails for
// one that is mounted or part of something else.
func openUnused(path string) (*os.File, error) {
	device, err := os.OpenFile(path, os.O_RDONLY|unix.O_EXCL, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, errInUse
	}
	return device, err
}
