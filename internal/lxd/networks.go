// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"fmt"
	"net/http"

	"github.com/canonical/lxd/shared/api"
)

// Network reads a network and its ETag.
func (d *Daemon) Network(ctx context.Context, name string) (*api.Network, string, error) {
	network, etag, err := d.client(ctx).GetNetwork(name)
	return network, etag, classify(fmt.Sprintf("read network %q", name), err)
}

// CreateNetwork makes a network.
func (d *Daemon) CreateNetwork(ctx context.Context, network api.NetworksPost) error {
	return d.change(ctx, fmt.Sprintf("create network %q", network.Name), http.MethodPost, d.path("networks"), network, "")
}

// ReplaceNetwork writes the whole configuration of a network, if nobody changed it since the etag was read.
func (d *Daemon) ReplaceNetwork(ctx context.Context, name string, network api.NetworkPut, etag string) error {
	return d.change(ctx, fmt.Sprintf("update network %q", name), http.MethodPut, d.path("networks", name), network, etag)
}

// DeleteNetwork removes a network.
func (d *Daemon) DeleteNetwork(ctx context.Context, name string) error {
	return d.change(ctx, fmt.Sprintf("delete network %q", name), http.MethodDelete, d.path("networks", name), nil, "")
}
