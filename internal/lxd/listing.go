// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// listingAge is how long a listing answers reads: about as long as Terraform takes to refresh some hundred objects.
// What others change meanwhile is seen by the next one.
const listingAge = 5 * time.Second

// listings are the machines of each project, as they were listed last. They are shared by all views of a daemon.
type listings struct {
	// writes counts the changes that this process began, and those that ended. A listing from before a change, or from
	// during one, is of no use after it.
	writes atomic.Int64
	age    time.Duration

	mu        sync.Mutex
	byProject map[string]*listing
}

// listing is the machines of one project.
type listing struct {
	// turn admits one reader at a time, so that those who come meanwhile use what it read. It is a channel so that
	// waiting for it obeys a context.
	turn   chan struct{}
	asked  time.Time
	writes int64
	found  map[string]*api.InstanceFull
}

func newListings() *listings { return &listings{age: listingAge, byProject: map[string]*listing{}} }

// writing marks everything that was listed as out of date, now and when the change has ended.
func (l *listings) writing() (ended func()) {
	l.writes.Add(1)
	return func() { l.writes.Add(1) }
}

func (l *listings) of(project string) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byProject[project] == nil {
		l.byProject[project] = &listing{turn: make(chan struct{}, 1)}
	}
	return l.byProject[project]
}

// ListedInstance reads an instance with its live state and its snapshots, out of a listing of the whole project that
// serves all who ask within some seconds: many reads cost one request. The listing is never older than a change that
// this process made, but can be than one by others: before a change, use [Daemon.Instance]. It is nil when the listing
// does not have the instance, or the daemon could not read it; only a read of it alone tells which.
func (d *Daemon) ListedInstance(ctx context.Context, name string) (*api.InstanceFull, error) {
	listing := d.listings.of(d.project)
	select {
	case listing.turn <- struct{}{}:
		defer func() { <-listing.turn }()
	case <-ctx.Done():
		return nil, classify("list machines", ctx.Err())
	}
	if listing.found == nil || listing.writes != d.listings.writes.Load() || time.Since(listing.asked) > d.listings.age {
		if err := listing.read(ctx, d.client(ctx), d.listings.writes.Load()); err != nil {
			return nil, err
		}
	}
	return listing.found[name], nil
}

func (l *listing) read(ctx context.Context, client lxdclient.InstanceServer, writes int64) error {
	l.asked, l.writes, l.found = time.Now(), writes, nil
	instances, err := list(ctx, "list machines", func() ([]api.InstanceFull, error) { return client.GetInstancesFull(api.InstanceTypeAny) })
	if err != nil {
		return err
	}
	l.found = make(map[string]*api.InstanceFull, len(instances))
	for i := range instances {
		// One that the daemon could not read, on a cluster member that is down, say, is listed without its particulars.
		if instances[i].StatusCode != api.Error && instances[i].State != nil {
			l.found[instances[i].Name] = &instances[i]
		}
	}
	return nil
}
