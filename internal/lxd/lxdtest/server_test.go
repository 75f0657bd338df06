// SPDX-License-Identifier: MPL-2.0

package lxdtest_test

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestEnvironmentIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	s := lxdtest.New(t,
		lxdtest.WithDrivers("dir", "zfs"), lxdtest.WithoutExtensions("warnings"), lxdtest.WithExtensions("made_up"),
		lxdtest.WithVirtualMachines(),
		lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.ServerVersion, e.CertificateFingerprint = "6.9", "abc" }),
		lxdtest.WithResources(func(r *api.Resources) { r.Memory.Total = 7 }),
	)
	server, _, err := s.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	e := server.Environment
	if e.ServerVersion != "6.9" || e.CertificateFingerprint != "abc" || !strings.Contains(e.Driver, "qemu") {
		t.Errorf("unexpected environment %+v", e)
	}
	var drivers []string
	for _, d := range e.StorageSupportedDrivers {
		drivers = append(drivers, d.Name)
	}
	if !slices.Equal(drivers, []string{"dir", "zfs"}) {
		t.Errorf("drivers are %q", drivers)
	}
	if slices.Contains(server.APIExtensions, "warnings") || !slices.Contains(server.APIExtensions, "made_up") {
		t.Error("the extensions were not changed")
	}
	r, err := s.Client(t).GetServerResources()
	if err != nil || r.Memory.Total != 7 {
		t.Errorf("memory is %v, %v", r, err)
	}
}

func TestListedDriversAreNotUsableOnes(t *testing.T) {
	t.Parallel()
	s := lxdtest.New(t, lxdtest.WithDrivers("dir", "lvm"), lxdtest.WithUsableDrivers("dir", "btrfs"))
	c := s.Client(t)
	if err := c.CreateStoragePool(api.StoragePoolsPost{Name: "l", Driver: "lvm"}); err == nil || err.Error() != `Required tool "lvm" is missing` {
		t.Errorf("a listed driver without tools: %v", err)
	}
	if err := c.CreateStoragePool(api.StoragePoolsPost{Name: "b", Driver: "btrfs"}); err != nil {
		t.Errorf("a driver whose tools came later: %v", err)
	}
	server, _, err := c.GetServer()
	if err != nil {
		t.Fatal(err)
	}
	named := func(d api.ServerStorageDriverInfo) bool { return d.Name == "btrfs" }
	if !slices.ContainsFunc(server.Environment.StorageSupportedDrivers, named) {
		t.Error("the driver is not listed after it was used")
	}
}

// TestAsyncChanges shows what the official client makes of a newer daemon: it loses the error.
func TestAsyncChanges(t *testing.T) {
	t.Parallel()
	c := lxdtest.New(t, lxdtest.WithAsyncChanges()).Client(t)
	r := &recorder{client: c}
	for request, want := range map[string]string{
		`POST storage-pools {"name":"p","driver":"nope"}`: `operation "Creating storage pool": Failure Unknown driver`,
		`POST networks {"name":"n","config":{"x":"y"}}`:   `operation "Creating network": Failure Invalid option for network "n" option "x"`,
		`POST profiles {"name":"default"}`:                `operation "Creating profile": Failure Error inserting "default" into database: The profile already exists`,
		`POST storage-pools {"name":"q","driver":"dir"}`:  `operation "Creating storage pool": Success `,
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		if got := r.exchange(method, "/1.0/"+path, bytes.NewBufferString(body)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", request, got, want)
		}
	}
	if err := c.CreateStoragePool(api.StoragePoolsPost{Name: "p", Driver: "nope"}); err != nil {
		t.Errorf("the official client noticed: %v", err)
	}
}

