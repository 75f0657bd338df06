// SPDX-License-Identifier: MPL-2.0

package lxdtest_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

const instances = "/1.0/instances"

func scriptCreate(r *recorder, fingerprint string) {
	image := object{"type": "image", "fingerprint": fingerprint}
	nic := func(network string) object {
		devices := root("cow")
		devices["eth0"] = object{"type": "nic", "network": network}
		return devices
	}
	for _, body := range []object{
		{"name": "a", "source": image},
		{"name": "a", "source": object{"type": "image", "fingerprint": "0000"}, "devices": root("cow")},
		{"name": "a", "source": object{"type": "image", "alias": "nope"}, "devices": root("cow")},
		{"name": "a", "source": object{"type": "nope"}, "devices": root("cow")},
		{"name": "1a", "source": image, "devices": root("cow")},
		{"name": "a_b", "source": image, "devices": root("cow")},
		{"name": "a", "source": image, "devices": root("nope")},
		{"name": "a", "source": image, "devices": root("cow"), "config": object{"bogus": "1"}},
		{"name": "a", "source": image, "devices": root("cow"), "config": object{"migration.stateful": "true"}},
		{"name": "a", "source": image, "devices": root("cow"), "config": object{"limits.memory": "1x"}},
		{"name": "a", "source": image, "devices": root("cow"), "profiles": []string{"nope"}},
		{"name": "a", "source": image, "devices": root("cow"), "type": "virtual-machine"},
		{"name": "a", "source": object{"type": "none"}, "devices": root("cow"), "type": "virtual-machine"},
		{"name": "a", "source": image, "devices": nic("nope")},
		{"name": "a", "source": image, "devices": nic("confnet0"), "profiles": []string{}, "description": "d", "config": object{
			"volatile.uuid": "11111111-2222-3333-4444-555555555555", "user.x": "1",
		}},
		{"name": "a", "source": image, "devices": root("cow")},
	} {
		r.ask(http.MethodPost, instances, body)
	}
	r.noteInstance("created", "a")
	r.ask(http.MethodGet, instances+"/nope", nil)
	r.ask(http.MethodGet, instances+"/nope/state", nil)
	r.ask(http.MethodDelete, instances+"/nope", nil)
	r.ask(http.MethodPut, instances+"/a", object{"devices": root("cow")})
	r.ask(http.MethodPatch, instances+"/a", object{"config": object{"bogus": "1"}})
	r.ask(http.MethodPatch, instances+"/a", object{"config": object{"limits.memory": "64MiB", "user.x": ""}, "description": "new"})
	r.ask(http.MethodPatch, instances+"/a", object{"devices": root("plain")})
	r.ask(http.MethodPatch, instances+"/a", object{"restore": "x"})
	r.noteInstance("updated", "a")
	r.ask(http.MethodDelete, "/1.0/networks/confnet0", nil)
	r.ask(http.MethodDelete, "/1.0/storage-pools/cow", nil)
	r.ask(http.MethodGet, "/1.0/storage-pools/cow/volumes/image/"+fingerprint, nil)
	r.ask(http.MethodGet, "/1.0/storage-pools/cow/volumes/image/0000", nil)
}

// noteInstance writes down which keys an instance has, and the values that are not made up by the daemon.
func (r *recorder) noteInstance(when, name string) {
	i, etag, err := r.client.GetInstance(name)
	if err != nil {
		r.note(when, err.Error())
		return
	}
	keys := slices.Sorted(maps.Keys(i.Config))
	r.note(when, i.Name, i.Status, i.Type, i.Project, i.Description, i.Ephemeral, i.Profiles, i.Devices, i.ExpandedDevices, keys,
		i.Config["volatile.uuid"] != "", i.Config["volatile.last_state.power"], i.Config["user.x"], i.Config["limits.memory"], etag != "")
}

func scriptPower(r *recorder) {
	state := func(action string) {
		r.ask(http.MethodPut, instances+"/a/state", object{"action": action, "force": true})
	}
	r.ask(http.MethodPost, instances+"/a/exec", object{"command": []string{"true"}})
	state("stop")
	state("freeze")
	state("nope")
	state("restart")
	state("start")
	state("start")
	r.noteInstance("started", "a")
	r.ask(http.MethodDelete, instances+"/a", nil)
	r.ask(http.MethodPost, instances+"/a", object{"name": "z"})
	r.ask(http.MethodPost, instances+"/a/exec", object{"command": []string{"true"}})
	state("freeze")
	r.ask(http.MethodPost, instances+"/a/exec", object{"command": []string{"true"}})
	state("unfreeze")
	r.noteState("running")
	state("stop")
	r.noteInstance("stopped", "a")
	r.noteState("stopped")
	state("unfreeze")
	state("start")
}

