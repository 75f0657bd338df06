// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared"
	"github.com/canonical/lxd/shared/api"
)

// instance is a container or virtual machine.
type instance struct {
	api.Instance
	in        *project
	volume    *volume
	snapshots []*snapshot
	busy      string            // the operation that holds the instance, if any
	addresses map[string]string // by interface, while it runs
	boot      string            // what its memory is of, while it runs
	kept      string            // the same of memory that is on its disk
	paused    bool              // while its memory is dumped, or after that failed
}

// snapshot is that of an instance. Its data is the point of the same name on the volume.
type snapshot struct {
	api.InstanceSnapshot
	description string
	boot        string // what its memory is of
}

func (s *Server) findInstance(r *http.Request) (*instance, error) {
	if i, ok := s.project(r).instances[r.PathValue("name")]; ok {
		return i, nil
	}
	return nil, api.StatusErrorf(http.StatusNotFound, "Instance not found")
}

func (i *instance) find(name string) *snapshot {
	for _, snap := range i.snapshots {
		if snap.Name == name {
			return snap
		}
	}
	return nil
}

// resources are what an operation on the instance says that it is about.
func (i *instance) resources() map[string][]string {
	return map[string][]string{"instances": {objectPath(i.Project, "instances", i.Name)}}
}

// hold marks the instance as in the hands of an operation until release is called.
func (i *instance) hold(operation string) (release func(), err error) {
	if i.busy != "" {
		return nil, internalf("Failed to create instance %s operation: Instance is busy running a %q operation", operation, i.busy)
	}
	i.busy = operation
	return func() { i.busy = "" }, nil
}

func (i *instance) expandedConfig() map[string]string {
	expanded := map[string]string{}
	for _, name := range i.Profiles {
		maps.Copy(expanded, i.in.profiles[name].Config)
	}
	maps.Copy(expanded, i.Config)
	return expanded
}

func (i *instance) expandedDevices() map[string]map[string]string {
	expanded := map[string]map[string]string{}
	for _, name := range i.Profiles {
		maps.Copy(expanded, i.in.profiles[name].Devices)
	}
	maps.Copy(expanded, i.Devices)
	return expanded
}

// rootPool returns the name of the pool that the root disk is on.
func (i *instance) rootPool() (string, error) {
	for _, d := range i.expandedDevices() {
		if d["type"] == "disk" && d["path"] == "/" && d["pool"] != "" {
			return d["pool"], nil
		}
	}
	return "", internalf("Failed getting root disk: No root device could be found")
}

func (i *instance) running() bool { return i.StatusCode != api.Stopped }

func (i *instance) setStatus(c api.StatusCode) { i.StatusCode, i.Status = c, c.String() }

// writable is what the ETag of an instance covers.
func (i *instance) writable() []any {
	return []any{i.Architecture, i.Config, i.Devices, i.Ephemeral, i.Profiles}
}

func (i *instance) show() api.Instance {
	shown := i.Instance
	shown.ExpandedConfig, shown.ExpandedDevices = i.expandedConfig(), i.expandedDevices()
	return shown
}

func (i *instance) showFull() api.InstanceFull {
	state := i.state()
	full := api.InstanceFull{Instance: i.show(), State: &state}
	for _, snap := range i.snapshots {
		full.Snapshots = append(full.Snapshots, snap.InstanceSnapshot)
	}
	return full
}

func (s *Server) instancesGet(r *http.Request) answer {
	chosen := slices.Collect(maps.Values(s.project(r).instances))
	if r.URL.Query().Get("all-projects") == "true" {
		chosen = s.allInstances()
	}
	slices.SortFunc(chosen, func(a, b *instance) int { return strings.Compare(a.Name, b.Name) })
	paths, instances, full := []string{}, []api.Instance{}, []api.InstanceFull{}
	for _, i := range chosen {
		if kind := r.URL.Query().Get("instance-type"); kind != "" && kind != i.Type {
			continue
		}
		paths = append(paths, objectPath(i.Project, "instances", i.Name))
		instances = append(instances, i.show())
		full = append(full, i.showFull())
	}
	switch {
	case recursive(r, "2"):
		return value(full)
	case recursive(r, "1"):
		return value(instances)
	default:
		return value(paths)
	}
}

func (s *Server) instanceGet(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	if recursive(r, "1") {
		return tagged(i.showFull(), i.writable()...)
	}
	return tagged(i.show(), i.writable()...)
}

func (s *Server) instanceRename(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	var req api.InstancePost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if req.Migration || req.Pool != "" || req.Project != "" {
		return failedf(http.StatusNotImplemented, "moving instances is not known to the daemon in memory")
	}
	if err := checkInstanceName(req.Name); err != nil {
		return failed(err)
	}
	if _, taken := i.in.instances[req.Name]; taken {
		return failedf(http.StatusConflict, "Name %q already in use", req.Name)
	}
	return s.start(i.Project, "Renaming instance", i.resources(), func(*operation) error {
		if i.running() {
			return internalf("Renaming of running %s not allowed", i.Type)
		}
		delete(i.in.instances, i.Name)
		i.Name = req.Name
		i.in.instances[i.Name] = i
		return nil
	})
}

func (s *Server) instanceDelete(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	if i.running() {
		return badRequest("Instance is running")
	}
	return s.start(i.Project, "Deleting instance", i.resources(), func(*operation) error {
		if shared.IsTrue(i.expandedConfig()["security.protection.delete"]) {
			return internalf("Container is protected")
		}
		release, err := i.hold("delete")
		if err != nil {
			return err
		}
		defer release()
		s.spend(Work{Verb: "delete", Driver: i.volume.pool.Driver, Bytes: moved(i.volume.pool.sharesSnapshots(), i.volume.live)})
		i.remove()
		return nil
	})
}

func (i *instance) remove() {
	i.volume.destroy()
	delete(i.in.instances, i.Name)
}

// checkInstanceName follows LXD 5.0.
func checkInstanceName(name string) error {
	reason := ""
	switch {
	case name == "" || len(name) > 63:
		reason = "Name must be 1-63 characters long"
	case name[0] >= '0' && name[0] <= '9':
		reason = "Name must not start with a number"
	case strings.HasPrefix(name, "-"), strings.HasSuffix(name, "-"):
		reason = `Name must not start or end with "-"`
	case strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	}):
		reason = "Name can only contain alphanumeric and hyphen characters"
	}
	if reason == "" {
		return nil
	}
	return api.StatusErrorf(http.StatusBadRequest, "Invalid instance name: %s", reason)
}
