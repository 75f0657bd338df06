// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// ResumeAsk is what a branch that goes on from the memory of its source is asked for, beside what other branches are.
type ResumeAsk struct {
	// Stateful says that the source is a snapshot that holds memory.
	Stateful bool
	// Stopped says that the branch is not to run.
	Stopped bool
	// Reshaping are the arguments that would give it another shape than its source had, or that only a boot puts into
	// effect.
	Reshaping []string
	// Lost says of devices of the source that no branch has why not, by name.
	Lost map[string]string
	// Then are the networks that the source's interfaces were on in the snapshot, by the interface's name; Now are those
	// that they are on today.
	Then, Now map[string]string
	// Networks are those of the branch in the same form. Empty is none, with the interface connected to nothing.
	Networks map[string]string
	// Addressed are interfaces that were given an address.
	Addressed []string
}

// refuseResume refuses a branch with memory of which it is plain that the memory would not come back, or that the guest
// would get in its source's way.
func refuseResume(ask BranchAsk) *Refusal {
	if ask.Resume == nil {
		return nil
	}
	for _, check := range []func(BranchAsk) *Refusal{refuseForgetful, refuseAsleep, refuseReshaping, refuseLost, refuseSameNetwork} {
		if refusal := check(ask); refusal != nil {
			refusal.Capability, refusal.Asked = Checkpoints, ask.String()+", with its memory"
			return refusal
		}
	}
	return nil
}

// refuseForgetful refuses a source that holds no memory.
func refuseForgetful(ask BranchAsk) *Refusal {
	switch {
	case ask.Resume.Stateful && ask.Type == api.InstanceTypeVM:
		return nil
	case ask.Type != api.InstanceTypeVM:
		return &Refusal{
			Argument: "memory", Found: "the source is a container, and the memory of a container cannot be captured",
			Remedy: "Leave memory out, or branch off a checkpoint of a virtual machine.",
		}
	default:
		return &Refusal{
			Argument: "memory", Found: "the source holds no memory: only a snapshot of a virtual machine that was taken with its memory does",
			Remedy: "Set source to the id of a lab_snapshot with stateful = true, or leave memory out: the branch then boots.",
		}
	}
}

// refuseAsleep refuses a branch with memory that is not to run.
func refuseAsleep(ask BranchAsk) *Refusal {
	if !ask.Resume.Stopped {
		return nil
	}
	return &Refusal{
		Argument: "running", Found: "a branch with memory runs from the moment at which it is made: stopping it would lose the memory",
		Remedy: "Leave running out, and set it to false later. Or leave memory out.",
	}
}

// refuseReshaping refuses what would make another machine than the one that the memory is of.
func refuseReshaping(ask BranchAsk) *Refusal {
	if len(ask.Resume.Reshaping) == 0 {
		return nil
	}
	names := strings.Join(ask.Resume.Reshaping, ", ")
	return &Refusal{
		Argument: ask.Resume.Reshaping[0],
		Found: fmt.Sprintf("the guest goes on without a boot, on a machine as its checkpoint had it, and so %s cannot be other than there",
			names),
		Remedy: fmt.Sprintf("Leave out %s, and change the branch when it is there. Or leave memory out.", names),
	}
}

// refuseLost refuses a source with a device that the branch cannot have, and that the guest would miss.
func refuseLost(ask BranchAsk) *Refusal {
	if len(ask.Resume.Lost) == 0 {
		return nil
	}
	evidence := []string{}
	for _, name := range slices.Sorted(maps.Keys(ask.Resume.Lost)) {
		evidence = append(evidence, fmt.Sprintf("device %q: %s", name, ask.Resume.Lost[name]))
	}
	return &Refusal{
		Argument: "source", Found: "the guest had devices that a branch cannot have, and its memory only fits a machine with all of them", Evidence: evidence,
		Remedy: "Branch off a checkpoint that was taken without these devices, or leave memory out.",
	}
}

// setApart is how a branch with memory comes to have an address of its own.
const setApart = "Give each of its interfaces another network in networks, or none with networks = {}. " +
	"Once it runs, a change of networks in place plugs in a new interface, with a MAC address of its own."

// refuseSameNetwork refuses a branch that would meet its source on a network: two guests with one MAC address.
func refuseSameNetwork(ask BranchAsk) *Refusal {
	resume := ask.Resume
	taken := map[string]string{}
	for _, networks := range []map[string]string{resume.Now, resume.Then} {
		for name, network := range networks {
			taken[network] = name
		}
	}
	delete(taken, "")
	for _, name := range slices.Sorted(maps.Keys(resume.Networks)) {
		network := resume.Networks[name]
		_, had := resume.Then[name]
		theirs, meets := taken[network]
		switch {
		case !had:
			return &Refusal{
				Argument: "networks", Found: fmt.Sprintf("the guest has no interface %q in its memory, and so the branch cannot be made with one", name),
				Evidence: []string{"the checkpoint has " + interfaces(resume.Then)},
				Remedy:   "Name only interfaces of the checkpoint in networks, and add others in place when the branch is there.",
			}
		case meets:
			return &Refusal{
				Argument: "networks",
				Found: fmt.Sprintf("the guest keeps the MAC address and the IP addresses of its source from its memory, and on network %q the two would collide",
					network),
				Evidence: []string{
					fmt.Sprintf("interface %q of the branch would be on network %q", name, network),
					fmt.Sprintf("so is or was interface %q of its source", theirs),
				},
				Remedy: setApart,
			}
		}
	}
	if len(resume.Addressed) > 0 {
		return &Refusal{
			Argument: "networks", Found: "the guest keeps its addresses from its memory, and takes no others before it boots",
			Evidence: []string{"addresses are declared for " + strings.Join(resume.Addressed, ", ")},
			Remedy:   "Leave the addresses out of networks. " + setApart,
		}
	}
	return nil
}

func interfaces(networks map[string]string) string {
	if len(networks) == 0 {
		return "no network interface"
	}
	return strings.Join(slices.Sorted(maps.Keys(networks)), ", ")
}

// RefuseUnfitting refuses to resume a branch that is not shaped as its source's checkpoint, as can only be seen of the
// finished branch: its project's profiles may say something else. The error is a [Refusal]; it is nil when there is no
// difference.
func RefuseUnfitting(branch, source string, differences []string) error {
	if len(differences) == 0 {
		return nil
	}
	return &Refusal{
		Capability: Checkpoints, Argument: "memory",
		Asked:    fmt.Sprintf("branch %q of %s, with its memory", branch, source),
		Found:    "the branch would not be shaped as the machine was, and the memory only comes back to a machine of the same shape",
		Evidence: differences,
		Remedy:   "Make the profiles of the branch's project say the same as those of the source's, or leave memory out.",
	}
}
