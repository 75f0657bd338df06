// SPDX-License-Identifier: MPL-2.0

package lxdtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// recorder asks a daemon and writes down what kind of answer it gets.
type recorder struct {
	client  lxd.InstanceServer
	answers []string
}

// ask sends a request, waits for what it starts, and notes type, status and text of the answer.
func (r *recorder) ask(method, path string, body any) {
	a := r.exchange(method, path, body)
	r.answers = append(r.answers, fmt.Sprintf("%s %s %s => %s", method, path, encode(body), a))
}

func encode(body any) string {
	if body == nil {
		return ""
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (r *recorder) exchange(method, path string, body any) string {
	resp, _, err := r.client.RawQuery(method, path, body, "")
	if err != nil {
		status, _ := api.StatusErrorMatch(err)
		return fmt.Sprintf("error %d: %v", status, err)
	}
	if resp.Type != api.AsyncResponse {
		return string(resp.Type)
	}
	op, err := resp.MetadataAsOperation()
	if err != nil {
		return err.Error()
	}
	ended, _, err := r.client.GetOperationWait(op.ID, 60)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("operation %q: %s %s", op.Description, ended.Status, ended.Err)
}

// note writes down a fact of an object, such as which keys it has.
func (r *recorder) note(what string, facts ...any) {
	r.answers = append(r.answers, what+": "+encode(facts))
}

type object = map[string]any

// root is a root disk on the pool of the script.
func root(pool string) object {
	return object{"root": object{"type": "disk", "path": "/", "pool": pool}}
}

// script does what the provider does, and what it should not, with the same names on any daemon.
func script(t *testing.T, c lxd.InstanceServer, subnet string) []string {
	t.Helper()
	r := &recorder{client: c}
	scriptPools(r)
	scriptNetworks(r, subnet)
	fingerprint := scriptImages(t, r)
	scriptCreate(r, fingerprint)
	scriptPower(r)
	scriptSnapshots(r)
	scriptCopies(r)
	scriptBranches(r)
	scriptFiles(t, r)
	scriptRemoval(r, fingerprint)
	return r.answers
}

func scriptPools(r *recorder) {
	for _, body := range []object{
		{"name": "", "driver": "btrfs"},
		{"name": "cow"},
		{"name": "a/b", "driver": "btrfs"},
		{"name": "a b", "driver": "btrfs"},
		{"name": "cow", "driver": "nope"},
		{"name": "cow", "driver": "ceph"},
		{"name": "cow", "driver": "btrfs", "config": object{"bogus": "1"}},
		{"name": "cow", "driver": "btrfs", "config": object{"size": "1x"}},
		{"name": "cow", "driver": "dir", "config": object{"size": "1GiB"}},
		{"name": "cow", "driver": "btrfs", "config": object{"size": "2GiB"}},
		{"name": "cow", "driver": "btrfs"},
		{"name": "plain", "driver": "dir"},
	} {
		r.ask(http.MethodPost, "/1.0/storage-pools", body)
	}
	r.ask(http.MethodGet, "/1.0/storage-pools/cow", nil)
	r.ask(http.MethodGet, "/1.0/storage-pools/nope", nil)
	r.ask(http.MethodGet, "/1.0/storage-pools/nope/resources", nil)
	r.ask(http.MethodDelete, "/1.0/storage-pools/nope", nil)
	r.ask(http.MethodPatch, "/1.0/storage-pools/cow", object{"config": object{"user.a": "b"}})
	r.ask(http.MethodPatch, "/1.0/storage-pools/cow", object{"config": object{"bogus": "b"}})
	r.ask(http.MethodPut, "/1.0/storage-pools/cow", object{"config": object{"user.a": "b"}})
	// This version takes a size and does nothing.
	r.ask(http.MethodPatch, "/1.0/storage-pools/cow", object{"config": object{"size": "3GiB"}})
	p, _, err := r.client.GetStoragePool("cow")
	if err != nil {
		r.note("pool", err.Error())
		return
	}
	resources, err := r.client.GetStoragePoolResources("cow")
	if err != nil {
		r.note("resources", err.Error())
		return
	}
	r.note("pool", p.Driver, p.Status, p.Config["size"], p.Config["user.a"], p.UsedBy, resources.Space.Total)
}

func scriptNetworks(r *recorder, subnet string) {
	const path = "/1.0/networks"
	for _, body := range []object{
		{"name": "much-too-long-a-name"},
		{"name": "confnet0", "type": "nope"},
		{"name": "confnet0", "config": object{"ipv4.address": "x", "ipv6.address": "none"}},
		{"name": "confnet0", "config": object{"ipv4.address": subnet, "ipv6.address": "none", "ipv4.nat": "false"}},
		{"name": "confnet0"},
	} {
		r.ask(http.MethodPost, path, body)
	}
	r.ask(http.MethodGet, path+"/nope", nil)
	r.ask(http.MethodDelete, path+"/nope", nil)
	r.ask(http.MethodPatch, path+"/confnet0", object{"config": object{"user.a": "b"}})
	n, _, err := r.client.GetNetwork("confnet0")
	if err != nil {
		r.note("network", err.Error())
		return
	}
	r.note("network", n.Type, n.Managed, n.Status, n.Config, n.UsedBy)
}

func scriptImages(t *testing.T, r *recorder) string {
	t.Helper()
	files := acctest.TinyFiles(t)
	for range 2 { // The second one is refused.
		f, err := os.Open(files.Unified)
		if err != nil {
			t.Fatal(err)
		}
		op, err := r.client.CreateImage(api.ImagesPost{}, &lxd.ImageCreateArgs{MetaFile: f, MetaName: "tiny.tar"})
		if err == nil {
			err = op.Wait()
		}
		r.note("image import", fmt.Sprint(err))
		_ = f.Close()
	}
	split, err := os.ReadFile(files.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	rootfs, err := os.ReadFile(files.Rootfs)
	if err != nil {
		t.Fatal(err)
	}
	op, err := r.client.CreateImage(api.ImagesPost{}, &lxd.ImageCreateArgs{
		MetaFile: bytes.NewReader(split), MetaName: "m.tar", RootfsFile: bytes.NewReader(rootfs), RootfsName: "r.tar",
	})
	if err == nil {
		err = op.Wait()
	}
	r.note("split image import", fmt.Sprint(err))
	i, _, err := r.client.GetImage(files.Fingerprint)
	if err != nil {
		r.note("image", err.Error())
		return files.Fingerprint
	}
	r.note("image", i.Size, i.Type, i.Aliases, i.Public, i.AutoUpdate)
	r.ask(http.MethodPost, "/1.0/images/aliases", object{"name": "tiny", "target": files.Fingerprint})
	r.ask(http.MethodPost, "/1.0/images/aliases", object{"name": "tiny", "target": files.Fingerprint})
	r.ask(http.MethodPost, "/1.0/images/aliases", object{"name": "other", "target": "0000"})
	r.ask(http.MethodGet, "/1.0/images/aliases/nope", nil)
	r.ask(http.MethodDelete, "/1.0/images/aliases/nope", nil)
	r.ask(http.MethodGet, "/1.0/images/0000", nil)
	r.ask(http.MethodGet, "/1.0/images/"+files.Fingerprint[:12], nil)
	r.ask(http.MethodDelete, "/1.0/images/0000", nil)
	return files.Fingerprint
}

var (
	machinePath = regexp.MustCompile(`/\S*/(storage-pools|disks)/`)
	fingerprint = regexp.MustCompile(`[0-9a-f]{64}|images/[0-9a-f]{12} `)
	warning     = regexp.MustCompile(`not supported on this server: .*`)
)

// normal removes from an answer what differs between any two daemons.
func normal(a string) string {
	a = machinePath.ReplaceAllString(a, "/DIR/$1/")
	a = fingerprint.ReplaceAllString(a, "FINGERPRINT")
	return warning.ReplaceAllString(a, "not supported on this server: REASON")
}

// TestConformance compares the daemon in memory with a real one. The real one is of the version that the in-memory one
// follows by default; with another the texts may differ.
func TestConformance(t *testing.T) {
	t.Parallel()
	h := acctest.Start(t, acctest.Options{})
	server, _, err := h.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(server.Environment.ServerVersion, "5.0.") {
		t.Skipf("the daemon in memory follows LXD 5.0, this host has %s", server.Environment.ServerVersion)
	}
	subnet := acctest.Subnet(t)
	want := script(t, h.Client(t), subnet)
	got := script(t, lxdtest.New(t).Client(t), subnet)
	if len(want) != len(got) {
		t.Fatalf("the real daemon gave %d answers, the one in memory %d", len(want), len(got))
	}
	for n := range want {
		if w, g := normal(want[n]), normal(got[n]); w != g {
			t.Errorf("the daemon in memory answers otherwise:\n  real   %s\n  memory %s", w, g)
		}
	}
}
