// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	lxdclient "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// inMemory gives a daemon in memory with a pool, and the verbs on it through a proxy that makes requests fail.
func inMemory(t *testing.T) (*lxdtest.Server, *lxdtest.Proxy, *lab.Lab) {
	t.Helper()
	server := lxdtest.New(t)
	if err := server.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "pool", Driver: "btrfs"}); err != nil {
		t.Fatal(err)
	}
	proxy := lxdtest.NewProxy(t, server.Socket())
	daemon, err := lxd.Connect(t.Context(), lxd.Config{Address: proxy.Address()})
	if err != nil {
		t.Fatal(err)
	}
	return server, proxy, lab.New(daemon, capability.New(daemon))
}

// golden makes a running machine with something in it that keeps copies from being removed, and gives its id.
func golden(t *testing.T, server *lxdtest.Server) lab.SourceID {
	t.Helper()
	fingerprint := server.AddImage(map[string]string{"/etc/machine-id": strings.Repeat("a", 32) + "\n", "/data": "prepared"})
	client := server.Client(t)
	post := api.InstancesPost{Name: "golden", Type: "container"}
	post.Source = api.InstanceSource{Type: "image", Fingerprint: fingerprint}
	post.Config = map[string]string{"security.protection.delete": "true", "user.lab.running": "true"}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
	wait(t)(client.CreateInstance(post))
	wait(t)(client.UpdateInstanceState("golden", api.InstanceStatePut{Action: "start"}, ""))
	live, _, err := client.GetInstance("golden")
	if err != nil {
		t.Fatal(err)
	}
	return lab.SourceID{Machine: lab.MachineID{Project: "default", Name: "golden", UUID: live.Config["volatile.uuid"]}}
}

// wait makes sure that what a client was asked for gets done.
func wait(t *testing.T) func(lxdclient.Operation, error) {
	t.Helper()
	return func(operation lxdclient.Operation, err error) {
		t.Helper()
		if err == nil {
			err = operation.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wantOnlyGolden makes sure that there is the machine as it was, running, and beside its image those that are expected.
func wantOnlyGolden(t *testing.T, server *lxdtest.Server, images int) {
	t.Helper()
	client := server.Client(t)
	instances, err := client.GetInstances(api.InstanceTypeAny)
	if err != nil {
		t.Fatal(err)
	}
	for _, instance := range instances {
		if instance.Name != "golden" {
			t.Errorf("machine %q is left over", instance.Name)
		}
		if instance.StatusCode != api.Running || instance.Config["security.protection.delete"] != "true" {
			t.Errorf("machine %q is %s, with %v", instance.Name, instance.Status, instance.Config)
		}
	}
	found, err := client.GetImageFingerprints()
	if err != nil || len(found) != images+1 {
		t.Errorf("there are %d images, want %d: %v", len(found)-1, images, err)
	}
}

func TestPublishedImageIsOfACopy(t *testing.T) {
	t.Parallel()
	server, proxy, l := inMemory(t)
	spec := lab.ImageSpec{Publish: &lab.ImagePublish{Source: golden(t, server), Stop: true}, Properties: map[string]string{"role": "golden"}}
	image, owned, timings, err := l.CreateImage(t.Context(), spec)
	if err != nil || !owned || timings.ObtainMS < 0 {
		t.Fatalf("owned %t, %v", owned, err)
	}
	wantOnlyGolden(t, server, 1)
	if image.Properties["role"] != "golden" {
		t.Errorf("the properties are %v", image.Properties)
	}
	live, _, err := server.Client(t).GetImage(image.Fingerprint)
	if err != nil || live.Properties["description"] != "test" {
		t.Errorf("what the image of the machine was described by is lost: %v, %v", live.Properties, err)
	}
	for _, request := range proxy.Requests() {
		if request.Method != http.MethodGet && strings.Contains(request.Path, "/instances/golden") && !strings.HasSuffix(request.Path, "/state") {
			t.Errorf("the source was changed: %v", request)
		}
	}
	post := api.InstancesPost{Name: "next", Type: "container"}
	post.Source = api.InstanceSource{Type: "image", Fingerprint: image.Fingerprint}
	post.Devices = map[string]map[string]string{"root": {"type": "disk", "path": "/", "pool": "pool"}}
	wait(t)(server.Client(t).CreateInstance(post))
	for path, want := range map[string]string{"/data": "prepared", "/etc/machine-id": ""} {
		content, err := l.Daemon().File(t.Context(), "next", path)
		if err != nil || string(content) != want {
			t.Errorf("%s holds %q, want %q (%v)", path, content, want, err)
		}
	}
}

// TestPublishThatFailsAnywhere has each request of a publication fail, in turn, in several ways. Whatever fails, the
// source runs again, and nothing is left but, at most, an image that the caller is told of.
func TestPublishThatFailsAnywhere(t *testing.T) {
	t.Parallel()
	const most = 100
	for name, rule := range map[string]lxdtest.Rule{
		"refused":     {Status: http.StatusInternalServerError, Error: "broken"},
		"answer lost": {DropAfter: true},
		"interrupted": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for skip := range most {
				done := false
				t.Run(fmt.Sprint(skip), func(t *testing.T) { done = publishWithFault(t, rule, skip) })
				if done {
					return
				}
			}
			t.Errorf("a publication makes more than %d requests", most)
		})
	}
}

// An interrupt does not take back what is on its way: the daemon stops the source after the publication has given up.
func TestPublishInterruptedBeforeTheStopArrives(t *testing.T) {
	t.Parallel()
	server, proxy, l := inMemory(t)
	source := golden(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan error, 1)
	proxy.Add(lxdtest.Rule{Method: http.MethodPut, Path: "/1.0/instances/golden/state", Times: 1, DropBefore: true, Do: func() {
		cancel()
		time.AfterFunc(100*time.Millisecond, func() {
			op, err := server.Client(t).UpdateInstanceState("golden", api.InstanceStatePut{Action: "stop"}, "")
			if err == nil {
				err = op.Wait()
			}
			arrived <- err
		})
	}})
	if _, _, _, err := l.CreateImage(ctx, lab.ImageSpec{Publish: &lab.ImagePublish{Source: source, Stop: true}}); err == nil {
		t.Error("an interrupted publication made an image")
	}
	if err := <-arrived; err != nil {
		t.Fatal(err)
	}
	wantOnlyGolden(t, server, 0)
}

// publishWithFault publishes while the request after some others fails, and says whether there was none to fail.
func publishWithFault(t *testing.T, rule lxdtest.Rule, skip int) (done bool) {
	t.Helper()
	server, proxy, l := inMemory(t)
	source := golden(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var hit atomic.Bool
	rule.Skip, rule.Times = skip, 1
	interrupt := rule.Status == 0 && !rule.DropAfter
	rule.Do = func() {
		hit.Store(true)
		if interrupt {
			cancel()
		}
	}
	proxy.Add(rule)
	image, owned, _, err := l.CreateImage(ctx, lab.ImageSpec{Publish: &lab.ImagePublish{Source: source, Stop: true}})
	if !hit.Load() {
		if err != nil {
			t.Errorf("nothing failed, and yet: %v", err)
		}
		return true
	}
	images := 0
	if image != nil && owned {
		images = 1
	}
	if err == nil && images == 0 {
		t.Error("neither an image nor an error")
	}
	wantOnlyGolden(t, server, images)
	return false
}
