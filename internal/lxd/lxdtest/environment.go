// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"net/http"

	"github.com/canonical/lxd/shared/api"
)

func (s *Server) serverGet(r *http.Request) answer {
	server := api.Server{
		ServerPut: api.ServerPut{Config: map[string]any{}},
		ServerUntrusted: api.ServerUntrusted{
			APIExtensions: s.settings.extensions, APIStatus: "stable", APIVersion: "1.0", Auth: "trusted", AuthMethods: []string{"tls"},
		},
		Environment: s.settings.environment,
	}
	server.Environment.Project = projectOf(r)
	for _, name := range s.settings.listed {
		d := storageDrivers[name]
		server.Environment.StorageSupportedDrivers = append(server.Environment.StorageSupportedDrivers,
			api.ServerStorageDriverInfo{Name: name, Version: d.version, Remote: d.remote})
	}
	return tagged(server, server.Config)
}

func (s *Server) warningsGet(r *http.Request) answer {
	if recursive(r, "1") {
		return value(s.settings.warnings)
	}
	paths := []string{}
	for _, w := range s.settings.warnings {
		paths = append(paths, objectPath("default", "warnings", w.UUID))
	}
	return value(paths)
}

func (s *Server) resourcesGet(*http.Request) answer { return value(s.settings.resources) }
