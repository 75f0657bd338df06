// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"errors"
	"time"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"
)

const (
	// emptyTimeout bounds what a daemon may take to remove what it holds.
	emptyTimeout = 30 * time.Second
	// emptyParallel is how many instances are removed at once.
	emptyParallel = 8
)

// emptyDaemon removes the instances and networks of a daemon.
func emptyDaemon(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	c, err := lxd.ConnectLXDUnixWithContext(ctx, socket, nil)
	if err != nil {
		return err
	}
	defer c.Disconnect()
	instances, err := c.GetInstancesAllProjects(api.InstanceTypeAny)
	if err != nil {
		return err
	}
	if err := removeInstances(ctx, c, instances); err != nil {
		return err
	}
	networks, err := c.GetNetworks()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range networks {
		if n.Managed {
			errs = append(errs, c.DeleteNetwork(n.Name))
		}
	}
	return errors.Join(errs...)
}

func removeInstances(ctx context.Context, c lxd.InstanceServer, instances []api.Instance) error {
	var g errgroup.Group
	g.SetLimit(emptyParallel)
	for _, i := range instances {
		g.Go(func() error { return removeInstance(ctx, c.UseProject(i.Project), i) })
	}
	return g.Wait()
}

func removeInstance(ctx context.Context, c lxd.InstanceServer, i api.Instance) error {
	if i.StatusCode != api.Stopped {
		op, err := c.UpdateInstanceState(i.Name, api.InstanceStatePut{Action: "stop", Force: true, Timeout: -1}, "")
		if err != nil {
			return err
		}
		// An ephemeral instance is gone then, and some states cannot be stopped: the deletion tells.
		_ = op.WaitContext(ctx)
	}
	op, err := c.DeleteInstance(i.Name)
	if api.StatusErrorCheck(err, 404) {
		return nil
	}
	if err != nil {
		return err
	}
	return op.WaitContext(ctx)
}
