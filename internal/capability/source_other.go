// SPDX-License-Identifier: MPL-2.0

//go:build !linux

package capability

import "os"

// openUnused opens a block device for reading. It is never called: the daemon runs on Linux only, so is not here.
func openUnused(path string) (*os.File, error) { return os.Open(path) }
