// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// MachineID names one incarnation of a machine: a machine of the same name made later is another one.
type MachineID struct {
	Project, Name string
	// UUID is the daemon's own for the machine (volatile.uuid).
	UUID string
}

// String is the form that references carry: "project/name/uuid".
func (id MachineID) String() string { return id.Project + "/" + id.Name + "/" + id.UUID }

// ParseMachineID reads what [MachineID.String] writes.
func ParseMachineID(s string) (MachineID, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return MachineID{}, fmt.Errorf(`%q is not the id of a machine ("project/name/uuid"): refer to a machine by its id attribute, such as lab_machine.a.id`, s)
	}
	if _, err := uuid.Parse(parts[2]); err != nil {
		return MachineID{}, fmt.Errorf("%q is not the id of a machine: %w", s, err)
	}
	return MachineID{Project: parts[0], Name: parts[1], UUID: parts[2]}, nil
}

// SnapshotID names one snapshot of one incarnation of a machine.
type SnapshotID struct {
	Machine MachineID
	Name    string
	// CreatedAt tells a snapshot from a later one of the same name.
	CreatedAt time.Time
}

// String is the form that references carry: "project/machine/uuid/snapshot/created-at".
func (id SnapshotID) String() string {
	return id.Machine.String() + "/" + id.Name + "/" + id.CreatedAt.UTC().Format(time.RFC3339Nano)
}

// ParseSnapshotID reads what [SnapshotID.String] writes.
func ParseSnapshotID(s string) (SnapshotID, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 {
		return SnapshotID{}, fmt.Errorf(`%q is not the id of a snapshot ("project/machine/uuid/snapshot/created-at"): refer to a snapshot by its id attribute, such as lab_snapshot.clean.id`, s)
	}
	machine, err := ParseMachineID(strings.Join(parts[:3], "/"))
	if err != nil {
		return SnapshotID{}, err
	}
	created, err := time.Parse(time.RFC3339Nano, parts[4])
	if err != nil || parts[3] == "" {
		return SnapshotID{}, errors.Join(fmt.Errorf("%q is not the id of a snapshot", s), err)
	}
	return SnapshotID{Machine: machine, Name: parts[3], CreatedAt: created.UTC()}, nil
}
