// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"testing"

	"github.com/canonical/lxd/shared/api"
)

var (
	cowPool   = PoolFacts{Name: "cow", Driver: "btrfs", Status: "Created"}
	plainPool = PoolFacts{Name: "plain", Driver: "dir", Status: "Created"}
	thickPool = PoolFacts{Name: "thick", Driver: "lvm", Status: "Created", Config: map[string]string{"lvm.use_thinpool": "false"}}
	zfsPool   = PoolFacts{Name: "tank", Driver: "zfs", Status: "Created"}
	fullZFS   = PoolFacts{Name: "full", Driver: "zfs", Status: "Created", Config: map[string]string{"zfs.clone_copy": "false"}}
	thinPool  = PoolFacts{Name: "thin", Driver: "lvm", Status: "Created"}
	cephPool  = PoolFacts{Name: "rbd", Driver: "ceph", Status: "Created"}
	offPool   = PoolFacts{Name: "off", Driver: "btrfs", Status: "Unavailable"}
)

// manyPools are the facts of a daemon with a pool of every kind.
func manyPools() *Facts {
	return factsOf(nil, []string{"dir", "btrfs", "zfs", "lvm", "ceph"}, cowPool, plainPool, thickPool, zfsPool, fullZFS, thinPool, cephPool, offPool)
}

func TestAdmitMachine(t *testing.T) {
	t.Parallel()
	const container, vm = api.InstanceTypeContainer, api.InstanceTypeVM
	noVMs := func(f *Facts) {
		f.Environment.Driver = "lxc"
		f.Warnings = []api.Warning{{Type: "Instance type not operational", LastMessage: "vhost_vsock kernel module not loaded"}}
	}
	warned := func(f *Facts) {
		f.Warnings = []api.Warning{{Type: "Instance type not operational", LastMessage: "QEMU is too old"}}
	}
	silent := func(f *Facts) { f.Environment.Driver = "" }
	cluster := func(f *Facts) { f.Members = make([]MemberFacts, 3) }
	for name, test := range map[string]struct {
		ask      MachineAsk
		change   func(*Facts)
		argument string
		parts    []string
	}{
		"a container":                  {MachineAsk{Pool: "cow"}, nil, "", nil},
		"a virtual machine":            {MachineAsk{Pool: "cow", Type: vm, CPUs: 4, MemoryBytes: 8 << 30}, nil, "", nil},
		"no virtual machines":          {MachineAsk{Pool: "cow", Type: vm}, noVMs, "type", []string{"vhost_vsock kernel module not loaded"}},
		"a container beside that":      {MachineAsk{Pool: "cow", Type: container}, noVMs, "", nil},
		"listed, and warned of":        {MachineAsk{Pool: "cow", Type: vm}, warned, "type", []string{"warns that they do not run", "QEMU is too old"}},
		"a container beside a warning": {MachineAsk{Pool: "cow", Type: container}, warned, "", nil},
		"a daemon that does not tell":  {MachineAsk{Pool: "cow", Type: vm}, silent, "", nil},
		"too much memory":              {MachineAsk{Pool: "cow", Type: vm, MemoryBytes: 16 << 30}, nil, "memory", []string{"16GiB of 8GiB"}},
		"too many processors":          {MachineAsk{Pool: "cow", Type: vm, CPUs: 5}, nil, "cpus", []string{"5 of 4"}},
		"a container may be large":     {MachineAsk{Pool: "cow", CPUs: 64, MemoryBytes: 1 << 40}, nil, "", nil},
		"large, on a cluster":          {MachineAsk{Pool: "cow", Type: vm, CPUs: 5}, cluster, "", nil},
		"on dir":                       {MachineAsk{Pool: "plain"}, nil, "pool", []string{"copies every file", "lab_storage_pool", "cow (btrfs)"}},
		"on thick lvm":                 {MachineAsk{Pool: "thick"}, nil, "pool", []string{"lvm.use_thinpool"}},
		"on zfs that copies":           {MachineAsk{Pool: "full"}, nil, "pool", []string{"zfs.clone_copy"}},
		"on zfs":                       {MachineAsk{Pool: "tank"}, nil, "", nil},
		"on thin lvm":                  {MachineAsk{Pool: "thin"}, nil, "", nil},
		"on ceph":                      {MachineAsk{Pool: "rbd"}, nil, "", nil},
		"on a pool that is off":        {MachineAsk{Pool: "off"}, nil, "pool", []string{"Unavailable"}},
		"on a pool not known yet":      {MachineAsk{}, nil, "", nil},
		"on a pool that is not there":  {MachineAsk{Pool: "later"}, nil, "", nil},
		"with a pool to come, dir now": {MachineAsk{Pool: "plain", Type: vm}, nil, "pool", []string{"dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := manyPools()
			if test.change != nil {
				test.change(facts)
			}
			test.ask.Name = "a"
			wantRefusal(t, checkerOf(facts).AdmitMachine(t.Context(), test.ask), test.argument, test.parts...)
		})
	}
}

