// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
)

// idmap is how LXD writes which users an unprivileged container has.
const idmap = `[{"Isuid":true,"Isgid":false,"Hostid":100000,"Nsid":0,"Maprange":10000001},{"Isuid":false,"Isgid":true,"Hostid":100000,"Nsid":0,"Maprange":10000001}]`

func (s *Server) instancesPost(r *http.Request) answer {
	in, err := s.projectToChange(r)
	if err != nil {
		return failed(err)
	}
	var req api.InstancesPost
	if err := decode(r, &req); err != nil {
		return failed(err)
	}
	if err := checkInstanceName(req.Name); err != nil {
		return failed(err)
	}
	for _, name := range req.Profiles {
		if _, ok := in.profiles[name]; !ok {
			return failed(internalf("Requested profile %q doesn't exist", name))
		}
	}
	var work func(*instance) error
	resources := map[string][]string{"instances": {objectPath(in.Name, "instances", req.Name)}}
	switch req.Source.Type {
	case api.SourceTypeCopy:
		source, from, err := s.copySource(in, &req)
		if err != nil {
			return failed(err)
		}
		resources["instances"] = append(resources["instances"], "/1.0/instances/"+req.Source.Source)
		work = func(i *instance) error { return s.fillFromCopy(i, &req, source, from) }
	case api.SourceTypeImage:
		if _, ok := in.aliases[req.Source.Alias]; req.Source.Alias != "" && !ok {
			return failedf(http.StatusNotFound, "Image alias not found")
		}
		work = func(i *instance) error { return s.fillFromImage(i, &req) }
	case api.SourceTypeNone:
		work = func(i *instance) error {
			return s.register(i, "create", func(p *pool) (*volume, error) { return &volume{pool: p, live: newRoot()}, nil })
		}
	default:
		return badRequest("Unknown source type %s", req.Source.Type)
	}
	return s.start(in.Name, "Creating instance", resources, func(*operation) error {
		i := newInstance(in, &req)
		if err := work(i); err != nil {
			return err
		}
		if req.Start {
			return s.startInstance(i, false)
		}
		return nil
	})
}

func newInstance(in *project, req *api.InstancesPost) *instance {
	i := &instance{in: in, Instance: api.Instance{
		Name: req.Name, Project: in.Name, Location: "none", CreatedAt: time.Now().UTC(), LastUsedAt: time.Unix(0, 0).UTC(),
		Type: string(req.Type), Architecture: "x86_64", Description: req.Description, Ephemeral: req.Ephemeral,
		Config: maps.Clone(orEmpty(req.Config)), Devices: maps.Clone(orEmpty(req.Devices)), Profiles: req.Profiles,
	}}
	if i.Type == "" {
		i.Type = string(api.InstanceTypeContainer)
	}
	i.setStatus(api.Stopped)
	return i
}

func (s *Server) fillFromImage(i *instance, req *api.InstancesPost) error {
	fingerprint := req.Source.Fingerprint
	if a := req.Source.Alias; a != "" {
		fingerprint = i.in.aliases[a].Target
	}
	image, err := i.in.findImage(fingerprint)
	if err != nil {
		return internalf("Image not provided for instance creation")
	}
	if image.Type != i.Type {
		return internalf("Requested image's type %q doesn't match instance type %q", image.Type, i.Type)
	}
	if i.Profiles == nil {
		i.Profiles = []string{"default"}
	}
	for key, v := range image.Properties {
		i.Config["image."+key] = v
	}
	i.Config["volatile.base_image"] = image.Fingerprint
	return s.register(i, "create", func(p *pool) (*volume, error) {
		if !p.sharesImages() {
			s.spend(Work{Verb: "unpack", Driver: p.Driver, Bytes: image.root.bytes()})
			return &volume{pool: p, live: image.root.copy()}, s.room(p, image.root.bytes())
		}
		if _, unpacked := p.images[image.Fingerprint]; !unpacked {
			s.spend(Work{Verb: "unpack", Driver: p.Driver, Bytes: image.root.bytes()})
			if err := s.room(p, image.root.bytes()); err != nil {
				return nil, err
			}
			p.images[image.Fingerprint] = image.root.copy()
		}
		shares := p.sharesCopies(false)
		s.spend(Work{Verb: "copy", Driver: p.Driver, Bytes: moved(shares, image.root)})
		return &volume{pool: p, live: duplicate(shares, p.images[image.Fingerprint])}, nil
	})
}

