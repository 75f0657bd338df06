// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
)

func TestAdmitBranch(t *testing.T) {
	t.Parallel()
	const vm = api.InstanceTypeVM
	const gib = 1 << 30
	soon := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	sized := PoolFacts{Name: "sized", Driver: "btrfs", Status: "Created", Config: map[string]string{"volume.size": "4GiB"}}
	for name, test := range map[string]struct {
		ask      BranchAsk
		argument string
		parts    []string
	}{
		"in its source's pool":        {BranchAsk{SourcePool: "cow"}, "", nil},
		"that is named":               {BranchAsk{SourcePool: "cow", Pool: "cow"}, "", nil},
		"in another pool":             {BranchAsk{SourcePool: "cow", Pool: "thin"}, "pool", []string{`in pool "cow"`, "every block", `set it to "cow"`}},
		"on its source's member":      {BranchAsk{SourcePool: "cow", SourceMember: "m1", Member: "m1"}, "", nil},
		"on another member":           {BranchAsk{SourcePool: "cow", SourceMember: "m1", Member: "m2"}, "target", []string{`sent to member "m2"`, "Leave target out"}},
		"on a member of no cluster":   {BranchAsk{SourcePool: "cow", Member: "m2"}, "target", []string{"no cluster"}},
		"on dir":                      {BranchAsk{SourcePool: "plain"}, "source", []string{"copies every file", "lab_storage_pool"}},
		"on thick lvm":                {BranchAsk{SourcePool: "thick"}, "source", []string{"lvm.use_thinpool"}},
		"on thin lvm":                 {BranchAsk{SourcePool: "thin"}, "", nil},
		"on zfs":                      {BranchAsk{SourcePool: "tank"}, "", nil},
		"on zfs that copies":          {BranchAsk{SourcePool: "full"}, "source", []string{"zfs.clone_copy", "full copy for every branch"}},
		"on ceph":                     {BranchAsk{SourcePool: "rbd"}, "", nil},
		"on a pool that is off":       {BranchAsk{SourcePool: "off"}, "source", []string{"Unavailable"}},
		"off what expires, btrfs":     {BranchAsk{SourcePool: "cow", Expires: soon}, "", nil},
		"off what expires, lvm":       {BranchAsk{SourcePool: "thin", Expires: soon}, "", nil},
		"off what expires, zfs":       {BranchAsk{SourcePool: "tank", Expires: soon}, "source", []string{"stands on it", "2030-01-02T03:04:05Z", "snapshots.expiry"}},
		"off what expires, ceph":      {BranchAsk{SourcePool: "rbd", Expires: soon}, "source", []string{"stands on it"}},
		"a larger disk":               {BranchAsk{SourcePool: "cow", SourceDiskBytes: gib, DiskBytes: 2 * gib}, "", nil},
		"a disk of the same size":     {BranchAsk{SourcePool: "cow", SourceDiskBytes: gib, DiskBytes: gib}, "", nil},
		"a smaller disk":              {BranchAsk{SourcePool: "cow", SourceDiskBytes: 2 * gib, DiskBytes: gib}, "disk", []string{"only grow", "2GiB", "or more"}},
		"a limit where there is none": {BranchAsk{SourcePool: "cow", DiskBytes: gib}, "disk", []string{"as large as its pool"}},
		"below the pool's own size":   {BranchAsk{SourcePool: "sized", DiskBytes: gib}, "disk", []string{"the source's is of 4GiB"}},
		"above the default of lvm":    {BranchAsk{SourcePool: "thin", DiskBytes: 11 * gib}, "", nil},
		"below the default of lvm":    {BranchAsk{SourcePool: "thin", DiskBytes: 9 * gib}, "disk", []string{"10GiB"}},
		"a virtual machine's disk":    {BranchAsk{SourcePool: "cow", Type: vm, DiskBytes: 9 * gib}, "disk", []string{"10GiB"}},
		"more memory than the host":   {BranchAsk{SourcePool: "cow", Type: vm, MemoryBytes: 16 * gib}, "memory", []string{"16GiB of 8GiB"}},
		"a large container":           {BranchAsk{SourcePool: "cow", CPUs: 64, MemoryBytes: 1 << 40}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := manyPools()
			facts.present[sized.Name] = sized
			test.ask.Name, test.ask.Source = "b", `machine "a"`
			wantRefusal(t, checkerOf(facts).AdmitBranch(t.Context(), test.ask), test.argument, test.parts...)
		})
	}
}

// A daemon that lost its virtual machines refuses a branch of one, and says why.
func TestAdmitBranchOfATypeThatDoesNotRun(t *testing.T) {
	t.Parallel()
	facts := manyPools()
	facts.Environment.Driver = "lxc"
	ask := BranchAsk{Name: "b", Source: `machine "a"`, Type: api.InstanceTypeVM, SourcePool: "cow"}
	wantRefusal(t, checkerOf(facts).AdmitBranch(t.Context(), ask), "source", "cannot run a virtual machine")
}
