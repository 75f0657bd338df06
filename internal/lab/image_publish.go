// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// DefaultCompression is how a published image is compressed: not at all. That is the fastest to write and to unpack, and
// needs no program on any daemon.
const DefaultCompression = "none"

// ImagePublish is an image to make of a machine.
type ImagePublish struct {
	Source SourceID
	// Stop consents to stopping a running machine for as long as its disk is copied.
	Stop bool
	// Compression is the daemon's name for how the image is compressed; empty is [DefaultCompression].
	Compression string
}

// sourceInstance is the daemon's word for an image that is made of an instance.
const sourceInstance = "instance"

// imageKeys begin the configuration keys that repeat the properties of a machine's image.
const imageKeys = "image."

// publish makes an image of a machine or of a snapshot, marked with an id, and gives its fingerprint. What is published is
// a copy on write, made for that and removed again: so a machine is down only while it is copied, an interrupt can make
// the daemon stop by removing the copy, and what would give the source away can be cleared.
func (l *Lab) publish(ctx context.Context, publish *ImagePublish, id string) (fingerprint string, err error) {
	name := momentaryName("publish", publish.Source.Machine.UUID)
	unlock, err := l.daemon.Lock(ctx, name)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := l.discard(ctx, name); err != nil { // what a run that died has left
		return "", err
	}
	var discardErr error
	discard := sync.OnceFunc(func() { discardErr = l.remove(ctx, name) })
	defer func() { discard(); err = errors.Join(err, discardErr) }()

	from, err := l.copyToPublish(ctx, publish, name)
	if err != nil {
		return "", err
	}
	if from.live.Type == TypeContainer { // the disk of a virtual machine cannot be written from outside
		if err := l.clearMachineID(ctx, name); err != nil {
			return "", err
		}
	}
	defer context.AfterFunc(ctx, discard)()
	post := api.ImagesPost{
		Source:               &api.ImagesPostSource{Type: sourceInstance, Name: name},
		CompressionAlgorithm: publish.Compression,
	}
	post.Properties = inheritedProperties(from.config)
	post.Properties[keyID] = id
	made, err := l.daemon.ImportImage(ctx, post)
	if err != nil && made != "" { // it was done just when we gave up
		ctx, cancel := detached(ctx)
		defer cancel()
		return "", errors.Join(err, l.DeleteImage(ctx, made, ImageSpec{}, true))
	}
	return made, err
}

// inheritedProperties are those of the image that a machine was made from.
func inheritedProperties(config map[string]string) map[string]string {
	properties := map[string]string{}
	for key, value := range config {
		name, ok := strings.CutPrefix(key, imageKeys)
		if ok && !strings.HasPrefix(name, keyPrefix) {
			properties[name] = value
		}
	}
	return properties
}

// AdmitPublish says whether an image may be made of a machine, by what can be read. The error says which argument is at
// fault, and is [lxd.ErrNotFound] when the source is gone.
func (l *Lab) AdmitPublish(ctx context.Context, publish *ImagePublish) error {
	_, err := l.publishable(ctx, publish)
	return err
}

// publishable reads what an image is to be made of, if that may be done.
func (l *Lab) publishable(ctx context.Context, publish *ImagePublish) (*origin, error) {
	const argument = "publish.source"
	if have := publish.Source.Machine.Project; have != l.daemon.Project() {
		return nil, argumentErrorf(argument, "it is in project %q, and the image would be in %q: set project to the former", have, l.daemon.Project())
	}
	from, err := l.origin(ctx, publish.Source)
	if err != nil {
		return nil, &ArgumentError{Argument: argument, Err: err}
	}
	switch {
	case publish.Source.IsSnapshot(), from.live.StatusCode == api.Stopped:
	case from.live.Ephemeral:
		return nil, argumentErrorf(argument, "%s is ephemeral: stopping it would delete it. Publish a snapshot of it", from.describe())
	case !publish.Stop:
		return nil, argumentErrorf("publish.stop", "%s is running, and an image of a running machine would hold half-written files. "+
			"Set stop = true to have it stopped for a moment and started again, or publish a snapshot of it", from.describe())
	}
	return from, nil
}

// copyToPublish makes the copy that is published, and gives what it was made of. A machine that runs is stopped for it
// and started again, whatever comes of the copy.
func (l *Lab) copyToPublish(ctx context.Context, publish *ImagePublish, name string) (from *origin, err error) {
	unlock, err := l.daemon.Lock(ctx, publish.Source.Machine.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	from, err = l.publishable(ctx, publish)
	if err != nil {
		return nil, err
	}
	if live := from.live; !publish.Source.IsSnapshot() && live.StatusCode != api.Stopped {
		defer func() { err = errors.Join(err, l.runAgain(ctx, live)) }()
		if err := l.shutDown(ctx, live.Name, shutDownPatience); err != nil {
			return nil, err
		}
	}
	return from, l.daemon.OnMember(from.member()).CreateInstance(ctx, from.copyPost(name))
}

// copyPost is the request that makes a copy which is never started: it has no device but its disk, and nothing that
// keeps the daemon from removing it.
func (o *origin) copyPost(name string) api.InstancesPost {
	post := api.InstancesPost{Name: name, Type: api.InstanceType(o.live.Type)}
	post.Source = api.InstanceSource{Type: api.SourceTypeCopy, Source: o.source.path(), Project: o.source.Machine.Project, InstanceOnly: true}
	post.Description = "What an image is being made of. It goes when that is done."
	post.Profiles = []string{}
	post.Config = o.cleared()
	id := uuid.NewString()
	post.Config[keyUUID], post.Config[keyID] = id, id
	post.Devices = map[string]map[string]string{}
	for device := range o.devices {
		post.Devices[device] = placeholder
	}
	post.Devices[o.rootName] = o.expandedDevices[o.rootName]
	return post
}

// clearMachineID takes its machine id away from a copy of a container. Each machine of the image gets one of its own at
// its first boot.
func (l *Lab) clearMachineID(ctx context.Context, machine string) error {
	return l.eachMachineID(ctx, machine, func(path string) error {
		// An empty file gets an id at every boot, and unlike one that is not there it does not make systemd take the boot
		// for the first one ever. D-Bus makes its own only where it is not there.
		if path == machineIDFiles[0] {
			return l.daemon.PushFile(ctx, machine, lxd.File{Path: path, Mode: machineIDMode})
		}
		return l.daemon.RemoveFile(ctx, machine, path)
	})
}

// runAgain starts a machine that we have stopped, or had begun to, and waits until it is as ready as it was declared to be.
func (l *Lab) runAgain(ctx context.Context, machine *api.Instance) error {
	err := undo(ctx, fmt.Sprintf("machine %q, which was stopped to be copied, runs again", machine.Name), func(ctx context.Context) error {
		if err := l.daemon.Idle(ctx, machine.Name); err != nil {
			return err
		}
		live, _, err := l.daemon.Instance(ctx, machine.Name)
		if err != nil || live.StatusCode != api.Stopped {
			return err
		}
		return l.power(ctx, machine.Name, true)
	})
	if ready, declared := machine.Config[keyReady]; declared && err == nil && ctx.Err() == nil {
		return waitUsable(ctx, l.daemon, machine.Name, decodeReady(ready))
	}
	return err
}
