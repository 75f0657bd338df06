// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"fmt"
	"regexp"

	"github.com/canonical/lxd/shared/units"
)

// sizeForm is what LXD takes for a size in bytes: a number and a unit, with no space between. A bare number is bytes.
var sizeForm = regexp.MustCompile(`^[0-9]+(B|kB|MB|GB|TB|PB|EB|KiB|MiB|GiB|TiB|PiB|EiB)?$`)

// ParseSize reads a size such as "512MiB" and gives it in bytes. The error says which units there are.
func ParseSize(s string) (int64, error) {
	if !sizeForm.MatchString(s) {
		return 0, fmt.Errorf(`%q is not a size: write a number and a unit without a space, such as "512MiB" or "20GiB" (kB MB GB TB are powers of 1000; KiB MiB GiB TiB are powers of 1024)`, s)
	}
	bytes, err := units.ParseByteSizeString(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size: %w", s, err)
	}
	if bytes <= 0 {
		return 0, fmt.Errorf("%q is not a size: it must be more than nothing", s)
	}
	return bytes, nil
}

// bytesOf is a size that was validated where it came in; none, or one that is no size, is 0.
func bytesOf(s string) int64 {
	bytes, err := ParseSize(s)
	if err != nil {
		return 0
	}
	return bytes
}
