// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// blankMargin is how much of a block device is read at each end: every file system, partition table, LVM or RAID
// label has its signature there.
const blankMargin = 1 << 20

// foreign says what a pool's source on this host holds that is not ours to lose; empty when it holds nothing. A path
// that does not exist yet holds nothing.
func foreign(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return foreignInDir(path)
	case info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0:
		return foreignOnDevice(path)
	case info.Mode().IsRegular():
		return fmt.Sprintf("it is a file of %d bytes", info.Size()), nil
	default:
		return "it is neither a directory nor a block device", nil
	}
}

func foreignInDir(path string) (string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the directory is not empty: it holds %s", filepath.Join(path, names[0])), nil
}

func foreignOnDevice(path string) (string, error) {
	device, err := openUnused(path)
	if errors.Is(err, errInUse) {
		return "the device is in use by this host (mounted, or part of a volume group or RAID)", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = device.Close() }()
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	for _, offset := range []int64{0, max(0, size-blankMargin)} {
		at, err := firstNonZero(io.NewSectionReader(device, offset, blankMargin))
		if err != nil {
			return "", err
		}
		if at >= 0 {
			return fmt.Sprintf("the device is not blank: there is data at byte %d", offset+at), nil
		}
	}
	return "", nil
}

// firstNonZero gives the offset of the first byte that is not zero, or -1.
func firstNonZero(reader io.Reader) (int64, error) {
	buffer := make([]byte, 64<<10)
	for base := int64(0); ; {
		n, err := reader.Read(buffer)
		for i, b := range buffer[:n] {
			if b != 0 {
				return base + int64(i), nil
			}
		}
		base += int64(n)
		if errors.Is(err, io.EOF) {
			return -1, nil
		}
		if err != nil {
			return -1, err
		}
	}
}

// errInUse says that somebody holds a device exclusively.
var errInUse = errors.New("in use")
