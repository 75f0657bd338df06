// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"

	"github.com/canonical/lxd/shared/api"
)

func (s *Server) aliasesGet(r *http.Request) answer {
	p := s.project(r)
	paths, aliases := []string{}, []api.ImageAliasesEntry{}
	for _, name := range slices.Sorted(maps.Keys(p.aliases)) {
		paths = append(paths, objectPath(p.Name, "images", "aliases", name))
		aliases = append(aliases, p.aliases[name])
	}
	if recursive(r, "1") {
		return value(aliases)
	}
	return value(paths)
}

func (s *Server) aliasGet(r *http.Request) answer {
	a, ok := s.project(r).aliases[r.PathValue("name")]
	if !ok {
		return failedf(http.StatusNotFound, "Image alias not found")
	}
	return tagged(a, a)
}

func (s *Server) aliasesPost(r *http.Request) answer {
	var req api.ImageAliasesPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	p, err := s.projectToChange(r)
	if err != nil {
		return failed(err)
	}
	if req.Name == "" || req.Target == "" {
		return badRequest("name and target are required")
	}
	if _, taken := p.aliases[req.Name]; taken {
		return failedf(http.StatusConflict, "Alias %q already exists", req.Name)
	}
	i, ok := p.images[req.Target]
	if !ok {
		return failedf(http.StatusNotFound, "Image not found")
	}
	req.Type = i.Type
	p.aliases[req.Name] = req.ImageAliasesEntry
	return answer{status: http.StatusCreated}
}

func (s *Server) aliasDelete(r *http.Request) answer {
	p := s.project(r)
	if _, ok := p.aliases[r.PathValue("name")]; !ok {
		return failedf(http.StatusNotFound, "Image alias not found")
	}
	delete(p.aliases, r.PathValue("name"))
	return done(nil)
}
