// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// MachineAsk is a machine or a branch as it is asked for.
type MachineAsk struct {
	// Name is the machine's name.
	Name string
	// Type is the instance type; empty means a container.
	Type api.InstanceType
	// Pool is the pool of its root disk; empty when it is not known yet.
	Pool string
	// CPUs and MemoryBytes are its limits; 0 means none.
	CPUs, MemoryBytes int64
	// Checkpointable asks for a machine whose memory can be captured, which some of its Devices may not allow.
	Checkpointable bool
	Devices        map[string]map[string]string
	// Applying says that the machine is about to be made: what is not there now will not come.
	Applying bool
}

func (a MachineAsk) kind() api.InstanceType { return cmp.Or(a.Type, api.InstanceTypeContainer) }

func (a MachineAsk) String() string {
	return fmt.Sprintf("machine %q, a %s, on pool %q", a.Name, strings.ReplaceAll(string(a.kind()), "-", " "), a.Pool)
}

// AdmitMachine says whether a machine may be made or changed, by the facts alone. The error is a [Refusal] when it
// may not. A pool that does not exist is no reason at plan: the same apply may make it.
func (c *Checker) AdmitMachine(ctx context.Context, ask MachineAsk) error {
	read := c.Facts
	if ask.Applying {
		read = func(ctx context.Context) (*Facts, error) { return c.factsWithPool(ctx, ask.Pool) }
	}
	facts, err := read(ctx)
	if err != nil {
		return err
	}
	for _, check := range []func(MachineAsk) *Refusal{facts.refuseType, facts.refusePool, facts.refuseLimits, facts.refuseUncapturable} {
		if refusal := check(ask); refusal != nil {
			return refusal
		}
	}
	return nil
}

// refuseType refuses a type of machine that the daemon cannot run, or warns that it cannot.
func (f *Facts) refuseType(ask MachineAsk) *Refusal {
	types := f.instanceTypes()
	if len(types) == 0 || slices.Contains(types, ask.kind()) {
		return f.refuseWarned(ask)
	}
	refusal := &Refusal{
		Capability: Containers, Argument: "type", Asked: ask.String(),
		Found:    fmt.Sprintf("the daemon cannot run a %s", strings.ReplaceAll(string(ask.kind()), "-", " ")),
		Evidence: append([]string{f.runsWith()}, f.notOperational()...),
		Remedy:   "See the daemon's log for what it lacks.",
	}
	if ask.kind() == api.InstanceTypeVM {
		refusal.Capability = VirtualMachines
		refusal.Remedy = virtualMachineRemedy
	}
	return refusal
}

// virtualMachineRemedy says what a host needs to run virtual machines.
const virtualMachineRemedy = "Give the daemon's host hardware virtualisation (/dev/kvm, vhost_vsock) and QEMU, and restart the daemon. Or do with containers."

// refuseWarned refuses virtual machines that the daemon lists while its own warning says why they do not run. On a cluster
// the warning may be another member's than the one that the machine comes to.
func (f *Facts) refuseWarned(ask MachineAsk) *Refusal {
	words := f.notOperational()
	if ask.kind() != api.InstanceTypeVM || len(words) == 0 || len(f.Members) > 0 {
		return nil
	}
	return &Refusal{
		Capability: VirtualMachines, Argument: "type", Asked: ask.String(),
		Found:    "the daemon lists virtual machines, and warns that they do not run",
		Evidence: append([]string{f.runsWith()}, words...),
		Remedy: "Give the daemon's host what the warning names, and restart the daemon. If the warning is out of date, acknowledge it: " +
			"`lxc warning list` shows it, and `lxc warning acknowledge` takes its UUID.",
	}
}

// runsWith says which kinds of machines the daemon has drivers for.
func (f *Facts) runsWith() string {
	return fmt.Sprintf("%s %s runs with the drivers: %s", f.product(), f.Environment.ServerVersion, f.Environment.Driver)
}

// refusePool refuses a pool that does not copy on write or, when applying, is not there.
func (f *Facts) refusePool(ask MachineAsk) *Refusal {
	pools := f.Pools
	if ask.Applying {
		pools = f.present
	}
	if pool, ok := pools[ask.Pool]; ok {
		refusal := f.refuseTraits(ask.String(), pool)
		if refusal != nil {
			refusal.Argument = "pool"
			refusal.Remedy = "Use a pool that copies on write: lab_storage_pool makes one, with driver btrfs by default."
		}
		return refusal
	}
	if ask.Pool == "" || !ask.Applying {
		return nil
	}
	return f.refuseMissing(ask.String(), ask.Pool)
}

// refuseMissing refuses a pool that is not there.
func (f *Facts) refuseMissing(asked, pool string) *Refusal {
	names := slices.Sorted(maps.Keys(f.present))
	return &Refusal{
		Capability: Pools, Argument: "pool", Asked: asked,
		Found:    fmt.Sprintf("the daemon has no pool %q", pool),
		Evidence: []string{"pools of this daemon: " + cmp.Or(strings.Join(names, ", "), "none")},
		Remedy:   "Refer to the pool by the id of its lab_storage_pool, so that it is made first.",
	}
}

// refuseLimits refuses a virtual machine that is larger than its host. A container's limits are only an upper bound.
func (f *Facts) refuseLimits(ask MachineAsk) *Refusal {
	if ask.kind() != api.InstanceTypeVM || f.Resources == nil || len(f.Members) > 1 {
		return nil
	}
	cpus, memory := int64(f.Resources.CPU.Total), int64(f.Resources.Memory.Total) //nolint:gosec // processors and bytes of a host
	refusal := &Refusal{
		Capability: Headroom, Asked: ask.String(),
		Evidence: []string{fmt.Sprintf("the host has %d processors and %s of memory", cpus, size(memory))},
	}
	switch {
	case memory > 0 && ask.MemoryBytes > memory:
		refusal.Argument = "memory"
		refusal.Found = fmt.Sprintf("the virtual machine would have more memory than its host: %s of %s", size(ask.MemoryBytes), size(memory))
		refusal.Remedy = fmt.Sprintf("Set memory to less than %s.", size(memory))
	case cpus > 0 && ask.CPUs > cpus:
		refusal.Argument = "cpus"
		refusal.Found = fmt.Sprintf("the virtual machine would have more processors than its host: %d of %d", ask.CPUs, cpus)
		refusal.Remedy = fmt.Sprintf("Set cpus to at most %d.", cpus)
	default:
		return nil
	}
	return refusal
}
