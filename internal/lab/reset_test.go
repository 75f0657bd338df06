// SPDX-License-Identifier: MPL-2.0

package lab_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// scenario makes machines with a marked disk and a snapshot each.
func scenario(t testing.TB, host *acctest.Host, l *lab.Lab, count int) (machines []*lab.Machine, snapshots map[string]lab.SnapshotID) {
	t.Helper()
	snapshots = map[string]lab.SnapshotID{}
	for index := range count {
		spec := tiny(t, host)
		spec.Description = "declared"
		spec.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
		spec.Ready = lab.Ready{Address: "ipv4"}
		machine, _ := create(t, l, spec)
		in(t, machine.Name, "echo clean > /root/mark")
		snapshot, took, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "clean"})
		if err != nil {
			t.Fatal(err)
		}
		if took <= 0 {
			t.Error("a snapshot took no time")
		}
		machines = append(machines, machine)
		snapshots[fmt.Sprint(index)] = snapshot.ID
	}
	return machines, snapshots
}

func TestResetPutsEveryKindOfWreckBack(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machines, snapshots := scenario(t, host, l, 4)
	for _, machine := range machines {
		in(t, machine.Name, "echo dirty > /root/mark; touch /root/more; sync")
	}
	in(t, machines[1].Name, "killall udhcpc; true")
	host.LXC(t, "stop", "--force", machines[2].Name)
	in(t, machines[3].Name, "rm -f /sbin/init /bin/init")
	host.LXC(t, "stop", "--force", machines[3].Name) // and it would not start again

	var mu sync.Mutex
	steps := map[string][]string{}
	result, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: snapshots}, func(key, step string) {
		mu.Lock()
		defer mu.Unlock()
		steps[key] = append(steps[key], step)
	})
	if err != nil {
		t.Fatal(err)
	}
	for index, machine := range machines {
		key := fmt.Sprint(index)
		if got := in(t, machine.Name, "cat /root/mark; ls /root"); got != "clean\nmark" {
			t.Errorf("machine %d came back as %q", index, got)
		}
		again, err := l.Machine(t.Context(), machine.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(machine, again); diff != "" {
			t.Errorf("machine %d is not what it was (-before +after):\n%s", index, diff)
		}
		took := result.Machines[key]
		if took.RestoredMS <= 0 || took.UsableMS < took.StartedMS || result.UsableMS < took.UsableMS {
			t.Errorf("machine %d took %+v of %+v", index, took, result)
		}
		if all := steps[key]; len(all) == 0 || all[len(all)-1] != "usable" {
			t.Errorf("machine %d reported the steps %v", index, all)
		}
	}
	if result.Machines["2"].StoppedMS != 0 {
		t.Error("a machine that was stopped was stopped again")
	}
}

func TestResetGoesBackAndForth(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machines, snapshots := scenario(t, host, l, 1)
	machine := machines[0]
	in(t, machine.Name, "echo second > /root/mark")
	second, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "second"})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		snapshot lab.SnapshotID
		mark     string
	}{{snapshots["0"], "clean"}, {second.ID, "second"}, {snapshots["0"], "clean"}, {second.ID, "second"}} {
		in(t, machine.Name, "echo dirty > /root/mark; touch /root/more; sync; setsid sleep 100000 >/dev/null 2>&1 </dev/null &")
		if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"x": step.snapshot}}, nil); err != nil {
			t.Fatal(err)
		}
		if got := in(t, machine.Name, "cat /root/mark; ls /root; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep 10000[0]'; true"); got != step.mark+"\nmark" {
			t.Errorf("back at %q the machine is %q", step.snapshot.Name, got)
		}
	}
}

func TestResetKeepsTheDeclaredConfiguration(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	profile := newProfile(t, host) // removed after the machine that uses it
	before := tiny(t, host)
	before.Memory = "256MiB"
	machine, _ := create(t, l, before)
	snapshot, _, err := l.CreateSnapshot(t.Context(), lab.SnapshotSpec{Machine: machine.ID, Name: "clean"})
	if err != nil {
		t.Fatal(err)
	}
	now := before
	now.Memory, now.Description, now.Config = "512MiB", "changed after", map[string]string{"user.role": "new", "security.nesting": "true"}
	now.Networks = map[string]lab.NIC{"eth0": {Network: host.Network(t)}}
	now.Devices = map[string]map[string]string{"null": {"type": "unix-char", "source": "/dev/null", "path": "/dev/nothing"}}
	now.Profiles, now.AllowRestart = []string{profile}, true
	changed, err := l.UpdateMachine(t.Context(), machine.ID, before, now)
	if err != nil {
		t.Fatal(err)
	}
	macs := hwaddrs(t, host, machine.Name)
	if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: map[string]lab.SnapshotID{"x": snapshot.ID}}, nil); err != nil {
		t.Fatal(err)
	}
	again, err := l.Machine(t.Context(), machine.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(changed.MachineSpec, again.MachineSpec); diff != "" {
		t.Errorf("the restore rewound (-declared +after):\n%s", diff)
	}
	if diff := cmp.Diff(macs, hwaddrs(t, host, machine.Name)); diff != "" || len(macs) != 1 {
		t.Errorf("the MAC addresses changed (-before +after):\n%s", diff)
	}
	if got := in(t, machine.Name, "ls /dev/nothing; cat /sys/class/net/eth0/address"); got != "/dev/nothing\n"+macs["volatile.eth0.hwaddr"] {
		t.Errorf("in the machine there is %q", got)
	}
}

// newProfile makes a profile that changes something harmless.
func newProfile(t *testing.T, host *acctest.Host) string {
	t.Helper()
	name, client := acctest.Name(t, "p"), host.Client(t)
	post := api.ProfilesPost{Name: name}
	post.Config = map[string]string{"user.profiled": "yes"}
	if err := client.CreateProfile(post); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.DeleteProfile(name); err != nil {
			t.Error(err)
		}
	})
	return name
}

// hwaddrs are the MAC addresses that the daemon gave a machine, by their keys.
func hwaddrs(t *testing.T, host *acctest.Host, machine string) map[string]string {
	t.Helper()
	live, _, err := host.Client(t).GetInstance(machine)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for key, value := range live.Config {
		if strings.HasSuffix(key, ".hwaddr") {
			found[key] = value
		}
	}
	return found
}

func TestResetTouchesNothingWhenOneCannotGoBack(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machines, snapshots := scenario(t, host, l, 2)
	for _, machine := range machines {
		in(t, machine.Name, "echo dirty > /root/mark")
	}
	if err := l.DeleteSnapshot(t.Context(), snapshots["1"]); err != nil {
		t.Fatal(err)
	}
	_, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: snapshots}, nil)
	if !errors.Is(err, lxd.ErrNotFound) || !strings.Contains(err.Error(), machines[1].Name) {
		t.Errorf("got %v", err)
	}
	if got := in(t, machines[0].Name, "cat /root/mark"); got != "dirty" {
		t.Errorf("the other machine was put back, to %q", got)
	}
	twice := map[string]lab.SnapshotID{"a": snapshots["0"], "b": snapshots["0"]}
	if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: twice}, nil); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("one machine named twice gave %v", err)
	}
}

func TestTwoResetsAtOnceDoNotWreckTheMachines(t *testing.T) {
	t.Parallel()
	host, l := connect(t)
	machines, snapshots := scenario(t, host, l, 2)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := l.Reset(t.Context(), lab.ResetSpec{Snapshots: snapshots}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, machine := range machines {
		if got := in(t, machine.Name, "cat /root/mark"); got != "clean" {
			t.Errorf("%s came back as %q", machine.Name, got)
		}
	}
}