func TestPlannedPools(t *testing.T) {
	t.Parallel()
	c := checkerOf(manyPools())
	// The plan makes a pool, and replaces one that copies by one that does not.
	c.PlanPool(PoolAsk{Name: "later", Driver: "btrfs"})
	c.PlanPool(PoolAsk{Name: "plain"})
	c.PlanPool(PoolAsk{Name: "off"})
	for _, pool := range []string{"later", "plain", "off"} {
		wantRefusal(t, c.AdmitMachine(t.Context(), MachineAsk{Name: "a", Pool: pool}), "")
		wantRefusal(t, c.AdmitSnapshot(t.Context(), SnapshotAsk{Machine: "a", Name: "s", Pool: pool}), "")
	}
	// And one that will copy is refused for what it will be.
	c.PlanPool(PoolAsk{Name: "cow", Driver: "dir"})
	wantRefusal(t, c.AdmitMachine(t.Context(), MachineAsk{Name: "a", Pool: "cow"}), "pool", "dir")
	// The daemon's own word counts when it is applied.
	wantRefusal(t, c.AdmitMachine(t.Context(), MachineAsk{Name: "a", Pool: "plain", Applying: true}), "pool", "dir")
}

func TestAdmitSnapshot(t *testing.T) {
	t.Parallel()
	const container, vm = api.InstanceTypeContainer, api.InstanceTypeVM
	for name, test := range map[string]struct {
		ask      SnapshotAsk
		argument string
		parts    []string
	}{
		"plain":                         {SnapshotAsk{Pool: "cow", Type: container}, "", nil},
		"of a machine not known yet":    {SnapshotAsk{}, "", nil},
		"on dir":                        {SnapshotAsk{Pool: "plain", Type: container}, "machine", []string{"copies every file"}},
		"on thick lvm":                  {SnapshotAsk{Pool: "thick", Type: container}, "machine", []string{"lvm.use_thinpool"}},
		"on zfs that copies branches":   {SnapshotAsk{Pool: "full", Type: container}, "", nil},
		"of an ephemeral machine":       {SnapshotAsk{Pool: "cow", Type: container, Ephemeral: true}, "machine", []string{"ephemeral"}},
		"scheduled, on btrfs":           {SnapshotAsk{Pool: "cow", Type: container, Scheduled: true}, "", nil},
		"scheduled, on zfs":             {SnapshotAsk{Pool: "tank", Type: container, Scheduled: true}, "machine", []string{"takes snapshots of the machine by itself", "@never"}},
		"with memory, container":        {SnapshotAsk{Pool: "cow", Type: container, Stateful: true}, "stateful", []string{"memory of a container"}},
		"with memory, not set up":       {SnapshotAsk{Pool: "cow", Type: vm, Stateful: true}, "stateful", []string{"checkpointable = true"}},
		"with memory":                   {SnapshotAsk{Pool: "cow", Type: vm, Stateful: true, Checkpointable: true}, "", nil},
		"with memory, stopped":          {SnapshotAsk{Pool: "cow", Type: vm, Stateful: true, Checkpointable: true, Stopped: true}, "stateful", []string{"does not run", "running = true"}},
		"without memory, stopped":       {SnapshotAsk{Pool: "cow", Type: vm, Stopped: true}, "", nil},
		"with memory, type not known":   {SnapshotAsk{Pool: "cow", Stateful: true}, "", nil},
		"with memory, on dir":           {SnapshotAsk{Pool: "plain", Type: vm, Stateful: true, Checkpointable: true}, "machine", []string{"stateful snapshot"}},
		"on a pool that does not exist": {SnapshotAsk{Pool: "later", Type: container}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.ask.Machine, test.ask.Name = "a", "clean"
			wantRefusal(t, checkerOf(manyPools()).AdmitSnapshot(t.Context(), test.ask), test.argument, test.parts...)
		})
	}
}

func TestAdmitReset(t *testing.T) {
	t.Parallel()
	newer, branches := []string{"s2", "s3"}, []string{"experiment"}
	for name, test := range map[string]struct {
		ask   ResetAsk
		parts []string
	}{
		"btrfs":                    {ResetAsk{Pool: "cow", Newer: newer, Branches: branches}, nil},
		"lvm thin":                 {ResetAsk{Pool: "thin", Newer: newer, Branches: branches}, nil},
		"ceph":                     {ResetAsk{Pool: "rbd", Newer: newer, Branches: branches}, nil},
		"zfs, to the newest":       {ResetAsk{Pool: "tank"}, nil},
		"zfs, past newer ones":     {ResetAsk{Pool: "tank", Newer: newer}, []string{"newest snapshot", "s2, s3"}},
		"zfs, past a branch":       {ResetAsk{Pool: "tank", Branches: branches}, []string{"branch", "experiment"}},
		"dir":                      {ResetAsk{Pool: "plain"}, []string{"copies every file"}},
		"lvm thick":                {ResetAsk{Pool: "thick"}, []string{"lvm.use_thinpool"}},
		"a pool that is not known": {ResetAsk{Pool: "later", Newer: newer}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.ask.Machine, test.ask.Snapshot = "a", "clean"
			argument := ""
			if len(test.parts) > 0 {
				argument = "snapshots"
			}
			wantRefusal(t, checkerOf(manyPools()).AdmitReset(t.Context(), test.ask), argument, test.parts...)
		})
	}
}
