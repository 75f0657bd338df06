// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// The daemon gives a branch a new uuid, new MAC addresses and a new cloud-init instance, and writes its host name where
// the image has a template for that. It does not know of the machine id, which is on the disk: two machines that ask
// DHCP for an address under one machine id get the same address.

// machineIDFiles hold the machine id: systemd's own, and D-Bus's, which is a file of its own on older systems.
var machineIDFiles = []string{"/etc/machine-id", "/var/lib/dbus/machine-id"}

// machineIDForm is a machine id. A file without one gets one at the first boot, as in an image.
var machineIDForm = regexp.MustCompile(`^[0-9a-f]{32}\s*$`)

// machineIDMode lets everybody read a machine id, and nobody write it.
const machineIDMode = 0o444

// newMachineID is one that nobody has. It is written, and not just removed: a system without one takes its boot for
// the first one ever, and resets which services are enabled.
func newMachineID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// renewMachineID gives a branch a machine id of its own before it is on any network.
func (l *Lab) renewMachineID(ctx context.Context, spec *BranchSpec, from *origin) error {
	if from.live.Type == TypeContainer {
		return l.writeMachineID(ctx, spec.Name)
	}
	if !spec.renewsWithin(from) {
		return nil
	}
	return l.renewWithin(ctx, spec.Name)
}

// writeMachineID renews the machine id of a stopped container.
func (l *Lab) writeMachineID(ctx context.Context, machine string) error {
	id := newMachineID()
	return l.eachMachineID(ctx, machine, func(path string) error {
		return l.daemon.PushFile(ctx, machine, lxd.File{Path: path, Content: []byte(id + "\n"), Mode: machineIDMode})
	})
}

// eachMachineID does something with each file of a stopped container that holds a machine id.
func (l *Lab) eachMachineID(ctx context.Context, machine string, do func(path string) error) error {
	for _, path := range machineIDFiles {
		id, err := l.daemon.File(ctx, machine, path)
		if errors.Is(err, lxd.ErrNotFound) || (err == nil && !machineIDForm.Match(id)) {
			continue
		}
		if err != nil {
			return err
		}
		if err := do(path); err != nil {
			return err
		}
	}
	return nil
}

// renewsWithin says whether the machine id is renewed from within: the disk of a virtual machine can only be written
// by its own agent. One that is declared usable without the agent may not have it.
func (s *BranchSpec) renewsWithin(from *origin) bool {
	return from.live.Type == TypeVirtualMachine && !s.WithMemory && (s.Ready.needsAgent() || len(s.Setup) > 0)
}

// renewScript writes a machine id where there is one, and sees that it is on the disk.
const renewScript = `for file in %s; do [ -f "$file" ] && [ ! -L "$file" ] && [ -s "$file" ] && echo %s >"$file"; done; sync`

// renewWithin boots a virtual machine, off all networks, to renew its machine id, and stops it again.
func (l *Lab) renewWithin(ctx context.Context, machine string) error {
	if err := l.power(ctx, machine, true); err != nil {
		return err
	}
	if err := waitExec(ctx, l.daemon, machine); err != nil {
		return err
	}
	script := fmt.Sprintf(renewScript, strings.Join(machineIDFiles, " "), newMachineID())
	result, err := l.daemon.Exec(ctx, machine, lxd.Command{Args: []string{"sh", "-c", script}})
	if err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("renew the machine id of machine %q: %s", machine, describe(result))
	}
	return l.power(ctx, machine, false)
}
