// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"fmt"
	"strings"
)

// SourceID names what a new disk is taken from: a machine as it is now, or one of its snapshots.
type SourceID struct {
	Machine MachineID
	// Snapshot is nil for the machine as it is now.
	Snapshot *SnapshotID
}

// ParseSourceID reads the id of a machine or of a snapshot.
func ParseSourceID(s string) (SourceID, error) {
	switch strings.Count(s, "/") {
	case 2:
		machine, err := ParseMachineID(s)
		return SourceID{Machine: machine}, err
	case 4:
		snapshot, err := ParseSnapshotID(s)
		return SourceID{Machine: snapshot.Machine, Snapshot: &snapshot}, err
	default:
		return SourceID{}, fmt.Errorf("%q is the id of neither a machine nor a snapshot: refer to one by its id attribute, such as lab_machine.a.id or lab_snapshot.clean.id", s)
	}
}

// IsSnapshot says whether it is a snapshot.
func (id SourceID) IsSnapshot() bool { return id.Snapshot != nil }

// String is the form that references carry.
func (id SourceID) String() string {
	if id.IsSnapshot() {
		return id.Snapshot.String()
	}
	return id.Machine.String()
}

// path is how the daemon names it: "machine" or "machine/snapshot".
func (id SourceID) path() string {
	if id.IsSnapshot() {
		return id.Machine.Name + "/" + id.Snapshot.Name
	}
	return id.Machine.Name
}
