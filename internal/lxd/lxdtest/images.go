// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// image is an image with the root directory that instances start from.
type image struct {
	api.Image
	root tree
}

// AddImage puts an image into the default project whose root directory holds the given files, by absolute path, and
// returns its fingerprint.
func (s *Server) AddImage(files map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	root := newRoot()
	for path, content := range files {
		root[path] = &blob{kind: "file", mode: 0o644, data: []byte(content), size: int64(len(content))}
	}
	i := &image{root: root, Image: api.Image{
		Architecture: "x86_64", Type: "container", Project: "default", UploadedAt: time.Now().UTC(),
		Fingerprint: etagOf(files, len(s.projects["default"].images)), Size: root.bytes(),
		Properties: map[string]string{"description": "test"},
	}}
	s.projects["default"].images[i.Fingerprint] = i
	return i.Fingerprint
}

func (p *project) showImage(i *image) api.Image {
	shown := i.Image
	shown.Aliases = []api.ImageAlias{}
	for _, name := range slices.Sorted(maps.Keys(p.aliases)) {
		if a := p.aliases[name]; a.Target == i.Fingerprint {
			shown.Aliases = append(shown.Aliases, api.ImageAlias{Name: a.Name, Description: a.Description})
		}
	}
	return shown
}

// findImage takes the first characters of a fingerprint too, as the API does.
func (p *project) findImage(fingerprint string) (*image, error) {
	var found []*image
	for f, i := range p.images {
		if fingerprint != "" && strings.HasPrefix(f, fingerprint) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return nil, api.StatusErrorf(http.StatusNotFound, "Image not found")
	case 1:
		return found[0], nil
	default:
		return nil, api.StatusErrorf(http.StatusBadRequest, "More than one image matches")
	}
}

func (s *Server) imagesGet(r *http.Request) answer {
	p := s.project(r)
	paths, images := []string{}, []api.Image{}
	for _, f := range slices.Sorted(maps.Keys(p.images)) {
		paths = append(paths, objectPath(p.Name, "images", f))
		images = append(images, p.showImage(p.images[f]))
	}
	if recursive(r, "1") {
		return value(images)
	}
	return value(paths)
}

func (s *Server) imageGet(r *http.Request) answer {
	p := s.project(r)
	i, err := p.findImage(r.PathValue("fingerprint"))
	if err != nil {
		return failed(err)
	}
	return tagged(p.showImage(i), i.Public, i.AutoUpdate, i.Properties)
}

func (s *Server) imagePut(r *http.Request) answer {
	i, err := s.project(r).findImage(r.PathValue("fingerprint"))
	if err != nil {
		return failed(err)
	}
	var req api.ImagePut
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if err := checkETag(r, i.Public, i.AutoUpdate, i.Properties); err != nil {
		return failed(err)
	}
	i.SetWritable(req)
	return done(nil)
}

func (s *Server) imageDelete(r *http.Request) answer {
	p := s.project(r)
	i, err := p.findImage(r.PathValue("fingerprint"))
	if err != nil {
		return failed(err)
	}
	resources := map[string][]string{"images": {objectPath(p.Name, "images", i.Fingerprint)}}
	return s.start(p.Name, "Deleting image", resources, func(*operation) error {
		delete(p.images, i.Fingerprint)
		maps.DeleteFunc(p.aliases, func(_ string, a api.ImageAliasesEntry) bool { return a.Target == i.Fingerprint })
		for _, pool := range s.pools {
			delete(pool.images, i.Fingerprint)
		}
		return nil
	})
}

func (s *Server) imagesPost(r *http.Request) answer {
	p, err := s.projectToChange(r)
	if err != nil {
		return failed(err)
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return s.importImage(p, r)
	}
	// The body is read before the answer, as in LXD, but what is in it is looked at afterwards.
	s.mu.Unlock()
	upload, err := readUpload(r)
	s.mu.Lock()
	if err != nil {
		return failed(err)
	}
	return s.start(p.Name, "Downloading image", nil, func(op *operation) error {
		i, err := upload.parse()
		if err != nil {
			return err
		}
		op.Metadata = map[string]any{"fingerprint": i.Fingerprint, "size": strconv.FormatInt(i.Size, 10)}
		if _, known := p.images[i.Fingerprint]; known {
			return internalf("Image with same fingerprint already exists")
		}
		i.Project = p.Name
		p.images[i.Fingerprint] = i
		return nil
	})
}