// room fails if the pool has no space for more bytes.
func (s *Server) room(p *pool, more int64) error {
	if used, total := s.space(p); used+more > total {
		return errors.New("no space left on device")
	}
	return nil
}

// register checks a new instance, gives it an identity and a volume, and makes it known.
func (s *Server) register(i *instance, how string, fill func(*pool) (*volume, error)) error {
	maps.DeleteFunc(i.Config, func(_, v string) bool { return v == "" })
	p, err := s.checkNew(i)
	if err != nil {
		return fmt.Errorf("Failed creating instance record: %w", err) //nolint:staticcheck // LXD's words.
	}
	setDefault(i.Config, "volatile.uuid", uuid.NewString())
	setDefault(i.Config, "volatile.cloud-init.instance-id", uuid.NewString())
	i.Config["volatile.apply_template"] = how
	if i.Type == string(api.InstanceTypeContainer) {
		i.Config["volatile.idmap.base"], i.Config["volatile.idmap.next"] = "0", idmap
		setDefault(i.Config, "volatile.last_state.idmap", "[]")
	}
	i.nameInterfaces()
	if i.Profiles == nil {
		i.Profiles = []string{}
	}
	i.volume = &volume{pool: p}
	i.in.instances[i.Name] = i // The name is taken before the data is there.
	v, err := fill(p)
	if err != nil {
		i.remove()
		return err
	}
	i.volume = v
	p.quotas = p.quotas || p.Driver == "btrfs" && !i.virtual() && i.expandedDevices()["root"]["size"] != ""
	p.countSpace(s.allInstances())
	return nil
}

func (s *Server) checkNew(i *instance) (*pool, error) {
	if i.Type == string(api.InstanceTypeVM) && !strings.Contains(s.settings.environment.Driver, "qemu") {
		reason := "KVM support is missing (no /dev/kvm)"
		at := slices.IndexFunc(s.settings.warnings, func(w api.Warning) bool { return w.Type == "Instance type not operational" })
		if at >= 0 {
			reason = s.settings.warnings[at].LastMessage
		}
		return nil, internalf("Instance type %q is not supported on this server: %s", i.Type, reason)
	}
	if err := i.checkConfig(); err != nil {
		return nil, err
	}
	if _, taken := i.in.instances[i.Name]; taken {
		return nil, internalf(`Add instance info to the database: This "instances" entry already exists`)
	}
	if err := s.checkDevices(i); err != nil {
		return nil, internalf("Failed initialising instance: %s", err.Error())
	}
	name, err := i.rootPool()
	if err != nil {
		return nil, internalf("Failed initialising instance: %s", err.Error())
	}
	p, err := s.findPool(name)
	if err != nil {
		return nil, internalf("Failed initialising instance: Failed loading storage pool: %s", err.Error())
	}
	return p, nil
}

// nameInterfaces gives each network interface without an address of its own one.
func (i *instance) nameInterfaces() {
	for name, d := range i.expandedDevices() {
		if d["type"] != "nic" {
			continue
		}
		if d["hwaddr"] == "" && i.Config["volatile."+name+".hwaddr"] == "" {
			var b [3]byte
			rand.Read(b[:])
			i.Config["volatile."+name+".hwaddr"] = fmt.Sprintf("00:16:3e:%02x:%02x:%02x", b[0], b[1], b[2])
		}
		if d["name"] == "" {
			setDefault(i.Config, "volatile."+name+".name", name)
		}
	}
}