func TestOperationsAreForgotten(t *testing.T) {
	t.Parallel()
	l := newLab(t, "btrfs", nil)
	l.create("a")
	l.Set(lxdtest.WithOperationMemory(0))
	resp, _, err := l.c.RawQuery(http.MethodPut, "/1.0/instances/a/state", api.InstanceStatePut{Action: "start"}, "")
	l.must(err)
	op, err := resp.MetadataAsOperation()
	l.must(err)
	for err == nil { // It is forgotten as soon as it has ended.
		_, _, err = l.c.GetOperation(op.ID)
	}
	if !api.StatusErrorCheck(err, http.StatusNotFound) {
		t.Error(err)
	}
}

func TestOneOperationHoldsAnInstance(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	l := newLab(t, "btrfs", nil)
	l.create("a")
	l.snapshot("s0")
	l.Set(lxdtest.WithLatency(func(w lxdtest.Work) time.Duration {
		if w.Verb == "restore" {
			close(entered)
			return time.Hour // Until the server ends.
		}
		return 0
	}))
	_, err := l.c.UpdateInstance("a", api.InstancePut{Restore: "s0"}, "")
	l.must(err)
	<-entered
	for what, want := range map[string]struct {
		err  error
		text string
	}{
		"restore":  {l.restore("s0"), `Failed to create instance restore operation: Instance is busy running a "restore" operation`},
		"start":    {l.wait(l.c.UpdateInstanceState("a", api.InstanceStatePut{Action: "start"}, "")), `Failed to create instance start operation: Instance is busy running a "restore" operation`},
		"snapshot": {l.wait(l.c.CreateInstanceSnapshot("a", api.InstanceSnapshotsPost{Name: "s1"})), `mkdir /var/lib/lxd/storage-pools/pool/containers/a: file exists`},
	} {
		if want.err == nil || want.err.Error() != want.text {
			t.Errorf("%s during a restore: %v, want %s", what, want.err, want.text)
		}
	}
	operations, err := l.c.GetOperations()
	l.must(err)
	running := func(op api.Operation) bool {
		return op.StatusCode == api.Running && op.Description == "Restoring snapshot"
	}
	if !slices.ContainsFunc(operations, running) {
		t.Errorf("the restore is not among the operations: %+v", operations)
	}
}

func TestRefusedRestoreLeavesTheMachineStopped(t *testing.T) {
	t.Parallel()
	for version, rewound := range map[string]bool{"5.0.2": false, "6.9": true} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "zfs", nil, lxdtest.WithEnvironment(func(e *api.ServerEnvironment) { e.ServerVersion = version }))
			l.create("a")
			l.snapshot("s0")
			l.snapshot("s1")
			_, _, err := l.c.RawQuery(http.MethodPatch, "/1.0/instances/a", object{"config": object{"user.x": "now"}}, "")
			l.must(err)
			l.must(l.wait(l.c.UpdateInstanceState("a", api.InstanceStatePut{Action: "start"}, "")))
			if err := l.restore("s0"); err == nil {
				t.Fatal("zfs went past a newer snapshot")
			}
			i, _, err := l.c.GetInstance("a")
			l.must(err)
			if i.StatusCode != api.Stopped {
				t.Errorf("the machine is %s, want Stopped", i.Status)
			}
			if got := i.Config["user.x"] == ""; got != rewound {
				t.Errorf("configuration rewound: %t, want %t", got, rewound)
			}
		})
	}
}

func TestSnapshotExpiry(t *testing.T) {
	t.Parallel()
	l := newLab(t, "btrfs", nil)
	l.create("a")
	_, _, err := l.c.RawQuery(http.MethodPatch, "/1.0/instances/a", object{"config": object{"snapshots.expiry": "1d"}}, "")
	l.must(err)
	past, never := time.Now().Add(-time.Hour), time.Time{}
	l.must(l.wait(l.c.CreateInstanceSnapshot("a", api.InstanceSnapshotsPost{Name: "past", ExpiresAt: &past})))
	l.must(l.wait(l.c.CreateInstanceSnapshot("a", api.InstanceSnapshotsPost{Name: "never", ExpiresAt: &never})))
	l.snapshot("default")
	snapshots, err := l.c.GetInstanceSnapshots("a")
	l.must(err)
	got := map[string]bool{}
	for _, s := range snapshots {
		got[s.Name] = s.ExpiresAt.IsZero()
	}
	if diff := cmp.Diff(map[string]bool{"never": true, "default": false}, got); diff != "" {
		t.Errorf("snapshots and whether they stay for ever (-want +got):\n%s", diff)
	}
}

