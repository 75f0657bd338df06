// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/canonical/lxd/shared/simplestreams"
)

// ImageServer offers images by simplestreams over https, to any daemon of this host. It is safe for concurrent use.
type ImageServer struct {
	server *httptest.Server

	mu        sync.Mutex
	products  map[string]simplestreams.Product // by alias
	files     map[string][]byte                // by path
	downloads map[string]int                   // by path
}

// NewImageServer starts a server, which is stopped when the test ends.
func NewImageServer(t testing.TB) *ImageServer {
	t.Helper()
	s := &ImageServer{products: map[string]simplestreams.Product{}, files: map[string][]byte{}, downloads: map[string]int{}}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.get))
	// LXD tries http before https, of which the server complains.
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

// Stop ends the server.
func (s *ImageServer) Stop() { s.server.Close() }

// URL returns the address of the server.
func (s *ImageServer) URL() string { return s.server.URL }

// Certificate returns the certificate of the server, in PEM, which no authority has signed.
func (s *ImageServer) Certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw}))
}

// Offer adds an image for containers in two files, makes the alias point to it, and returns its fingerprint.
func (s *ImageServer) Offer(t testing.TB, alias, metadata, rootfs string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	product, ok := s.products[alias]
	if !ok {
		product = simplestreams.Product{
			Aliases: alias, Architecture: runtime.GOARCH, OperatingSystem: "test", Release: "1", ReleaseTitle: "1",
			Versions: map[string]simplestreams.ProductVersion{},
		}
	}
	version := fmt.Sprintf("20260101_%04d", len(product.Versions)) // later ones are newer, by the minute
	meta := s.add(t, fmt.Sprintf("%s/%s/lxd.tar.xz", alias, version), metadata)
	root := s.add(t, fmt.Sprintf("%s/%s/root.tar.xz", alias, version), rootfs)
	both := sha256.New()
	both.Write(s.files[meta.Path])
	both.Write(s.files[root.Path])
	fingerprint := hex.EncodeToString(both.Sum(nil))
	meta.FileType, root.FileType, meta.LXDHashSha256RootXz = "lxd.tar.xz", "root.tar.xz", fingerprint
	product.Versions[version] = simplestreams.ProductVersion{Items: map[string]simplestreams.ProductVersionItem{"lxd.tar.xz": meta, "root.tar.xz": root}}
	s.products[alias] = product
	return fingerprint
}

// add puts a file on the server.
func (s *ImageServer) add(t testing.TB, path, file string) simplestreams.ProductVersionItem {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.files[path] = content
	sum := sha256.Sum256(content)
	return simplestreams.ProductVersionItem{Path: path, Size: int64(len(content)), HashSha256: hex.EncodeToString(sum[:])}
}

// Downloads returns how often an image's root file system was fetched, of all versions of an alias together.
func (s *ImageServer) Downloads(alias string) (sum int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, times := range s.downloads {
		if strings.HasPrefix(path, alias+"/") && strings.HasSuffix(path, "/root.tar.xz") {
			sum += times
		}
	}
	return sum
}

const productsPath = "streams/v1/images.json"

func (s *ImageServer) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/")
	switch content, ok := s.files[path]; {
	case ok:
		s.downloads[path]++
		_, _ = w.Write(content) // A client that has gone does not want it.
	case path == "streams/v1/index.json":
		index := simplestreams.StreamIndex{DataType: "image-downloads", Path: productsPath, Format: "products:1.0"}
		for alias := range s.products {
			index.Products = append(index.Products, alias)
		}
		writeJSON(w, simplestreams.Stream{Format: "index:1.0", Index: map[string]simplestreams.StreamIndex{"images": index}})
	case path == productsPath:
		writeJSON(w, simplestreams.Products{ContentID: "images", DataType: "image-downloads", Format: "products:1.0", Products: s.products})
	default:
		http.NotFound(w, r)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
