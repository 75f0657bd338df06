// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// indexExpiry is how long LXD answers from what it read of an image server.
const indexExpiry = time.Hour

// importImage makes an image that is not sent: it comes from an image server, or from an instance.
func (s *Server) importImage(p *project, r *http.Request) answer {
	var req api.ImagesPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	var produce func(api.ImagesPost) (*image, error)
	switch {
	case req.Source.Type == api.SourceTypeImage && req.Source.Protocol == "simplestreams":
		produce = func(req api.ImagesPost) (*image, error) { return s.download(p, req) }
	case req.Source.Type == "instance", req.Source.Type == "container", req.Source.Type == "snapshot":
		produce = func(req api.ImagesPost) (*image, error) { return s.publish(p, req) }
	default:
		return failedf(http.StatusNotImplemented, "the daemon in memory does not know images of type %q by %q", req.Source.Type, req.Source.Protocol)
	}
	return s.start(p.Name, "Downloading image", nil, func(op *operation) error {
		i, err := produce(req)
		if err != nil {
			return err
		}
		op.Metadata = map[string]any{"fingerprint": i.Fingerprint, "size": strconv.FormatInt(i.Size, 10)}
		maps.Copy(i.Properties, req.Properties)
		i.Project, i.Public = p.Name, req.Public
		p.images[i.Fingerprint] = i
		return nil
	})
}

// download fetches an image as LXD does, unless it is there.
func (s *Server) download(p *project, req api.ImagesPost) (*image, error) {
	if i, known := p.images[req.Source.Fingerprint]; known {
		return i, nil
	}
	server, err := lxd.ConnectSimpleStreams(req.Source.Server, &lxd.ConnectionArgs{
		TLSServerCert: req.Source.Certificate, CachePath: filepath.Dir(s.socket), CacheExpiry: indexExpiry,
	})
	if err != nil {
		return nil, fmt.Errorf("Failed to connect to simple streams server %q: %w", req.Source.Server, err) //nolint:staticcheck // LXD's words.
	}
	info, _, err := server.GetImage(req.Source.Fingerprint)
	if err != nil {
		return nil, fmt.Errorf("Failed getting remote image info: %w", err) //nolint:staticcheck // LXD's words.
	}
	s.spend(Work{Verb: "download", Bytes: info.Size})
	metadata, rootfs := filepath.Join(filepath.Dir(s.socket), info.Fingerprint), filepath.Join(filepath.Dir(s.socket), info.Fingerprint+".rootfs")
	if err := fetch(server, info.Fingerprint, metadata, rootfs); err != nil {
		return nil, err
	}
	var parts [2][]byte
	for n, file := range []string{metadata, rootfs} {
		if parts[n], err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	i, err := upload{metadata: parts[0], rootfs: parts[1], split: true, header: http.Header{}}.parse()
	if err == nil {
		maps.Copy(i.Properties, info.Properties)
	}
	return i, err
}

// fetch downloads the two files of an image.
func fetch(server lxd.ImageServer, fingerprint, metadata, rootfs string) error {
	meta, err := os.Create(metadata)
	if err != nil {
		return err
	}
	defer func() { _ = meta.Close() }()
	root, err := os.Create(rootfs)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	_, err = server.GetImageFile(fingerprint, lxd.ImageFileRequest{MetaFile: meta, RootfsFile: root})
	return err
}

// publish makes an image of what an instance or a snapshot has on its disk.
func (s *Server) publish(p *project, req api.ImagesPost) (*image, error) {
	name, snapName, isSnapshot := strings.Cut(req.Source.Name, "/")
	i, ok := p.instances[name]
	if !ok {
		return nil, api.StatusErrorf(http.StatusNotFound, "Instance not found")
	}
	if i.running() && !isSnapshot {
		return nil, internalf("Cannot export a running instance as an image")
	}
	root := i.volume.live
	if isSnapshot {
		snap := i.volume.find(snapName)
		if snap == nil {
			return nil, snapshotNotFound(i, snapName)
		}
		root = snap.tree
	}
	s.spend(Work{Verb: "publish", Driver: i.volume.pool.Driver, Bytes: root.bytes()})
	if p.instances[name] != i {
		return nil, internalf("lstat /var/lib/lxd/containers/%s/rootfs: no such file or directory", name)
	}
	made := &image{root: root.copy(), Image: api.Image{
		Architecture: i.Architecture, Type: i.Type, CreatedAt: time.Now().UTC(), UploadedAt: time.Now().UTC(),
		Size: root.bytes(), Properties: map[string]string{},
	}}
	made.Fingerprint = root.fingerprint(req.Properties)
	return made, nil
}

// fingerprint is the hash of an image that holds the tree.
func (t tree) fingerprint(properties map[string]string) string {
	parts := []any{properties}
	for _, path := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, path, t[path].data)
	}
	return etagOf(parts...)
}
