// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/canonical/lxd/shared/api"
)

// project holds what belongs to one. Pools and networks belong to none.
type project struct {
	api.Project
	instances map[string]*instance
	images    map[string]*image
	aliases   map[string]api.ImageAliasesEntry
	profiles  map[string]*profile
}

func newProject(name string) *project {
	return &project{
		Project: api.Project{Name: name, Config: map[string]string{
			"features.images": "true", "features.profiles": "true", "features.storage.volumes": "true", "features.networks": "false",
		}},
		instances: map[string]*instance{},
		images:    map[string]*image{},
		aliases:   map[string]api.ImageAliasesEntry{},
		profiles: map[string]*profile{"default": {project: name, Profile: api.Profile{
			Name: "default", Description: "Default LXD profile", Config: map[string]string{}, Devices: map[string]map[string]string{},
		}}},
	}
}

// sharesProfiles tells whether the profiles of the project are the default project's.
func (p *project) sharesProfiles() bool { return p.Config["features.profiles"] == "false" }

// project returns that of a request. One that does not exist holds nothing, as far as reads are concerned.
func (s *Server) project(r *http.Request) *project {
	if p, ok := s.projects[projectOf(r)]; ok {
		return p
	}
	return newProject(projectOf(r))
}

// projectToChange returns that of a request, which must exist.
func (s *Server) projectToChange(r *http.Request) (*project, error) {
	if p, ok := s.projects[projectOf(r)]; ok {
		return p, nil
	}
	return nil, api.StatusErrorf(http.StatusNotFound, "Project not found")
}

// allInstances returns the instances of all projects by name.
func (s *Server) allInstances() []*instance {
	var all []*instance
	for _, p := range s.projects {
		all = slices.AppendSeq(all, maps.Values(p.instances))
	}
	slices.SortFunc(all, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (s *Server) projectsGet(r *http.Request) answer {
	paths, projects := []string{}, []api.Project{}
	for _, name := range slices.Sorted(maps.Keys(s.projects)) {
		paths = append(paths, objectPath("default", "projects", name))
		projects = append(projects, s.projects[name].Project)
	}
	if recursive(r, "1") {
		return value(projects)
	}
	return value(paths)
}

func (s *Server) projectsPost(r *http.Request) answer {
	var req api.ProjectsPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if req.Name == "" {
		return badRequest("No name provided")
	}
	if _, taken := s.projects[req.Name]; taken {
		return failedf(http.StatusConflict, "Project %q already exists", req.Name)
	}
	p := newProject(req.Name)
	p.Description = req.Description
	maps.Copy(p.Config, req.Config)
	if p.sharesProfiles() {
		p.profiles = s.projects["default"].profiles
	}
	s.projects[req.Name] = p
	return answer{status: http.StatusCreated, value: struct{}{}}
}

func (s *Server) projectGet(r *http.Request) answer {
	p, ok := s.projects[r.PathValue("name")]
	if !ok {
		return failedf(http.StatusNotFound, "Project not found")
	}
	return tagged(p.Project, p.Description, p.Config)
}

func (s *Server) projectDelete(r *http.Request) answer {
	p, ok := s.projects[r.PathValue("name")]
	switch {
	case !ok:
		return failedf(http.StatusNotFound, "Project not found")
	case p.Name == "default":
		return failedf(http.StatusForbidden, "The 'default' project cannot be deleted")
	case len(p.instances)+len(p.images) > 0 || len(p.profiles) > 1 && !p.sharesProfiles():
		return badRequest("Only empty projects can be removed")
	}
	delete(s.projects, p.Name)
	return done(nil)
}
