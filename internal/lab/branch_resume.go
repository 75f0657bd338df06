// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

// A branch with memory goes on where the guest of a checkpoint was. The daemon keeps the memory of a copy only when that
// has the name of its source, but what is stopped with memory can be renamed and moved. So the copy is made in a project
// of its own, renamed there, and moved to where the branch is to be. There it is given its devices, and resumed.

// resumePatience bounds the wait, after a failure or an interrupt, for the daemon to be done with a branch: a resume cannot
// be called off.
const resumePatience = 5 * time.Minute

// createResumed makes a branch with memory. Until the guest goes on, a failure removes all of it again; one that then
// fails is returned beside the error.
func (l *Lab) createResumed(ctx context.Context, spec *BranchSpec, from *origin, post api.InstancesPost, unlockSource func()) (*Machine, BranchTimings, error) {
	timings := BranchTimings{}
	if err := l.clearWay(ctx, spec.Name); err != nil {
		return nil, timings, err
	}
	start := time.Now()
	s := l.newStaging(spec.Name, from.live.Name, post.Config[keyUUID])
	if err := s.bring(ctx, from.member(), spec.staged(from, post, s.mark), unlockSource); err != nil {
		return s.abandon(ctx, spec, err, timings)
	}
	timings.BranchMS = since(start)
	if err := l.resumeBranch(ctx, spec, from, post); err != nil {
		return s.abandon(ctx, spec, err, timings)
	}
	timings.LaunchMS = since(start)
	_, err := l.equip(ctx, &spec.MachineSpec, len(spec.Files) > 0)
	if err == nil {
		timings.UsableMS = since(start)
	}
	machine, readErr := l.readMachine(ctx, spec.Name, spec.Config)
	if machine == nil {
		machine = l.machineMadeAnyway(ctx, spec.MachineSpec, s.id)
	}
	return machine, timings, errors.Join(err, readErr, s.handOver(ctx))
}

// staged is the request for the copy in the staging project: with nothing of what only the target's project has, its
// profiles and networks. The memory is in no need of them before it is resumed.
func (s *BranchSpec) staged(from *origin, post api.InstancesPost, m stagingMark) api.InstancesPost {
	post.Name, post.Stateful = from.live.Name, true
	post.Profiles = []string{}
	post.Config = maps.Clone(post.Config)
	post.Config[keyStaging] = m.String()
	post.Devices = map[string]map[string]string{}
	for name := range from.devices {
		post.Devices[name] = placeholder
	}
	post.Devices[from.rootName] = from.expandedDevices[from.rootName]
	return post
}

// resumeBranch gives a branch with memory, which was just moved to its project, its devices and profiles, and lets it go
// on.
func (l *Lab) resumeBranch(ctx context.Context, spec *BranchSpec, from *origin, post api.InstancesPost) error {
	live, etag, err := l.daemon.Instance(ctx, spec.Name)
	if err != nil {
		return err
	}
	put := live.Writable()
	put.Profiles, put.Devices = post.Profiles, spec.devicesOf(from)
	if err := l.daemon.ReplaceInstance(ctx, spec.Name, put, etag); err != nil {
		return err
	}
	if live, _, err = l.daemon.Instance(ctx, spec.Name); err != nil {
		return err
	}
	if err := capability.RefuseUnfitting(spec.Name, from.describe(), reshaped(live, from.asMade(live))); err != nil {
		return err
	}
	err = l.daemon.SetInstanceState(ctx, spec.Name, api.InstanceStatePut{Action: "start", Stateful: true, Timeout: secondsLeft(ctx)})
	if err != nil {
		return argumentErrorf("memory", "the memory did not come back: %w", err)
	}
	return nil
}

// asMade is the checkpoint with what a branch of it has otherwise on purpose: where its interfaces are connected, and that
// the host does not guard it.
func (o *origin) asMade(branch *api.Instance) *api.InstanceSnapshot {
	then := &api.InstanceSnapshot{ExpandedConfig: map[string]string{}, ExpandedDevices: map[string]map[string]string{}}
	maps.Copy(then.ExpandedConfig, o.expandedConfig)
	maps.Copy(then.ExpandedDevices, o.expandedDevices)
	for key := range neutral {
		then.ExpandedConfig[key] = branch.ExpandedConfig[key]
	}
	for name, device := range branch.ExpandedDevices {
		if device["type"] == "nic" && then.ExpandedDevices[name]["type"] == "nic" {
			then.ExpandedDevices[name] = device
		}
	}
	return then
}

// unplugged is a network interface like another one that is connected to nothing.
func unplugged(name string, device map[string]string) map[string]string {
	return map[string]string{"type": "nic", "nictype": "p2p", "name": cmp.Or(device["name"], name)}
}

// plugOff gives the branch an interface that is connected to nothing for each of the source's that networks leaves out:
// the guest has it in its memory.
func (s *BranchSpec) plugOff(devices map[string]map[string]string, from *origin) {
	if s.Networks == nil {
		return
	}
	for name, device := range from.expandedDevices {
		if device["type"] != "nic" {
			continue
		}
		if _, declared := s.Networks[name]; !declared {
			devices[name] = unplugged(name, device)
		}
	}
}

// resumeAsk is a branch with memory in the words of package capability; nil for other branches.
func (s *BranchSpec) resumeAsk(from *origin) *capability.ResumeAsk {
	if !s.WithMemory {
		return nil
	}
	ask := &capability.ResumeAsk{
		Stateful: from.stateful, Stopped: !s.Running, Reshaping: s.reshaping(), Lost: map[string]string{},
		Then: networksOf(from.expandedDevices), Now: networksOf(from.live.ExpandedDevices), Networks: map[string]string{},
	}
	for name, device := range from.devices {
		if from.onlyForOne(device) && shapeOf(device) != nil {
			ask.Lost[name] = "only one machine can have it, or it lies outside of the root disk"
		}
	}
	devices := map[string]map[string]string{}
	maps.Copy(devices, from.expandedDevices)
	maps.Copy(devices, s.devicesOf(from))
	ask.Networks = networksOf(devices)
	for name, nic := range s.Networks {
		if nic.IPv4Address != "" || nic.IPv6Address != "" || nic.HWAddr != "" {
			ask.Addressed = append(ask.Addressed, name)
		}
	}
	slices.Sort(ask.Addressed)
	return ask
}

// networksOf gives the network, or the bridge of the host, that each interface is on.
func networksOf(devices map[string]map[string]string) map[string]string {
	networks := map[string]string{}
	for name, device := range devices {
		if device["type"] == "nic" {
			networks[name] = cmp.Or(device["network"], device["parent"])
		}
	}
	return networks
}

// reshaping lists the arguments that a branch with memory cannot have, since they change the machine's shape or are for a
// boot.
func (s *BranchSpec) reshaping() []string {
	arguments := []string{}
	for _, argument := range []struct {
		name  string
		given bool
	}{
		{"cpus", s.CPUs > 0},
		{"disk", s.Disk != ""},
		{"devices", s.Devices != nil},
		{"profiles", s.Profiles != nil},
		{"cloud_init", s.CloudInit != CloudInit{}},
		{"config", slices.ContainsFunc(slices.Collect(maps.Keys(s.Config)), func(key string) bool { return !liveOn(TypeVirtualMachine, key) })},
	} {
		if argument.given {
			arguments = append(arguments, argument.name)
		}
	}
	return arguments
}
