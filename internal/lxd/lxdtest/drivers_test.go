// SPDX-License-Identifier: MPL-2.0

package lxdtest_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

const mebibyte = 1 << 20

// lab is a daemon in memory with one pool and shorthands for what tests do to it, mostly to the instance "a".
type lab struct {
	*lxdtest.Server
	t    *testing.T
	c    lxd.InstanceServer
	pool string
}

func newLab(t *testing.T, driver string, config map[string]string, options ...lxdtest.Option) *lab {
	t.Helper()
	options = append([]lxdtest.Option{lxdtest.WithDrivers("dir", "btrfs", "zfs", "lvm", "ceph")}, options...)
	s := lxdtest.New(t, options...)
	l := &lab{Server: s, t: t, c: s.Client(t), pool: "pool"}
	l.must(l.c.CreateStoragePool(api.StoragePoolsPost{Name: l.pool, Driver: driver, StoragePoolPut: api.StoragePoolPut{Config: config}}))
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// wait returns how an operation ended.
func (l *lab) wait(op lxd.Operation, err error) error {
	l.t.Helper()
	l.must(err)
	return op.WaitContext(l.t.Context())
}

func (l *lab) create(name string) {
	l.t.Helper()
	l.must(l.wait(l.c.CreateInstance(api.InstancesPost{
		Name: name, Source: api.InstanceSource{Type: "image", Fingerprint: l.AddImage(nil)},
		InstancePut: api.InstancePut{Devices: map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": l.pool}}},
	})))
}

func (l *lab) snapshot(name string) {
	l.t.Helper()
	l.must(l.wait(l.c.CreateInstanceSnapshot("a", api.InstanceSnapshotsPost{Name: name})))
}

func (l *lab) branch(name, source string) {
	l.t.Helper()
	l.must(l.wait(l.c.CreateInstance(api.InstancesPost{
		Name: name, Source: api.InstanceSource{Type: "copy", Source: source, InstanceOnly: true},
	})))
}

func (l *lab) restore(snapshot string) error {
	l.t.Helper()
	return l.wait(l.c.UpdateInstance("a", api.InstancePut{Restore: snapshot}, ""))
}

func (l *lab) write(data []byte) {
	l.t.Helper()
	l.must(l.c.CreateInstanceFile("a", "/blob", lxd.InstanceFileArgs{Type: "file", WriteMode: "overwrite", Content: bytes.NewReader(data)}))
}

func (l *lab) read(instance string) string {
	l.t.Helper()
	content, _, err := l.c.GetInstanceFile(instance, "/blob")
	l.must(err)
	data, err := io.ReadAll(content)
	l.must(err)
	return string(data)
}

// grown returns how much more of the pool is in use after the work, in MiB.
func (l *lab) grown(work func()) int64 {
	l.t.Helper()
	before, err := l.c.GetStoragePoolResources(l.pool)
	l.must(err)
	work()
	after, err := l.c.GetStoragePoolResources(l.pool)
	l.must(err)
	return int64(after.Space.Used-before.Space.Used) / mebibyte //nolint:gosec // Wraps around to what it is below zero.
}

func TestDriversShareOrCopy(t *testing.T) {
	t.Parallel()
	type growth struct{ Snapshot, Branch int64 } // MiB, with 8 MiB of data
	const thick = 10 << 10                       // an LVM volume's size in MiB
	for name, test := range map[string]struct {
		driver string
		config map[string]string
		want   growth
		// restore is what has to be written to go back, in MiB.
		restore int64
	}{
		"btrfs":           {"btrfs", nil, growth{0, 0}, 0},
		"dir":             {"dir", nil, growth{8, 8}, 8},
		"zfs":             {"zfs", nil, growth{0, 0}, 0},
		"zfs full copies": {"zfs", map[string]string{"zfs.clone_copy": "false"}, growth{0, 8}, 0},
		"zfs rebase":      {"zfs", map[string]string{"zfs.clone_copy": "rebase"}, growth{0, 8}, 0},
		"lvm thin":        {"lvm", nil, growth{0, 0}, 0},
		"lvm thick":       {"lvm", map[string]string{"lvm.use_thinpool": "false", "size": "90GiB"}, growth{thick, thick}, 8},
		"ceph":            {"ceph", nil, growth{0, 0}, 8},
		"ceph full":       {"ceph", map[string]string{"ceph.rbd.clone_copy": "false"}, growth{0, 8}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, test.driver, test.config)
			l.create("a")
			l.snapshot("empty")
			l.write(bytes.Repeat([]byte("x"), 8*mebibyte))
			var got growth
			got.Snapshot = l.grown(func() { l.snapshot("full") })
			got.Branch = l.grown(func() { l.branch("b", "a/full") })
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("space in use grew otherwise (-want +got):\n%s", diff)
			}

			l.write(nil)
			l.snapshot("last") // zfs can only go back to the newest.
			l.write(bytes.Repeat([]byte("y"), 8*mebibyte))
			if test.driver != "zfs" {
				var work []lxdtest.Work
				l.Set(lxdtest.WithLatency(func(w lxdtest.Work) time.Duration { work = append(work, w); return 0 }))
				l.must(l.restore("full"))
				if want := (lxdtest.Work{Verb: "restore", Driver: test.driver, Bytes: test.restore * mebibyte}); !cmp.Equal([]lxdtest.Work{want}, work) {
					t.Errorf("going back was %+v, want %+v", work, want)
				}
			}
		})
	}
}