func (r *recorder) noteState(when string) {
	state, _, err := r.client.GetInstanceState("a")
	if err != nil {
		r.note(when, err.Error())
		return
	}
	r.note(when, state.Status, state.StatusCode, state.Pid > 0, state.Processes > 0, slices.Sorted(maps.Keys(state.Network)), len(state.Disk))
}

func scriptSnapshots(r *recorder) {
	const path = instances + "/a/snapshots"
	for _, body := range []object{
		{"name": "s0"}, {"name": "s0"}, {"name": "a/b"}, {"name": "a b"}, {},
	} {
		r.ask(http.MethodPost, path, body)
	}
	r.ask(http.MethodPost, instances+"/nope/snapshots", object{"name": "s0"})
	r.ask(http.MethodGet, path+"/nope", nil)
	r.ask(http.MethodDelete, path+"/nope", nil)
	r.ask(http.MethodGet, instances+"/nope/snapshots", nil)
	r.ask(http.MethodPut, path+"/s0", object{"expires_at": "2040-01-01T00:00:00Z"})
	r.ask(http.MethodPost, path+"/s0", object{"name": "s9"})
	r.ask(http.MethodPost, path+"/s9", object{"name": "s0"})
	r.noteSnapshots("snapshots")
	r.ask(http.MethodPatch, instances+"/a", object{"config": object{"user.x": "changed"}, "description": "changed"})
	r.ask(http.MethodPut, instances+"/a", object{"restore": "nope"})
	r.ask(http.MethodPut, instances+"/nope", object{"restore": "s0"})
	r.ask(http.MethodPut, instances+"/a", object{"restore": "snap0"})
	r.ask(http.MethodPut, instances+"/a", object{"restore": "s0"})
	r.noteInstance("restored", "a")
	r.noteSnapshots("after the restore")
	r.ask(http.MethodDelete, path+"/snap0", nil)
}

func (r *recorder) noteSnapshots(when string) {
	snapshots, err := r.client.GetInstanceSnapshots("a")
	if err != nil {
		r.note(when, err.Error())
		return
	}
	for _, s := range snapshots {
		r.note(when, s.Name, s.Stateful, s.ExpiresAt, s.Size, s.Devices, slices.Sorted(maps.Keys(s.Config)), s.CreatedAt.IsZero())
	}
	pool, _, err := r.client.GetStoragePool("cow")
	if err != nil {
		r.note(when, err.Error())
		return
	}
	users := slices.DeleteFunc(pool.UsedBy, func(u string) bool { return strings.Contains(u, "/images/") })
	r.note(when, users)
}

func scriptCopies(r *recorder) {
	copyOf := func(source string) object { return object{"type": "copy", "source": source} }
	for _, body := range []object{
		{"name": "b", "source": copyOf("a/nope")},
		{"name": "b", "source": copyOf("nope")},
		{"name": "b", "source": copyOf("")},
		{"name": "b", "stateful": true, "source": copyOf("a/s0")},
		{"name": "b", "source": copyOf("a/s0")},
		{"name": "b", "source": copyOf("a/s0")},
		{"name": "c", "source": copyOf("a"), "devices": root("plain"), "config": object{"limits.memory": "", "user.q": "1"}},
	} {
		r.ask(http.MethodPost, instances, body)
	}
	r.noteInstance("copy of a snapshot", "b")
	r.noteInstance("copy of an instance", "c")
	names, err := r.client.GetInstanceSnapshotNames("c")
	r.note("snapshots of the copy", names, err == nil)
	r.ask(http.MethodPost, instances+"/b", object{"name": "a"})
	r.ask(http.MethodPost, instances+"/b", object{"name": "bb"})
	r.ask(http.MethodPatch, instances+"/bb", object{"config": object{"security.protection.delete": "true"}})
	r.ask(http.MethodDelete, instances+"/bb", nil)
	r.ask(http.MethodPatch, instances+"/bb", object{"config": object{"security.protection.delete": ""}})
	r.ask(http.MethodDelete, instances+"/bb", nil)
}

