// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestAnotherDaemonIsAnErrorAndNotGone(t *testing.T) {
	t.Parallel()
	mine, other := lxdtest.New(t), lxdtest.New(t)
	first := newTerraform(t, args{"address": mine.Address()}).resource("lab_network")
	config := args{"name": "labnet"}
	first.mustApply(actionCreate, config)

	second := first.in(newTerraform(t, args{"address": other.Address()}))
	fingerprints := []string{"Another daemon", fingerprintOf(t, mine), fingerprintOf(t, other), mine.Address(), other.Address()}
	wantError(t, second.refresh(), fingerprints...)
	if second.gone() {
		t.Error("the network was taken for gone")
	}
	_, d := second.plan(args{"name": "labnet", "nat": false})
	wantError(t, d, fingerprints...)
	_, d = second.apply(nil)
	wantError(t, d, fingerprints...)
	p := first.mustPlan(actionUpdate, args{"name": "labnet", "nat": false})
	wantError(t, second.applyPlanned(p, args{"name": "labnet", "nat": false}), fingerprints...)
	for _, request := range other.Requests() {
		if request.Method != http.MethodGet {
			t.Errorf("the other daemon was asked to change something: %v", request)
		}
	}

	// Another address of the same daemon is the same daemon.
	link := filepath.Join(t.TempDir(), "s")
	must(t, symlink(mine.Socket(), link))
	third := first.in(newTerraform(t, args{"address": "unix://" + link}))
	noErrors(t, third.refresh())
	third.mustPlan(actionNone, config)
}

func TestAnotherDaemonAfterImport(t *testing.T) {
	t.Parallel()
	mine, other := lxdtest.New(t), lxdtest.New(t)
	tf := newTerraform(t, args{"address": mine.Address()})
	tf.resource("lab_network").mustApply(actionCreate, args{"name": "labnet"})
	imported := tf.resource("lab_network")
	noErrors(t, imported.importID("labnet"))
	wantError(t, imported.in(newTerraform(t, args{"address": other.Address()})).refresh(), "Another daemon")
}

func fingerprintOf(t *testing.T, daemon *lxdtest.Server) string {
	t.Helper()
	server, _, err := daemon.Client(t).GetServer()
	must(t, err)
	return server.Environment.CertificateFingerprint
}

func TestUnknownDaemonIsJudgedAtApply(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	config := args{"name": "labnet"}
	pool := args{"name": "lab", "driver": "dir"} // refused as soon as there is a host to ask
	planning := newTerraform(t, args{"address": unknown})
	planning.resource("lab_storage_pool").mustPlan(actionCreate, pool)
	p := planning.resource("lab_network").mustPlan(actionCreate, config)

	applying := newTerraform(t, args{"address": daemon.Address()})
	net := applying.resource("lab_network")
	noErrors(t, net.carryOut(p, config))
	if net.text("project") != "default" {
		t.Errorf("project is %q", net.text("project"))
	}
	_, d := applying.resource("lab_storage_pool").plan(pool)
	wantErrorAt(t, d, `AttributeName("driver")`, "Host refused")
}

func TestNoDaemon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "unix.socket")
	tf := newTerraform(t, args{"address": "unix://" + socket})
	_, d := tf.resource("lab_network").plan(args{"name": "labnet"})
	wantError(t, d, "Unable to connect to daemon", socket, "terraform-provider-lab bootstrap")
}

func TestObjectsOfAnotherProject(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	must(t, createProject(daemon.Client(t), "mine"))
	tf := newTerraform(t, args{"address": daemon.Address(), "project": "mine"})
	image := tf.resource("lab_image")
	files := newImageFiles(t, "a")
	image.mustApply(actionCreate, args{"file": files})
	if image.text("project") != "mine" {
		t.Errorf("project is %q", image.text("project"))
	}
	names, err := daemon.Client(t).UseProject("mine").GetImageFingerprints()
	must(t, err)
	if len(names) != 1 || names[0] != image.text("fingerprint") {
		t.Errorf("project mine holds %v", names)
	}
	// The provider block's project is only where new objects go.
	image = image.in(newTerraform(t, args{"address": daemon.Address()}))
	noErrors(t, image.refresh())
	image.mustPlan(actionNone, args{"file": files})
	p := image.mustPlan(actionReplace, args{"file": files, "project": "default"})
	if at(t, p.value, "id") != unknown {
		t.Errorf("id is planned to be %v", at(t, p.value, "id"))
	}
}
