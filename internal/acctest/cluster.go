// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// joinedName is the file in the directory of a host that joined another one's cluster.
const joinedName = "joined"

// StartCluster returns daemons of the test's own that form one cluster on loopback ports: a member for each of the
// options, which may be degraded, and stopped and started at will. All of them share this host's kernel, so a network
// can be on one of them only: a bridge has one owner. It skips the test in the cases in which [Start] does, and in
// short runs.
func StartCluster(t testing.TB, options ...Options) []*Host {
	t.Helper()
	need(t)
	if testing.Short() {
		t.Skip("a cluster takes several seconds to form")
	}
	hosts := make([]*Host, len(options))
	for i := range slices.Backward(options) { // the first one is cleaned up first, while the others still answer
		hosts[i] = Start(t, options[i])
		hosts[i].member = "m" + strconv.Itoa(i+1)
	}
	if err := formCluster(t.Context(), hosts); err != nil {
		t.Fatalf("Unable to form a cluster: %v", err)
	}
	for _, h := range hosts {
		h.peers = hosts
		if err := h.waitForPeers(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

// Member returns the host's name in its cluster; it is empty for a daemon that stands alone.
func (h *Host) Member() string { return h.member }

// formCluster makes the first host a cluster, and lets the others join it one after the other.
func formCluster(ctx context.Context, hosts []*Host) error {
	first := hosts[0]
	if err := first.listen(ctx); err != nil {
		return err
	}
	c, err := first.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Disconnect()
	op, err := c.UpdateCluster(api.ClusterPut{Cluster: api.Cluster{ServerName: first.member, Enabled: true}}, "")
	if err != nil {
		return err
	}
	if err := op.WaitContext(ctx); err != nil {
		return err
	}
	for _, h := range hosts[1:] {
		op, err := c.CreateClusterMember(api.ClusterMembersPost{ServerName: h.member})
		if err != nil {
			return err
		}
		request := op.Get()
		token, err := request.ToClusterJoinToken()
		if err != nil {
			return err
		}
		if err := h.join(ctx, token); err != nil {
			return fmt.Errorf("%s: %w", h.member, err)
		}
	}
	return nil
}

// join makes the daemon a member of a cluster. LXD's own program does it: it exchanges the certificates first.
func (h *Host) join(ctx context.Context, token *api.ClusterMemberJoinToken) error {
	if err := os.WriteFile(filepath.Join(h.root, joinedName), nil, 0o600); err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "lxd", "init", "--preseed")
	cmd.Env = append(withoutLXD(os.Environ()), "LXD_DIR="+h.Dir, "PATH="+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(fmt.Sprintf("cluster: {enabled: true, server_address: %q, cluster_token: %q}\n", address, token))
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("join the cluster: %w: %s", err, strings.TrimSpace(string(out)))
	}
	h.https = address
	return nil
}

// waitForPeers waits until all running members of the cluster reach this one, which takes them until the next heartbeat.
func (h *Host) waitForPeers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, peer := range h.peers {
		for peer.daemon.running() {
			err := peer.reach(ctx, h.member)
			if err == nil {
				break
			}
			if pause(ctx) != nil {
				return fmt.Errorf("%s does not reach %s: %w", peer.member, h.member, err)
			}
		}
	}
	return nil
}

// reach asks the daemon to pass a request on to a member of its cluster.
func (h *Host) reach(ctx context.Context, member string) error {
	c, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Disconnect()
	_, _, err = c.UseTarget(member).GetServer()
	return err
}

// joined tells whether the host in root is in another one's cluster. Asking it for anything may hang when the others
// have ended, and what it holds is theirs to remove.
func joined(root string) bool {
	_, err := os.Stat(filepath.Join(root, joinedName))
	return !errors.Is(err, os.ErrNotExist)
}
