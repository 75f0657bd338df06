// SPDX-License-Identifier: MPL-2.0

//go:build !linux || !cgo

package capability

// lineageOfCopies gives nothing: reading a btrfs file system's own records takes Linux and cgo.
func (p *probe) lineageOfCopies() *lineage { return nil }

// lineageOfRestore gives nothing, as above.
func (p *probe) lineageOfRestore(lineage) *lineage { return nil }
