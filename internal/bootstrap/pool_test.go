// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func connect(t *testing.T, address string) *lxd.Daemon {
	t.Helper()
	d, err := lxd.Connect(t.Context(), lxd.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func poolNames(ctx context.Context, t *testing.T, d *lxd.Daemon) []string {
	t.Helper()
	pools, err := d.Pools(ctx)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, pool := range pools {
		names = append(names, pool.Name)
	}
	return names
}

func TestThrowAwayPoolIsThrownAway(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, use := range map[string]func(context.Context, context.CancelFunc) error{
		"used":        func(context.Context, context.CancelFunc) error { return nil },
		"failed":      func(context.Context, context.CancelFunc) error { return failed },
		"interrupted": func(ctx context.Context, cancel context.CancelFunc) error { cancel(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := connect(t, lxdtest.New(t).Address())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var during []string
			var result error
			err := WithThrowAwayPool(ctx, d, "btrfs", "128MiB", func(ctx context.Context, _ string) error {
				during = poolNames(ctx, t, d)
				result = use(ctx, cancel)
				return result
			})
			if !errors.Is(err, result) {
				t.Errorf("got error %v, want %v", err, result)
			}
			if len(during) != 1 {
				t.Errorf("pools during use: %v", during)
			}
			if left := poolNames(t.Context(), t, d); len(left) > 0 {
				t.Errorf("pools left: %v", left)
			}
		})
	}
}

func TestThrowAwayPoolSweepsDeadRuns(t *testing.T) {
	t.Parallel()
	d := connect(t, lxdtest.New(t).Address())
	old, recent := time.Now().Add(-2*abandonedAfter), time.Now()
	for name, mark := range map[string]string{
		"lab-bootstrap-dead":   old.UTC().Format(time.RFC3339),
		"lab-bootstrap-alive":  recent.UTC().Format(time.RFC3339),
		"lab-bootstrap-theirs": "",
		"theirs":               old.UTC().Format(time.RFC3339),
	} {
		pool := api.StoragePoolsPost{Name: name, Driver: "btrfs", StoragePoolPut: api.StoragePoolPut{Config: map[string]string{"size": "128MiB"}}}
		if mark != "" {
			pool.Config[poolMark] = mark
		}
		if err := d.CreatePool(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	if err := WithThrowAwayPool(t.Context(), d, "btrfs", "128MiB", func(context.Context, string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, name := range poolNames(t.Context(), t, d) {
		left[name] = true
	}
	if left["lab-bootstrap-dead"] || !left["lab-bootstrap-alive"] || !left["lab-bootstrap-theirs"] || !left["theirs"] {
		t.Errorf("pools left: %v", left)
	}
}
