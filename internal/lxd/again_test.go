// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// A race within the daemon is over at once: what was lost to it is asked again, and a little later told as it is.
func TestRacesWithinTheDaemon(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, words string
		status      int
		ask         func(ctx context.Context, d *Daemon, machine string) error
	}{
		"pools": {"/1.0/storage-pools", "Storage pool not found", http.StatusNotFound, func(ctx context.Context, d *Daemon, _ string) error {
			pools, err := d.Pools(ctx)
			if err == nil && len(pools) != 1 {
				return fmt.Errorf("got %d pools, want 1", len(pools))
			}
			return err
		}},
		"machines": {"/1.0/instances", "Instance not found", http.StatusNotFound, func(ctx context.Context, d *Daemon, machine string) error {
			d.listings.writing()() // what was listed before is of no use
			listed, err := d.ListedInstance(ctx, machine)
			if err == nil && listed == nil {
				return fmt.Errorf("machine %q is not listed", machine)
			}
			return err
		}},
		"files": {"/files", "dial unix /proc/self/fd/7/forkfile.sock: connect: no such file or directory", http.StatusInternalServerError, func(ctx context.Context, d *Daemon, machine string) error {
			if err := d.PushFile(ctx, machine, File{Path: "/note", Content: []byte("kept"), Mode: 0o644}); err != nil {
				return err
			}
			content, err := d.File(ctx, machine, "/note")
			if err == nil && string(content) != "kept" {
				return fmt.Errorf("read %q", content)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := lxdtest.New(t)
			client := server.Client(t)
			must(t, client.CreateStoragePool(api.StoragePoolsPost{Name: "pool", Driver: "dir"}))
			post := api.InstancesPost{Name: "m", Type: "container", Source: api.InstanceSource{Type: "none"}}
			post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
			operation, err := client.CreateInstance(post)
			must(t, err)
			must(t, operation.Wait())
			losses := atomic.Int32{}
			d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.HasSuffix(r.URL.Path, test.path) && losses.Add(-1) >= 0 {
					answer(t, w, test.status, api.ResponseRaw{Type: api.ErrorResponse, Code: test.status, Error: test.words})
					return
				}
				next.ServeHTTP(w, r)
			})
			losses.Store(2)
			must(t, test.ask(patient(t), d, "m"))
			losses.Store(1000)
			if err := test.ask(patient(t), d, "m"); err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %v, want an error with %q", err, test.words)
			}
		})
	}
}
