// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
)

// hostWith is a host whose daemon finds programs, and whose disk has some space free.
func hostWith(t *testing.T, free int64, programs ...string) *host {
	t.Helper()
	dir := t.TempDir()
	for _, program := range programs {
		if err := os.WriteFile(filepath.Join(dir, program), nil, 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	return &host{
		dir: dir, searchPath: []string{dir}, daemonsPath: true,
		kernelHas: func(string) (bool, bool) { return true, true },
		freeBytes: func(string) (int64, error) { return free, nil },
	}
}

// btrfsTools are what LXD needs for btrfs.
var btrfsTools = []string{"btrfs", "mkfs.btrfs"}

// factsOf are the facts of a daemon on Debian 12 that offers some drivers and has some pools.
func factsOf(h *host, drivers []string, pools ...PoolFacts) *Facts {
	facts := &Facts{
		Environment: api.ServerEnvironment{
			Server: "lxd", ServerVersion: "5.0.2", OSName: "Debian GNU/Linux", OSVersion: "12", Driver: "lxc | qemu", KernelVersion: "6.1.0",
		},
		present: map[string]PoolFacts{}, host: h,
		Resources: &api.Resources{CPU: api.ResourcesCPU{Total: 4}, Memory: api.ResourcesMemory{Total: 8 << 30}},
	}
	for _, driver := range drivers {
		facts.Environment.StorageSupportedDrivers = append(facts.Environment.StorageSupportedDrivers, api.ServerStorageDriverInfo{Name: driver})
	}
	for _, pool := range pools {
		facts.present[pool.Name] = pool
	}
	facts.Pools = facts.present
	return facts
}

// checkerOf is a checker that has read its facts.
func checkerOf(facts *Facts) *Checker {
	c := New(nil)
	c.facts = facts
	return c
}

// wantRefusal checks that an error is a refusal of an argument, whose text holds the parts; no argument and no parts
// stand for no error.
func wantRefusal(t *testing.T, err error, argument string, parts ...string) {
	t.Helper()
	if argument == "" && len(parts) == 0 {
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
		return
	}
	refusal, ok := errors.AsType[*Refusal](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	if refusal.Argument != argument {
		t.Errorf("the refusal is of argument %q, want %q", refusal.Argument, argument)
	}
	if refusal.Asked == "" || refusal.Found == "" || refusal.Remedy == "" || titles[refusal.Capability] == "" {
		t.Errorf("the refusal leaves something unsaid: %#v", refusal)
	}
	for _, part := range parts {
		if !strings.Contains(refusal.Detail(), part) {
			t.Errorf("the refusal does not say %q:\n%s", part, refusal.Detail())
		}
	}
}

func TestAdmitPoolByDriver(t *testing.T) {
	t.Parallel()
	everything := []string{"dir", "btrfs", "zfs", "lvm", "ceph", "cephfs"}
	tools := append([]string{"zfs", "zpool", "lvm", "ceph", "rbd"}, btrfsTools...)
	for name, test := range map[string]struct {
		driver   string
		config   map[string]string
		argument string
		parts    []string
	}{
		"btrfs":                            {"btrfs", nil, "", nil},
		"no driver":                        {"", nil, "", nil},
		"dir":                              {"dir", nil, "driver", []string{`"dir" copies every file`, `driver = "btrfs"`}},
		"zfs":                              {"zfs", nil, "", nil},
		"zfs, clone_copy true":             {"zfs", map[string]string{"zfs.clone_copy": "true"}, "", nil},
		"zfs, clone_copy false":            {"zfs", map[string]string{"zfs.clone_copy": "false"}, "config", []string{`zfs.clone_copy = "false"`, "Remove zfs.clone_copy"}},
		"zfs, clone_copy no":               {"zfs", map[string]string{"zfs.clone_copy": "no"}, "config", []string{`zfs.clone_copy = "no"`}},
		"zfs, clone_copy rebase":           {"zfs", map[string]string{"zfs.clone_copy": "rebase"}, "config", []string{`zfs.clone_copy = "rebase"`}},
		"lvm thin":                         {"lvm", nil, "", nil},
		"lvm thin, said":                   {"lvm", map[string]string{"lvm.use_thinpool": "true"}, "", nil},
		"lvm thick":                        {"lvm", map[string]string{"lvm.use_thinpool": "false"}, "config", []string{`lvm.use_thinpool = "false"`}},
		"ceph":                             {"ceph", nil, "", nil},
		"ceph, clone_copy false":           {"ceph", map[string]string{"ceph.rbd.clone_copy": "false"}, "config", []string{"ceph.rbd.clone_copy"}},
		"cephfs":                           {"cephfs", nil, "driver", []string{"cannot hold machines"}},
		"one that is not known":            {"magic", nil, "driver", []string{`does not offer the driver "magic"`, "btrfs, zfs, lvm, ceph"}},
		"btrfs, with a foreign driver key": {"btrfs", map[string]string{"zfs.clone_copy": "false"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := checkerOf(factsOf(hostWith(t, 100<<30, tools...), everything))
			ask := PoolAsk{Name: "lab", Driver: test.driver, Config: test.config}
			wantRefusal(t, c.AdmitPool(t.Context(), ask), test.argument, test.parts...)
		})
	}
}

func TestDirOnAHostWithoutAnythingElse(t *testing.T) {
	t.Parallel()
	c := checkerOf(factsOf(hostWith(t, 100<<30), []string{"dir"}))
	wantRefusal(t, c.AdmitPool(t.Context(), PoolAsk{Name: "lab", Driver: "dir"}), "driver", "copies every file", "This host cannot make one yet", "lacks what it needs")
}

func TestAdmitPoolByTools(t *testing.T) {
	t.Parallel()
	absentKernel := func(h *host) { h.kernelHas = func(string) (bool, bool) { return false, true } }
	silentKernel := func(h *host) { h.kernelHas = func(string) (bool, bool) { return false, false } }
	snap := func(h *host) { h.snap = true }
	for name, test := range map[string]struct {
		drivers, tools []string
		remote         bool
		change         func(*host)
		parts          []string
	}{
		"offered, tools there":       {[]string{"btrfs"}, btrfsTools, false, nil, nil},
		"offered, mkfs missing":      {[]string{"btrfs"}, []string{"btrfs"}, false, nil, []string{"lists the driver", "mkfs.btrfs"}},
		"offered, not in the kernel": {[]string{"btrfs"}, btrfsTools, false, absentKernel, []string{"kernel has no btrfs"}},
		"offered, kernel not known":  {[]string{"btrfs"}, btrfsTools, false, silentKernel, nil},
		"offered, elsewhere":         {[]string{"btrfs"}, nil, true, nil, nil},
		"not offered, tools there":   {[]string{"dir"}, btrfsTools, false, nil, nil},
		"not offered, no tools": {
			[]string{"dir"},
			nil, false, nil,
			[]string{"LXD 5.0.2 offers the storage drivers: dir", "not on the PATH of the daemon: btrfs, mkfs.btrfs"},
		},
		"not offered, elsewhere": {[]string{"dir"}, nil, true, nil, []string{"does not offer", "on the daemon's host", "apt-get install btrfs-progs"}},
		"snap, offered":          {[]string{"btrfs"}, nil, false, snap, nil},
		"snap, not offered":      {[]string{"dir"}, btrfsTools, false, snap, []string{"does not offer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostWith(t, 100<<30, test.tools...)
			if test.change != nil {
				test.change(h)
			}
			if test.remote {
				h = nil
			}
			c := checkerOf(factsOf(h, test.drivers))
			argument := ""
			if len(test.parts) > 0 {
				argument = "driver"
			}
			wantRefusal(t, c.AdmitPool(t.Context(), PoolAsk{Name: "lab"}), argument, test.parts...)
		})
	}
}

func TestAdmitPoolByRoom(t *testing.T) {
	t.Parallel()
	const free = 10<<30 + 5<<20
	for name, test := range map[string]struct {
		ask    PoolAsk
		remote bool
		parts  []string
	}{
		"fits":                         {PoolAsk{SizeBytes: 10 << 30}, false, nil},
		"larger than the disk":         {PoolAsk{SizeBytes: 20 << 30}, false, []string{"only 10GiB free", "20GiB", "at most 10GiB"}},
		"larger, elsewhere":            {PoolAsk{SizeBytes: 20 << 30}, true, nil},
		"larger, but not a loop":       {PoolAsk{SizeBytes: 20 << 30, Source: "/nonexistent/empty"}, false, nil},
		"no size":                      {PoolAsk{}, false, nil},
		"too small to be proved":       {PoolAsk{SizeBytes: 200 << 20}, false, []string{"too small", "at least 1GiB"}},
		"ceph, whose disk is not here": {PoolAsk{SizeBytes: 20 << 30, Driver: "ceph"}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostWith(t, free, btrfsTools...)
			if test.remote {
				h = nil
			}
			test.ask.Name = "lab"
			argument := ""
			if len(test.parts) > 0 {
				argument = "size"
			}
			c := checkerOf(factsOf(h, []string{"btrfs", "ceph"}))
			if test.ask.Source != "" && h == nil {
				t.Fatal("a source elsewhere is refused for another reason")
			}
			wantRefusal(t, c.AdmitPool(t.Context(), test.ask), argument, test.parts...)
		})
	}
}

func TestAdmitPoolWithoutSizeOnAFullDisk(t *testing.T) {
	t.Parallel()
	c := checkerOf(factsOf(hostWith(t, 2<<30, btrfsTools...), []string{"btrfs"}))
	wantRefusal(t, c.AdmitPool(t.Context(), PoolAsk{Name: "lab"}), "size", "at least 5GiB from the daemon", "at most 2GiB")
	// No size that fits would do.
	c = checkerOf(factsOf(hostWith(t, 500<<20, btrfsTools...), []string{"btrfs"}))
	wantRefusal(t, c.AdmitPool(t.Context(), PoolAsk{Name: "lab", SizeBytes: 20 << 30}), "size", "only 500MiB free", "Free some of the disk: a pool has at least 1GiB")
}

func TestAdmitPoolBySource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pools := []PoolFacts{
		{Name: "disk", Driver: "btrfs", Config: map[string]string{"source": "3f1c-uuid", "volatile.initial_source": "/dev/vdz"}},
		{Name: "tank", Driver: "zfs", Config: map[string]string{"source": "tank/lxd", "zfs.pool_name": "tank/lxd"}},
	}
	for name, test := range map[string]struct {
		ask      PoolAsk
		remote   bool
		argument string
		parts    []string
	}{
		"empty":                 {PoolAsk{Source: filepath.Join(dir, "new")}, false, "", nil},
		"not empty":             {PoolAsk{Source: dir}, false, "source", []string{"thesis.txt", "destroy"}},
		"another pool's":        {PoolAsk{Source: "/dev/vdz"}, false, "source", []string{`pool "disk"`}},
		"another pool's, zfs":   {PoolAsk{Source: "tank/lxd", Driver: "zfs"}, false, "source", []string{`pool "tank"`}},
		"elsewhere":             {PoolAsk{Source: "/dev/vdb"}, true, "source", []string{"another host", "loop file"}},
		"a dataset":             {PoolAsk{Source: "tank/lab", Driver: "zfs"}, true, "", nil},
		"a volume group":        {PoolAsk{Source: "vg0", Driver: "lvm"}, true, "", nil},
		"a volume group forced": {PoolAsk{Source: "vg0", Driver: "lvm", Config: map[string]string{"lvm.vg.force_reuse": "true"}}, true, "config", []string{"lvm.vg.force_reuse"}},
		"a ceph pool forced":    {PoolAsk{Source: "rbd", Driver: "ceph", Config: map[string]string{"ceph.osd.force_reuse": "true"}}, true, "config", []string{"ceph.osd.force_reuse"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hostWith(t, 100<<30, append([]string{"zfs", "zpool", "lvm"}, btrfsTools...)...)
			if test.remote {
				h = nil
			}
			test.ask.Name = "lab"
			c := checkerOf(factsOf(h, []string{"btrfs", "zfs", "lvm", "ceph"}, pools...))
			wantRefusal(t, c.AdmitPool(t.Context(), test.ask), test.argument, test.parts...)
		})
	}
}

func TestResize(t *testing.T) {
	t.Parallel()
	loop := map[string]string{"size": "20GiB", "source": "/var/lib/lxd/disks/lab.img"}
	device := map[string]string{"size": "20GiB", "source": "/dev/vdb"}
	for name, test := range map[string]struct {
		config  map[string]string
		bytes   int64
		canGrow bool
		parts   []string
	}{
		"the same":               {loop, 20 << 30, false, nil},
		"not given any more":     {loop, 0, false, nil},
		"grows":                  {loop, 30 << 30, true, nil},
		"grows, on LXD 5.0.2":    {loop, 30 << 30, false, []string{"cannot grow", "storage_pool_loop_resize", "20GiB"}},
		"grows beyond the disk":  {loop, 500 << 30, true, []string{"only 100GiB free"}},
		"shrinks":                {loop, 10 << 30, true, []string{"cannot shrink", "20GiB"}},
		"grows, on a device":     {device, 30 << 30, true, []string{"/dev/vdb"}},
		"was never given before": {map[string]string{}, 30 << 30, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := factsOf(hostWith(t, 100<<30), []string{"btrfs"}, PoolFacts{Name: "lab", Driver: "btrfs", Config: test.config})
			refusal := facts.refuseResize(PoolAsk{Name: "lab", SizeBytes: test.bytes, Update: true}, test.canGrow)
			if refusal == nil {
				wantRefusal(t, nil, "", test.parts...)
				return
			}
			wantRefusal(t, refusal, "size", test.parts...)
		})
	}
}