func TestAddressesAndConflicts(t *testing.T) {
	t.Parallel()
	l := newLab(t, "btrfs", nil)
	l.must(l.c.CreateNetwork(api.NetworksPost{Name: "n", NetworkPut: api.NetworkPut{Config: map[string]string{"ipv4.address": "10.1.2.1/24"}}}))
	nic := func(name, address string) error {
		_, _, err := l.c.RawQuery(http.MethodPatch, "/1.0/instances/"+name, object{"devices": object{
			"eth0": object{"type": "nic", "network": "n", "ipv4.address": address},
		}}, "")
		return err
	}
	l.create("a")
	l.create("b")
	l.must(nic("a", "10.1.2.50"))
	if err := nic("b", "10.1.2.50"); !api.StatusErrorCheck(err, http.StatusConflict) {
		t.Errorf("an address that is taken: %v", err)
	}
	if err := nic("b", "10.9.9.9"); err == nil || !strings.Contains(err.Error(), "not within network") {
		t.Errorf("an address of another network: %v", err)
	}
	l.must(l.wait(l.c.UpdateInstanceState("a", api.InstanceStatePut{Action: "start"}, "")))
	state, _, err := l.c.GetInstanceState("a")
	l.must(err)
	address := api.InstanceStateNetworkAddress{Family: "inet", Address: "10.1.2.50", Netmask: "24", Scope: "global"}
	if got := state.Network["eth0"].Addresses; !slices.Contains(got, address) {
		t.Errorf("addresses are %v, want %v among them", got, address)
	}
	// LXD copies a fixed address without a word, and refuses at the start.
	l.branch("c", "a")
	if err := l.wait(l.c.UpdateInstanceState("c", api.InstanceStatePut{Action: "start"}, "")); err == nil {
		t.Error("two machines run with the same address")
	}
}

func TestExec(t *testing.T) {
	t.Parallel()
	l := newLab(t, "btrfs", nil, lxdtest.WithExec(func(ctx context.Context, e lxdtest.Exec) lxdtest.ExecResult {
		switch e.Command[0] {
		case "fail":
			return lxdtest.ExecResult{Code: 3, Stdout: e.Instance, Stderr: "oops"}
		case "hang":
			<-ctx.Done()
			return lxdtest.ExecResult{}
		}
		return lxdtest.ExecResult{Code: 127}
	}))
	l.create("a")
	l.must(l.wait(l.c.UpdateInstanceState("a", api.InstanceStatePut{Action: "start"}, "")))
	run := func(kill bool, command ...string) (code any, stdout, stderr string, err error) {
		var out, errs bytes.Buffer
		args := &lxd.InstanceExecArgs{Stdout: nopCloser{&out}, Stderr: nopCloser{&errs}, DataDone: make(chan bool)}
		if kill {
			args.Control = killer
		}
		op, err := l.c.ExecInstance("a", api.InstanceExecPost{Command: command, WaitForWS: true}, args)
		l.must(err)
		err = op.WaitContext(t.Context())
		<-args.DataDone
		return op.Get().Metadata["return"], out.String(), errs.String(), err
	}
	if code, stdout, stderr, err := run(false, "fail"); code != 3.0 || stdout != "a" || stderr != "oops" || err != nil {
		t.Errorf("a command that fails: %v, %q, %q, %v", code, stdout, stderr, err)
	}
	if code, _, _, err := run(false, "nope"); code != 127.0 || err == nil {
		t.Errorf("a command that is not there: %v, %v", code, err)
	}
	if code, _, _, err := run(true, "hang"); code != 137.0 || err != nil {
		t.Errorf("a command that is killed: %v, %v", code, err)
	}
}