// scriptBranches makes copies as a branch is made: with an identity that is given, and without what is not to come along.
func scriptBranches(r *recorder) {
	const other = "?project=other"
	r.ask(http.MethodPost, "/1.0/projects", object{"name": "other", "config": object{"features.images": "false", "features.profiles": "false"}})
	branch := func(source string) object {
		return object{
			"name": "d", "type": "container", "profiles": []string{"default"}, "description": "a branch",
			"source": object{"type": "copy", "source": source, "project": "default", "instance_only": true},
			"config": object{
				"volatile.uuid": "22222222-2222-3333-4444-555555555555", "limits.memory": "", "user.none": "", "user.x": "2", "snapshots.schedule": "@never",
			},
			"devices": object{"eth0": object{"type": "none"}},
		}
	}
	vm := branch("a/s0")
	vm["type"] = "virtual-machine"
	r.ask(http.MethodPost, instances, vm)
	for _, place := range []string{"", other} {
		r.ask(http.MethodPost, instances+place, branch("a/s0"))
	}
	r.noteInstance("branch", "d")
	if d, _, err := r.client.GetInstance("d"); err == nil {
		r.note("uuid of the branch", d.Config["volatile.uuid"], d.Config["volatile.apply_template"])
		r.note("write", r.exchange(http.MethodPut, instances+"/d", object{"config": d.Config, "devices": root("cow"), "profiles": []string{}}))
	}
	r.noteInstance("branch without the device", "d")
	foreign := *r
	foreign.client = r.client.UseProject("other")
	foreign.noteInstance("branch in another project", "d")
	r.answers = foreign.answers
	missing := branch("a/s0")
	missing["source"] = object{"type": "copy", "source": "a/s0", "project": "none"}
	missing["name"] = "e"
	r.ask(http.MethodPost, instances, missing)
	r.ask(http.MethodDelete, instances+"/d"+other, nil)
	r.ask(http.MethodDelete, instances+"/d", nil)
	r.ask(http.MethodDelete, "/1.0/projects/other", nil)
}

func scriptFiles(t *testing.T, r *recorder) {
	t.Helper()
	push := func(path, kind, mode, content string) {
		err := r.client.CreateInstanceFile("c", path, lxd.InstanceFileArgs{
			Type: kind, WriteMode: mode, Mode: 0o640, UID: 5, Content: bytes.NewReader([]byte(content)),
		})
		r.note("push "+path, kind, mode, errorText(err))
	}
	push("/root/f", "file", "overwrite", "one")
	push("/root/f", "file", "append", "two")
	push("/root/d", "directory", "", "")
	push("/root/d", "directory", "", "")
	push("/nodir/f", "file", "overwrite", "x")
	for _, path := range []string{"/root/f", "/root/nope", "/root", "/bin/busybox"} {
		content, info, err := r.client.GetInstanceFile("c", path)
		if err != nil {
			r.note("pull "+path, errorText(err))
			continue
		}
		size := 0
		if content != nil {
			data, err := io.ReadAll(content)
			if err != nil {
				t.Fatal(err)
			}
			size = len(data)
		}
		slices.Sort(info.Entries)
		r.note("pull "+path, size, info.Type, info.Mode, info.UID, info.GID, info.Entries)
	}
	r.note("delete", errorText(r.client.DeleteInstanceFile("c", "/root/f")))
	r.note("delete again", errorText(r.client.DeleteInstanceFile("c", "/root/f")))
}

func errorText(err error) string {
	if err == nil {
		return "ok"
	}
	status, _ := api.StatusErrorMatch(err)
	return fmt.Sprintf("%d %s", status, err)
}

func scriptRemoval(r *recorder, fingerprint string) {
	r.ask(http.MethodPut, instances+"/a/state", object{"action": "stop", "force": true})
	for _, path := range []string{
		instances + "/a", instances + "/c", "/1.0/images/" + fingerprint, "/1.0/networks/confnet0", "/1.0/storage-pools/cow",
		"/1.0/storage-pools/plain", "/1.0/operations/nope", "/1.0/profiles/default", "/1.0/profiles/nope",
	} {
		r.ask(http.MethodDelete, path, nil)
	}
	r.ask(http.MethodGet, "/1.0/cluster/members", nil)
	r.ask(http.MethodGet, "/1.0/nope", nil)
	r.ask(http.MethodGet, instances, nil)
}
