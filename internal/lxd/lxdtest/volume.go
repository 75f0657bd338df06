// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"bytes"
	"maps"
	"slices"

	"github.com/canonical/lxd/shared"
)

// blob is the content of one file. Volumes that share data hold the same blob, so space is counted by blobs.
type blob struct {
	data []byte
	size int64 // of the data, or more for what stands for a tree that is not known in detail
	kind string
	mode uint32
	uid  int64
	gid  int64
}

// tree is the content of a volume: blobs by absolute path.
type tree map[string]*blob

// share returns a tree with the same blobs.
func (t tree) share() tree { return maps.Clone(t) }

// copy returns a tree with blobs of its own. They use the same memory here, but not the same space on the pool.
func (t tree) copy() tree {
	c := make(tree, len(t))
	for path, b := range t {
		own := *b
		c[path] = &own
	}
	return c
}

func (t tree) bytes() (sum int64) {
	for _, b := range t {
		sum += b.size
	}
	return sum
}

// differs returns the bytes of what is other in t than in from.
func (t tree) differs(from tree) (sum int64) {
	for path, b := range t {
		if old, ok := from[path]; !ok || !bytes.Equal(old.data, b.data) || old.size != b.size {
			sum += b.size
		}
	}
	return sum
}

// volume is the disk of an instance.
type volume struct {
	pool   *pool
	live   tree
	points []*point // in the order of their creation
	origin *point   // what it was cloned from, on drivers where a clone depends on that
}

// point is a snapshot on the pool. An internal one is not shown by the API: zfs leaves them.
type point struct {
	name     string
	internal bool
	tree     tree
	owner    *volume
	clones   int
}

func newPoint(owner *volume, name string, t tree) *point {
	return &point{name: name, owner: owner, tree: t}
}

func (v *volume) find(name string) *point {
	for _, p := range v.points {
		if p.name == name && !p.internal {
			return p
		}
	}
	return nil
}

func (v *volume) index(p *point) int { return slices.Index(v.points, p) }

// moved returns what the driver has to read and write for a new tree of that content.
func moved(shares bool, t tree) int64 {
	if shares {
		return 0
	}
	return t.bytes()
}

// duplicate returns the content for something new on the pool.
func duplicate(shares bool, t tree) tree {
	if shares {
		return t.share()
	}
	return t.copy()
}

func (v *volume) snapshot(name string) {
	v.points = append(v.points, newPoint(v, name, duplicate(v.pool.sharesSnapshots(), v.live)))
}

// clone makes a volume on the same pool from a snapshot, or from the volume as it is now if that is nil.
func (v *volume) clone(from *point, withSnapshots bool) *volume {
	content := v.live
	if from != nil {
		content = from.tree
	}
	shares := v.pool.sharesCopies(withSnapshots)
	c := &volume{pool: v.pool, live: duplicate(shares, content)}
	if v.pool.Driver == "zfs" && shares {
		if from == nil {
			// A clone needs a snapshot to stem from, which stays on the source.
			from = &point{name: "copy", internal: true, owner: v, tree: v.live.share()}
			v.points = append(v.points, from)
		}
		from.clones++
		c.origin = from
	}
	return c
}

// restorable fails where the driver cannot go back to p. later are the snapshots that it would remove on the way.
func (v *volume) restorable(p *point) (later []string, err error) {
	if v.pool.Driver != "zfs" {
		return nil, nil
	}
	for _, after := range v.points[v.index(p)+1:] {
		if after.internal {
			return nil, internalf("Snapshot %q cannot be restored due to subsequent internal snapshot(s) (from a copy)", p.name)
		}
		later = append(later, after.name)
	}
	if len(later) > 0 && !shared.IsTrue(v.pool.Config["volume.zfs.remove_snapshots"]) {
		return nil, internalf("Snapshot %q cannot be restored due to subsequent snapshot(s). Set zfs.remove_snapshots to override", p.name)
	}
	return later, nil
}

// restoreBytes is what going back to p has to write.
func (v *volume) restoreBytes(p *point) int64 {
	if v.pool.sharesRestores() {
		return 0
	}
	if v.pool.Driver == "dir" {
		return p.tree.differs(v.live)
	}
	return p.tree.bytes()
}

func (v *volume) restore(p *point) {
	v.live = duplicate(v.pool.sharesSnapshots(), p.tree)
}

// remove deletes a snapshot. One that has clones stays on the pool until they are gone.
func (v *volume) remove(p *point) {
	if p.clones > 0 {
		p.internal = true
		return
	}
	v.points = slices.DeleteFunc(v.points, func(other *point) bool { return other == p })
}

// destroy deletes the volume. Where it has clones, its pool keeps it for them.
func (v *volume) destroy() {
	v.live = nil
	for _, p := range slices.Clone(v.points) {
		v.remove(p)
	}
	if len(v.points) > 0 {
		v.pool.deleted = append(v.pool.deleted, v)
	}
	if o := v.origin; o != nil {
		o.clones--
		if o.clones == 0 && o.internal {
			o.owner.remove(o)
		}
	}
	v.pool.deleted = slices.DeleteFunc(v.pool.deleted, func(d *volume) bool { return len(d.points) == 0 })
}
