// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"slices"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/units"
)

// driver is what tells a storage driver from the others.
type driver struct {
	version string
	remote  bool
	keys    []string // configuration keys of its own
	missing string   // what LXD says where the driver cannot be used
	minimum int64    // bytes that a pool must have at least
}

var storageDrivers = map[string]driver{
	"dir": {version: "1", keys: []string{"source"}},
	"btrfs": {
		version: "6.2", keys: []string{"source", "size", "btrfs.mount_options"}, minimum: 114294784,
		missing: `Required tool "btrfs" is missing`,
	},
	"zfs": {
		version: "2.1.11-1", keys: []string{"source", "size", "zfs.pool_name", "zfs.clone_copy", "zfs.export"},
		missing: `Error loading "zfs" module: Failed to run: modprobe -b zfs: exit status 1 (modprobe: FATAL: Module zfs not found.)`,
	},
	"lvm": {
		version: "2.03.16(2)", missing: `Required tool "lvm" is missing`,
		keys: []string{"source", "size", "lvm.use_thinpool", "lvm.thinpool_name", "lvm.thinpool_metadata_size", "lvm.vg_name", "lvm.vg.force_reuse"},
	},
	"ceph": {
		version: "16.2.15", remote: true, missing: "Required tool 'ceph' is missing",
		keys: []string{
			"source", "ceph.cluster_name", "ceph.osd.force_reuse", "ceph.osd.pg_num", "ceph.osd.pool_name", "ceph.osd.data_pool_name",
			"ceph.rbd.clone_copy", "ceph.rbd.du", "ceph.rbd.features", "ceph.user.name",
		},
	},
}

// sizeDefault is that of a loop pool without a size: LXD takes a fifth of the disk, from 5 to 30 GiB.
func sizeDefault(d Disk) int64 {
	return min(max(d.Total/5, 5*gibibyte), 30*gibibyte)
}

// checkDriver fails if this host cannot use the driver.
func (s *settings) checkDriver(name string) error {
	d, known := storageDrivers[name]
	if !known {
		return internalf("Unknown driver")
	}
	if !slices.Contains(s.usable, name) {
		return internalf("%s", d.missing)
	}
	return nil
}

// checkPoolConfig fails if a key is not known or a value is not valid.
func checkPoolConfig(name string, config map[string]string) error {
	for key, value := range config {
		common := strings.HasPrefix(key, "user.") || strings.HasPrefix(key, "volume.") || key == "rsync.bwlimit" ||
			key == "rsync.compression" || key == "volatile.initial_source" || key == "source.wipe"
		if !common && !slices.Contains(storageDrivers[name].keys, key) {
			return internalf("Invalid option %q", key)
		}
		if key == "size" {
			if _, err := units.ParseByteSizeString(value); err != nil {
				return internalf("Invalid value for option %q: %s", key, err.Error())
			}
		}
	}
	return nil
}

// thin tells whether an LVM pool allocates on demand.
func (p *pool) thin() bool {
	return p.Driver == "lvm" && shared.IsTrueOrEmpty(p.Config["lvm.use_thinpool"])
}

// thick tells whether an LVM pool gives each volume all its space at once.
func (p *pool) thick() bool { return p.Driver == "lvm" && !p.thin() }

// sharesSnapshots tells whether a snapshot takes no space of its own.
func (p *pool) sharesSnapshots() bool { return p.Driver != "dir" }

// sharesCopies tells whether a copy within the pool takes no space of its own. On zfs it does when the source's
// snapshots come along.
func (p *pool) sharesCopies(withSnapshots bool) bool {
	switch p.Driver {
	case "btrfs":
		return true
	case "zfs":
		return !withSnapshots && p.Config["zfs.clone_copy"] != "rebase" && shared.IsTrueOrEmpty(p.Config["zfs.clone_copy"])
	case "lvm":
		return p.thin()
	case "ceph":
		return shared.IsTrueOrEmpty(p.Config["ceph.rbd.clone_copy"])
	default:
		return false
	}
}

// sharesRestores tells whether going back takes the same time for any amount of data. Ceph's rollback writes the whole
// image anew.
func (p *pool) sharesRestores() bool {
	return p.Driver == "btrfs" || p.Driver == "zfs" || p.thin()
}

// sharesImages tells whether an unpacked image stays in the pool, for instances to share.
func (p *pool) sharesImages() bool { return p.Driver != "dir" }
