// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
	"github.com/canonical/lxd/shared/units"
)

func (s *Server) poolPut(r *http.Request) answer {
	return s.updatePool(r, func(*pool, *api.StoragePoolPut) {})
}

func (s *Server) poolPatch(r *http.Request) answer {
	return s.updatePool(r, func(p *pool, req *api.StoragePoolPut) {
		config := maps.Clone(p.Config)
		maps.Copy(config, req.Config)
		req.Config = config
	})
}

func (s *Server) updatePool(r *http.Request, merge func(*pool, *api.StoragePoolPut)) answer {
	p, err := s.findPool(r.PathValue("name"))
	if err != nil {
		return failed(err)
	}
	var req api.StoragePoolPut
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if err := checkETag(r, p.Name, p.Driver, p.Description, p.Config); err != nil {
		return failed(err)
	}
	merge(p, &req)
	if err := checkPoolConfig(p.Driver, req.Config); err != nil {
		return failedf(http.StatusBadRequest, "%s", err.Error())
	}
	return s.change("Updating storage pool", 0, func() error {
		if req.Config["source"] != p.Config["source"] {
			return internalf("Pool source cannot be changed when not in pending state")
		}
		if err := s.resizePool(p, req.Config["size"]); err != nil {
			return err
		}
		p.Config, p.Description = req.Config, req.Description
		return nil
	})
}

// resizePool gives a pool another size. LXD before 5.13 takes any, and does nothing.
func (s *Server) resizePool(p *pool, text string) error {
	if text == p.Config["size"] || !slices.Contains(s.settings.extensions, "storage_pool_loop_resize") {
		return nil
	}
	size, err := units.ParseByteSizeString(text)
	if err != nil {
		return err
	}
	switch {
	case !strings.HasSuffix(p.Config["source"], ".img"):
		return internalf("Cannot resize non-loopback pools")
	case size < p.size:
		return internalf("Pool cannot be shrunk")
	}
	p.size = size
	return nil
}

func (s *Server) poolResourcesGet(r *http.Request) answer {
	p, err := s.findPool(r.PathValue("name"))
	if err != nil {
		return failedf(http.StatusInternalServerError, "%s", err.Error()) // As in LXD: not a 404.
	}
	used, total := s.space(p)
	return value(api.ResourcesStoragePool{Space: api.ResourcesStoragePoolSpace{Used: unsigned(used), Total: unsigned(total)}})
}

const (
	// metadataBytes is what an empty pool takes.
	metadataBytes = 6 << 20
	// thickDefault is the size of an LVM volume for which none is given.
	thickDefault = 10 * gibibyte
	// thinSteps is how finely LVM tells how full a thin pool is: by hundredths of a per cent.
	thinSteps = 10000
)

// space returns the bytes that the daemon says a pool uses and has.
func (s *Server) space(p *pool) (used, total int64) {
	switch {
	case p.Driver == "dir":
		used = s.settings.disk.Used
		for _, other := range s.pools {
			if other.Driver == "dir" {
				used += s.blobBytes(other)
			}
		}
		return used, s.settings.disk.Total
	case p.thick():
		return s.thickBytes(p), p.size
	}
	used, total = metadataBytes+s.blobBytes(p), p.size
	if p.thin() {
		step := total / thinSteps
		used -= used % step
	}
	return used, total
}

// unsigned is how the API has a number of bytes.
func unsigned(n int64) uint64 { return uint64(max(n, 0)) }

// blobBytes is the sum of what lies on a pool, with shared data counted once.
func (s *Server) blobBytes(p *pool) (sum int64) {
	seen := map[*blob]struct{}{}
	count := func(t tree) {
		for _, b := range t {
			if _, again := seen[b]; !again {
				seen[b] = struct{}{}
				sum += b.size
			}
		}
	}
	for _, image := range p.images {
		count(image)
	}
	volumes := slices.Clone(p.deleted)
	for _, i := range s.allInstances() {
		if i.volume.pool == p {
			volumes = append(volumes, i.volume)
		}
	}
	for _, v := range volumes {
		count(v.live)
		for _, point := range v.points {
			count(point.tree)
		}
	}
	return sum
}

// thickBytes is what the volumes of an LVM pool without thin pool were given, snapshots included.
func (s *Server) thickBytes(p *pool) int64 {
	sum := int64(len(p.images)) * thickDefault
	for _, i := range s.allInstances() {
		if i.volume.pool != p {
			continue
		}
		size, err := units.ParseByteSizeString(i.expandedDevices()["root"]["size"])
		if err != nil || size == 0 {
			size = thickDefault
		}
		sum += size * int64(1+len(i.volume.points))
	}
	return sum
}
