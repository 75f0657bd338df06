// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

type profile struct {
	api.Profile
	project string
}

// allProfiles returns the profiles of all projects.
func (s *Server) allProfiles() []*profile {
	var all []*profile
	for _, p := range s.projects {
		if p.sharesProfiles() {
			continue
		}
		all = slices.AppendSeq(all, maps.Values(p.profiles))
	}
	return all
}

func (s *Server) showProfile(p *profile) api.Profile {
	shown := p.Profile
	shown.UsedBy = []string{}
	for _, i := range s.allInstances() {
		if i.Project == p.project && slices.Contains(i.Profiles, p.Name) {
			shown.UsedBy = append(shown.UsedBy, objectPath(i.Project, "instances", i.Name))
		}
	}
	return shown
}

func (s *Server) profilesGet(r *http.Request) answer {
	p := s.project(r)
	paths, profiles := []string{}, []api.Profile{}
	for _, name := range slices.Sorted(maps.Keys(p.profiles)) {
		paths = append(paths, objectPath(p.Name, "profiles", name))
		profiles = append(profiles, s.showProfile(p.profiles[name]))
	}
	if recursive(r, "1") {
		return value(profiles)
	}
	return value(paths)
}

func (s *Server) profileGet(r *http.Request) answer {
	p, ok := s.project(r).profiles[r.PathValue("name")]
	if !ok {
		return failedf(http.StatusNotFound, "Fetch profile: Profile not found")
	}
	return tagged(s.showProfile(p), p.Config, p.Description, p.Devices)
}

func (s *Server) profilesPost(r *http.Request) answer {
	var req api.ProfilesPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	in, err := s.projectToChange(r)
	switch {
	case err != nil:
		return failed(err)
	case req.Name == "":
		return badRequest("No name provided")
	case strings.Contains(req.Name, "/"):
		return badRequest("Profile names may not contain slashes")
	}
	return s.change("Creating profile", http.StatusCreated, func() error {
		if _, taken := in.profiles[req.Name]; taken {
			return internalf("Error inserting %q into database: The profile already exists", req.Name)
		}
		in.profiles[req.Name] = &profile{project: in.Name, Profile: api.Profile{
			Name: req.Name, Description: req.Description, Config: orEmpty(req.Config), Devices: orEmpty(req.Devices),
		}}
		return nil
	})
}

// orEmpty returns m, or a map where it is nil.
func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}

func (s *Server) profilePut(r *http.Request) answer {
	var req api.ProfilePut
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	p, ok := s.project(r).profiles[r.PathValue("name")]
	if !ok {
		return failedf(http.StatusNotFound, "Profile not found")
	}
	if err := checkETag(r, p.Config, p.Description, p.Devices); err != nil {
		return failed(err)
	}
	return s.change("Updating profile", 0, func() error {
		p.Description, p.Config, p.Devices = req.Description, orEmpty(req.Config), orEmpty(req.Devices)
		return nil
	})
}

func (s *Server) profileDelete(r *http.Request) answer {
	in := s.project(r)
	p, ok := in.profiles[r.PathValue("name")]
	switch {
	case r.PathValue("name") == "default":
		return failedf(http.StatusForbidden, `The "default" profile cannot be deleted`)
	case !ok:
		return failedf(http.StatusNotFound, "Profile not found")
	}
	return s.change("Deleting profile", 0, func() error {
		if len(s.showProfile(p).UsedBy) > 0 {
			return api.StatusErrorf(http.StatusBadRequest, "Profile is currently in use")
		}
		delete(in.profiles, p.Name)
		return nil
	})
}