func TestRestoreGoesBackAndForth(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"btrfs", "dir", "lvm", "ceph"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, driver, nil)
			l.create("a")
			for _, content := range []string{"one", "two"} {
				l.write([]byte(content))
				l.snapshot(content)
			}
			l.branch("b", "a") // A branch of the live machine is in nobody's way here.
			for _, content := range []string{"one", "two", "one"} {
				l.must(l.restore(content))
				if got := l.read("a"); got != content {
					t.Errorf("after going back to %q the file holds %q", content, got)
				}
			}
			if got := l.read("b"); got != "two" {
				t.Errorf("the branch holds %q, want what its source held", got)
			}
		})
	}
}

func TestZFSRefusesToGoPast(t *testing.T) {
	t.Parallel()
	const (
		newer = `Snapshot "s0" cannot be restored due to subsequent snapshot(s). Set zfs.remove_snapshots to override`
		inner = `Snapshot "s0" cannot be restored due to subsequent internal snapshot(s) (from a copy)`
	)
	for name, test := range map[string]struct {
		config map[string]string
		do     func(*lab)
		want   string // the daemon's words, or none
		left   []string
	}{
		"nothing":            {do: func(*lab) {}, left: []string{"s0"}},
		"a newer snapshot":   {do: func(l *lab) { l.snapshot("s1") }, want: newer, left: []string{"s0", "s1"}},
		"a branch of s0":     {do: func(l *lab) { l.branch("b", "a/s0") }, left: []string{"s0"}},
		"a branch of a":      {do: func(l *lab) { l.branch("b", "a") }, want: inner, left: []string{"s0"}},
		"full copy of a":     {config: map[string]string{"zfs.clone_copy": "false"}, do: func(l *lab) { l.branch("b", "a") }, left: []string{"s0"}},
		"the branch is gone": {do: func(l *lab) { l.branch("b", "a"); l.must(l.wait(l.c.DeleteInstance("b"))) }, left: []string{"s0"}},
		"a deleted snapshot with a branch": {want: inner, left: []string{"s0"}, do: func(l *lab) {
			l.snapshot("s1")
			l.branch("b", "a/s1")
			l.must(l.wait(l.c.DeleteInstanceSnapshot("a", "s1")))
		}},
		"and its branch is gone": {left: []string{"s0"}, do: func(l *lab) {
			l.snapshot("s1")
			l.branch("b", "a/s1")
			l.must(l.wait(l.c.DeleteInstanceSnapshot("a", "s1")))
			l.must(l.wait(l.c.DeleteInstance("b")))
		}},
		"allowed to remove": {
			config: map[string]string{"volume.zfs.remove_snapshots": "true"},
			do:     func(l *lab) { l.snapshot("s1"); l.snapshot("s2") }, left: []string{"s0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "zfs", test.config)
			l.create("a")
			l.write([]byte("zero"))
			l.snapshot("s0")
			l.write([]byte("later"))
			test.do(l)
			got, content := "", "zero"
			if err := l.restore("s0"); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("restore says %q, want %q", got, test.want)
			}
			if test.want != "" {
				content = "later"
			}
			if is := l.read("a"); is != content {
				t.Errorf("the file holds %q, want %q", is, content)
			}
			left, err := l.c.GetInstanceSnapshotNames("a")
			l.must(err)
			if diff := cmp.Diff(test.left, left); diff != "" {
				t.Errorf("other snapshots are left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpaceComesBack(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"btrfs", "dir", "zfs", "lvm"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, driver, nil)
			if grown := l.grown(func() {
				l.create("a")
				l.write(bytes.Repeat([]byte("x"), 8*mebibyte))
				l.snapshot("s0")
				l.branch("b", "a")
				l.must(l.wait(l.c.DeleteInstance("a")))
				if got := l.read("b"); len(got) != 8*mebibyte {
					t.Errorf("the branch lost its data with its source: %d bytes", len(got))
				}
				l.must(l.wait(l.c.DeleteInstance("b")))
			}); grown != 0 {
				t.Errorf("%d MiB are in use after everything was deleted", grown)
			}
		})
	}
}

func TestPoolRunsFull(t *testing.T) {
	t.Parallel()
	l := newLab(t, "dir", nil, lxdtest.WithDisk(lxdtest.Disk{Total: 16 * mebibyte, Used: 2 * mebibyte}))
	l.create("a")
	l.write(make([]byte, 8*mebibyte))
	if err := l.wait(l.c.CreateInstanceSnapshot("a", api.InstanceSnapshotsPost{Name: "s0"})); err == nil || err.Error() != "no space left on device" {
		t.Errorf("a copy of 8 MiB on a disk with 6 MiB free: %v", err)
	}
}
