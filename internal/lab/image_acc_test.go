// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/canonical/lxd/shared/api"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// Many want the same image at once: it is downloaded once, and one of them has it.
func TestImageIsDownloadedOnce(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	server, files, alias := lxdtest.NewImageServer(t), acctest.TinyFiles(t), acctest.Name(t, "alias")
	fingerprint := server.Offer(t, alias, files.Metadata, files.Rootfs)
	spec := lab.ImageSpec{
		Remote: &lab.ImageRemote{
			Server: lxd.ImageServer{URL: server.URL(), Protocol: lxd.ProtocolSimpleStreams, Certificate: server.Certificate()},
			Alias:  alias, Type: lab.TypeContainer,
		},
		Pools: []string{host.Pool(t)},
	}
	var all sync.WaitGroup
	var owners atomic.Int64
	for range 5 {
		all.Go(func() {
			image, owned, _, err := l.CreateImage(t.Context(), spec)
			if err != nil {
				t.Error(err)
				return
			}
			if image.Fingerprint != fingerprint || !slices.Equal(image.Pools, spec.Pools) {
				t.Errorf("got %+v", image)
			}
			if owned {
				owners.Add(1)
			}
		})
	}
	all.Wait()
	if owners.Load() != 1 || server.Downloads(alias) != 1 {
		t.Errorf("%d own it after %d downloads", owners.Load(), server.Downloads(alias))
	}
	if err := l.DeleteImage(t.Context(), fingerprint, spec, true); err != nil {
		t.Error(err)
	}
}

// TestPublishThatIsInterrupted interrupts a real daemon's publication while it copies the machine, and while it writes
// the image, which it cannot call off.
func TestPublishThatIsInterrupted(t *testing.T) {
	t.Parallel()
	host, direct := connect(t)
	spec := tiny(t, host)
	spec.Setup = []lab.Setup{{Command: []string{"sh", "-c", "dd if=/dev/urandom of=/root/data bs=1M count=100"}}}
	machine, _ := create(t, direct, spec)
	publish := &lab.ImagePublish{Source: lab.SourceID{Machine: machine.ID}, Stop: true}
	interrupted := func(asked string) {
		proxy, l := through(t, host)
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		// Once the daemon has begun with it, the provider waits for the operation.
		proxy.Add(lxdtest.Rule{Method: http.MethodGet, Path: `/wait$`, Do: func() {
			if slices.Contains(proxy.Requests(), lxdtest.Request{Method: http.MethodPost, Path: asked}) {
				interrupt()
			}
		}})
		image, _, _, err := l.CreateImage(ctx, lab.ImageSpec{Publish: publish})
		if image != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("after %s: got %v, %v", asked, image, err)
		}
		live, err := direct.Machine(t.Context(), machine.ID, nil)
		if err != nil || !live.Running {
			t.Errorf("after %s: the source does not run again: %v", asked, err)
		}
	}
	interrupted("/1.0/instances") // it copies
	interrupted("/1.0/images")    // it writes
	wantNothingPublished(t, host)
}

// wantNothingPublished makes sure that no copy and no half of an image is there.
func wantNothingPublished(t *testing.T, host *acctest.Host) {
	t.Helper()
	instances, err := host.Client(t).GetInstances(api.InstanceTypeAny)
	if err != nil {
		t.Fatal(err)
	}
	for _, instance := range instances {
		if strings.HasPrefix(instance.Name, "lab-publish-") {
			t.Errorf("machine %q is left over", instance.Name)
		}
	}
	images, err := host.Client(t).GetImages()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if image.Size > 100<<20 {
			t.Errorf("image %s is left over", image.Fingerprint)
		}
	}
}
