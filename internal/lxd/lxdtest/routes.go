// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
)

// handler answers the API. Handlers of the first table run under the lock, those of the second one do not.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range s.locked() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			send := h(r).render()
			s.mu.Unlock()
			send(w)
		})
	}
	for pattern, h := range map[string]http.HandlerFunc{
		"GET /1.0/events":                    s.eventsGet,
		"GET /1.0/operations/{id}/wait":      s.operationWait,
		"GET /1.0/operations/{id}/websocket": s.operationWebsocket,
		"/":                                  func(w http.ResponseWriter, _ *http.Request) { failedf(http.StatusNotFound, "not found").send(w) },
	} {
		mux.HandleFunc(pattern, h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path})
		s.expireSnapshots()
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

type routes map[string]func(*http.Request) answer

func (s *Server) locked() routes {
	all := s.daemonRoutes()
	maps.Copy(all, s.storageRoutes())
	maps.Copy(all, s.instanceRoutes())
	return all
}

func (s *Server) daemonRoutes() routes {
	return routes{
		"GET /{$}":             func(*http.Request) answer { return value([]string{"/1.0"}) },
		"GET /1.0":             s.serverGet,
		"GET /1.0/warnings":    s.warningsGet,
		"GET /1.0/resources":   s.resourcesGet,
		"GET /internal/ready":  func(*http.Request) answer { return value(struct{}{}) },
		"GET /1.0/cluster":     func(*http.Request) answer { return value(struct{}{}) },
		"/1.0/cluster/members": func(*http.Request) answer { return failedf(http.StatusInternalServerError, "Server is not clustered") },

		"GET /1.0/operations":         s.operationsGet,
		"GET /1.0/operations/{id}":    s.operationGet,
		"DELETE /1.0/operations/{id}": s.operationDelete,

		"GET /1.0/projects":           s.projectsGet,
		"POST /1.0/projects":          s.projectsPost,
		"GET /1.0/projects/{name}":    s.projectGet,
		"DELETE /1.0/projects/{name}": s.projectDelete,

		"GET /1.0/profiles":           s.profilesGet,
		"POST /1.0/profiles":          s.profilesPost,
		"GET /1.0/profiles/{name}":    s.profileGet,
		"PUT /1.0/profiles/{name}":    s.profilePut,
		"DELETE /1.0/profiles/{name}": s.profileDelete,
	}
}

func (s *Server) storageRoutes() routes {
	return routes{
		"GET /1.0/storage-pools":                                      s.poolsGet,
		"POST /1.0/storage-pools":                                     s.poolsPost,
		"GET /1.0/storage-pools/{name}":                               s.poolGet,
		"PUT /1.0/storage-pools/{name}":                               s.poolPut,
		"PATCH /1.0/storage-pools/{name}":                             s.poolPatch,
		"DELETE /1.0/storage-pools/{name}":                            s.poolDelete,
		"GET /1.0/storage-pools/{name}/resources":                     s.poolResourcesGet,
		"GET /1.0/storage-pools/{name}/volumes":                       s.volumesGet,
		"GET /1.0/storage-pools/{name}/volumes/{type}/{volume}":       s.volumeGet,
		"/1.0/storage-pools/{name}/volumes/{type}/{volume}/{rest...}": s.volumeRest,

		"GET /1.0/networks":           s.networksGet,
		"POST /1.0/networks":          s.networksPost,
		"GET /1.0/networks/{name}":    s.networkGet,
		"PUT /1.0/networks/{name}":    s.networkPut,
		"PATCH /1.0/networks/{name}":  s.networkPatch,
		"DELETE /1.0/networks/{name}": s.networkDelete,

		"GET /1.0/images":                   s.imagesGet,
		"POST /1.0/images":                  s.imagesPost,
		"GET /1.0/images/{fingerprint}":     s.imageGet,
		"PUT /1.0/images/{fingerprint}":     s.imagePut,
		"DELETE /1.0/images/{fingerprint}":  s.imageDelete,
		"GET /1.0/images/aliases":           s.aliasesGet,
		"POST /1.0/images/aliases":          s.aliasesPost,
		"GET /1.0/images/aliases/{name}":    s.aliasGet,
		"DELETE /1.0/images/aliases/{name}": s.aliasDelete,
	}
}

func (s *Server) instanceRoutes() routes {
	return routes{
		"GET /1.0/instances":              s.instancesGet,
		"POST /1.0/instances":             s.instancesPost,
		"GET /1.0/instances/{name}":       s.instanceGet,
		"PUT /1.0/instances/{name}":       s.instancePut,
		"PATCH /1.0/instances/{name}":     s.instancePatch,
		"POST /1.0/instances/{name}":      s.instancePost,
		"DELETE /1.0/instances/{name}":    s.instanceDelete,
		"GET /1.0/instances/{name}/state": s.stateGet,
		"PUT /1.0/instances/{name}/state": s.statePut,
		"POST /1.0/instances/{name}/exec": s.execPost,

		"GET /1.0/instances/{name}/files":    s.fileGet,
		"POST /1.0/instances/{name}/files":   s.filePost,
		"DELETE /1.0/instances/{name}/files": s.fileDelete,

		"GET /1.0/instances/{name}/snapshots":               s.snapshotsGet,
		"POST /1.0/instances/{name}/snapshots":              s.snapshotsPost,
		"GET /1.0/instances/{name}/snapshots/{snapshot}":    s.snapshotGet,
		"PUT /1.0/instances/{name}/snapshots/{snapshot}":    s.snapshotPut,
		"PATCH /1.0/instances/{name}/snapshots/{snapshot}":  s.snapshotPut,
		"POST /1.0/instances/{name}/snapshots/{snapshot}":   s.snapshotRename,
		"DELETE /1.0/instances/{name}/snapshots/{snapshot}": s.snapshotDelete,
	}
}
