// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"bytes"
	"net/http"
	"path"
	"slices"
	"strconv"

	"github.com/canonical/lxd/shared/api"
)

// file finds the instance of a request and the path in it.
func (s *Server) file(r *http.Request) (*instance, string, error) {
	i, err := s.findInstance(r)
	if err != nil {
		return nil, "", err
	}
	name := r.URL.Query().Get("path")
	if name == "" {
		return nil, "", api.StatusErrorf(http.StatusBadRequest, "Missing path argument")
	}
	if i.virtual() && !i.running() {
		return nil, "", internalf("LXD VM agent isn't currently running")
	}
	return i, path.Join("/", name), nil
}

func (s *Server) fileGet(r *http.Request) answer {
	i, name, err := s.file(r)
	if err != nil {
		return failed(err)
	}
	b, ok := i.volume.live[name]
	if !ok {
		return failedf(http.StatusNotFound, "Not Found")
	}
	own := *b
	if own.kind != "directory" {
		return answer{write: func(w http.ResponseWriter) {
			own.headers(w.Header())
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(own.data) // A client that has gone does not want it.
		}}
	}
	entries := []string{}
	for other := range i.volume.live {
		if path.Dir(other) == name && other != name {
			entries = append(entries, path.Base(other))
		}
	}
	slices.Sort(entries)
	send := value(entries).render()
	return answer{write: func(w http.ResponseWriter) { own.headers(w.Header()); send(w) }}
}

func (s *Server) filePost(r *http.Request) answer {
	i, name, err := s.file(r)
	if err != nil {
		return failed(err)
	}
	kind := r.Header.Get("X-LXD-type")
	if kind == "" {
		kind = "file"
	}
	if !slices.Contains([]string{"file", "directory", "symlink"}, kind) {
		return badRequest("Bad file type: %s", kind)
	}
	s.mu.Unlock()
	data, err := readBody(r)
	s.mu.Lock()
	if err != nil {
		return failed(err)
	}
	return done(s.write(i, name, blobFrom(kind, data, r.Header), r.Header.Get("X-LXD-write") == "append"))
}

// readBody reads what may be large, so it makes room at once.
func readBody(r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := b.ReadFrom(r.Body)
	return b.Bytes(), err
}

func blobFrom(kind string, data []byte, h http.Header) *blob {
	mode := map[string]uint64{"file": 0o644, "directory": 0o755, "symlink": 0o777}[kind]
	if given, err := strconv.ParseUint(h.Get("X-LXD-mode"), 8, 32); err == nil {
		mode = given
	}
	// What is not given is root's.
	uid, _ := strconv.ParseInt(h.Get("X-LXD-uid"), 10, 64)
	gid, _ := strconv.ParseInt(h.Get("X-LXD-gid"), 10, 64)
	return &blob{kind: kind, data: data, size: int64(len(data)), mode: uint32(mode), uid: uid, gid: gid}
}

func (s *Server) write(i *instance, name string, b *blob, add bool) error {
	notFound := api.StatusErrorf(http.StatusNotFound, "Not Found")
	if parent, ok := i.volume.live[path.Dir(name)]; !ok || parent.kind != "directory" {
		return notFound
	}
	old, exists := i.volume.live[name]
	if exists && add {
		b.data = slices.Concat(old.data, b.data)
		b.size = old.size + b.size
		b.mode, b.uid, b.gid = old.mode, old.uid, old.gid
	}
	if exists && b.kind == "directory" {
		return nil
	}
	if err := s.room(i.volume.pool, b.size); err != nil {
		return err
	}
	s.spend(Work{Verb: "write", Driver: i.volume.pool.Driver, Bytes: b.size})
	i.volume.live[name] = b
	return nil
}

func (s *Server) fileDelete(r *http.Request) answer {
	i, name, err := s.file(r)
	if err != nil {
		return failed(err)
	}
	if _, ok := i.volume.live[name]; !ok {
		return failedf(http.StatusNotFound, "Not Found")
	}
	delete(i.volume.live, name)
	return done(nil)
}
