// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// listed reads machine "m" out of the listing, and says how many requests that took.
func listed(t *testing.T, d *Daemon, server *lxdtest.Server) (*api.InstanceFull, int) {
	t.Helper()
	server.ForgetRequests()
	instance, err := d.ListedInstance(patient(t), "m")
	must(t, err)
	return instance, len(server.Requests())
}

func TestListingServesManyReads(t *testing.T) {
	t.Parallel()
	d, server := inMemory(t)
	must(t, d.CreateSnapshot(patient(t), "m", api.InstanceSnapshotsPost{Name: "s"}))
	for i := range 20 {
		must(t, d.CreateInstance(patient(t), emptyMachine(fmt.Sprintf("m%d", i), "pool-of-m")))
	}
	server.ForgetRequests()
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			name := fmt.Sprintf("m%d", i)
			if instance, err := d.ListedInstance(patient(t), name); err != nil || instance == nil || instance.Name != name {
				t.Errorf("%s: %+v, %v", name, instance, err)
			}
		})
	}
	group.Wait()
	m, err := d.ListedInstance(patient(t), "m")
	must(t, err)
	if len(m.Snapshots) != 1 || m.Snapshots[0].Name != "s" || m.State == nil {
		t.Errorf("listed with snapshots %+v and state %+v", m.Snapshots, m.State)
	}
	if got := len(server.Requests()); got != 1 {
		t.Errorf("%d requests for 21 reads, want 1: %v", got, server.Requests())
	}
	if other, requests := listed(t, d.InProject("elsewhere"), server); other != nil || requests != 1 {
		t.Errorf("another project has %+v, after %d requests", other, requests)
	}
}

func TestListingIsNeverOlderThanOurChanges(t *testing.T) {
	t.Parallel()
	d, server := inMemory(t)
	before, _ := listed(t, d, server)
	must(t, d.InProject("default").PatchInstance(patient(t), "m", map[string]any{"description": "changed"}))
	after, requests := listed(t, d, server)
	if before.Description != "" || after.Description != "changed" || requests != 1 {
		t.Errorf("before %q, after %q, read with %d requests", before.Description, after.Description, requests)
	}
	if _, requests := listed(t, d, server); requests != 0 {
		t.Errorf("%d requests although nothing changed", requests)
	}
}

func TestListingFromDuringAChangeIsNotKept(t *testing.T) {
	t.Parallel()
	_, server := inMemory(t)
	proxy := lxdtest.NewProxy(t, server.Socket())
	slow := connect(t, Config{Address: proxy.Address()})
	during := make(chan error, 1)
	proxy.Add(lxdtest.Rule{Method: http.MethodPatch, Do: func() {
		_, err := slow.ListedInstance(context.WithoutCancel(t.Context()), "m")
		during <- err
	}})
	must(t, slow.PatchInstance(patient(t), "m", map[string]any{"description": "changed"}))
	must(t, <-during)
	after, err := slow.ListedInstance(patient(t), "m")
	must(t, err)
	if after.Description != "changed" {
		t.Errorf("the listing from during the change is used after it: %q", after.Description)
	}
}

func TestListingShowsWhatOthersChangedInTheEnd(t *testing.T) {
	t.Parallel()
	d, server := inMemory(t)
	other := connect(t, Config{Address: server.Address()})
	listed(t, d, server)
	must(t, other.DeleteInstance(patient(t), "m"))
	d.listings.age = 0
	if gone, requests := listed(t, d, server); gone != nil || requests != 1 {
		t.Errorf("still listed: %+v, after %d requests", gone, requests)
	}
}

func TestListingThatFails(t *testing.T) {
	t.Parallel()
	_, server := inMemory(t)
	proxy := lxdtest.NewProxy(t, server.Socket())
	d := connect(t, Config{Address: proxy.Address()})
	proxy.Add(lxdtest.Rule{Path: "/instances$", Status: http.StatusInternalServerError, Error: "out of order", Times: 1})
	if _, err := d.ListedInstance(patient(t), "m"); err == nil {
		t.Error("no error of a listing that failed")
	}
	if m, err := d.ListedInstance(patient(t), "m"); err != nil || m == nil {
		t.Errorf("the next one does not ask again: %+v, %v", m, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.InProject("other").ListedInstance(ctx, "m"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
