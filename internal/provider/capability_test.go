// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// verdicts gives the verdict of each capability, by "capability" or "capability of subject".
func verdicts(t *testing.T, data tftypes.Value) map[string]any {
	t.Helper()
	found := map[string]any{}
	findings, ok := at(t, data, "capabilities").(list)
	if !ok {
		t.Fatalf("capabilities is %v", at(t, data, "capabilities"))
	}
	for _, finding := range findings {
		one, ok := finding.(args)
		if !ok {
			t.Fatalf("a finding is %v", finding)
		}
		name, _ := one["capability"].(string)
		if subject, of := one["subject"].(string); of {
			name += " of " + subject
		}
		found[name] = one["verdict"]
		bad := one["verdict"] != "proven" && one["verdict"] != "reported"
		if bad == (one["reason"] == nil) || one["judged"] == "" {
			t.Errorf("%s is %v with reason %v, judged %v", name, one["verdict"], one["reason"], one["judged"])
		}
	}
	return found
}

func TestCapabilityOfAGoodHost(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	data, d := tf.readCapability(nil)
	noErrors(t, d)
	if at(t, data, "adequate") != true {
		t.Errorf("not adequate: %v", at(t, data, "summary"))
	}
	found := verdicts(t, data)
	for name, want := range map[string]any{
		"daemon": "proven", "containers": "reported", "virtual_machines": "absent", "copy_on_write_pool": "reported", "copy_on_write_snapshot of pool": "reported",
	} {
		if found[name] != want {
			t.Errorf("%s is %v, want %v", name, found[name], want)
		}
	}
	for name, want := range map[string]any{"driver": "btrfs", "copy_on_write": "reported", "proved_at": nil} {
		if got := at(t, data, "pools", "pool", name); got != want {
			t.Errorf("%s of the pool is %v, want %v", name, got, want)
		}
	}
	if at(t, data, "server", "address") != daemon.Address() || at(t, data, "server", "version") != "5.0.2" {
		t.Errorf("server is %v", at(t, data, "server"))
	}
	for _, request := range daemon.Requests() {
		if request.Method != http.MethodGet && request.Path != "/1.0/storage-pools" {
			t.Errorf("reading facts changed something: %v", request)
		}
	}
}

func TestCapabilityOfADegradedHost(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t, lxdtest.WithDrivers("dir"))
	must(t, daemon.Client(t).CreateStoragePool(api.StoragePoolsPost{Name: "slow", Driver: "dir"}))
	tf := newTerraform(t, args{"address": daemon.Address()})
	for _, config := range []args{nil, {"pool": "slow"}, {"pool": "nowhere"}} {
		data, d := tf.readCapability(config)
		noErrors(t, d)
		summary, _ := at(t, data, "summary").(string)
		if at(t, data, "adequate") != false || !strings.Contains(summary, "not adequate") {
			t.Errorf("%v: adequate is %v: %s", config, at(t, data, "adequate"), summary)
		}
		if got := at(t, data, "pools", "slow", "copy_on_write"); got != "degraded" {
			t.Errorf("%v: the pool is %v", config, got)
		}
	}
}

func TestCapabilityProvesAPool(t *testing.T) {
	t.Parallel()
	daemon, tf := memory(t)
	data, d := tf.readCapability(args{"pool": "pool", "prove": list{"copy_on_write"}})
	noErrors(t, d)
	if at(t, data, "adequate") != true || at(t, data, "pools", "pool", "copy_on_write") != "proven" || at(t, data, "pools", "pool", "proved_at") == nil {
		t.Errorf("not proven: %v", at(t, data, "summary"))
	}
	if names, err := daemon.Client(t).GetInstanceNames(api.InstanceTypeAny); err != nil || len(names) > 0 {
		t.Errorf("the probe left %v, %v", names, err)
	}
	data, d = tf.readCapability(args{"prove": list{"containers", "virtual_machines"}})
	noErrors(t, d)
	if found := verdicts(t, data); found["containers"] != "proven" || found["virtual_machines"] != "absent" || at(t, data, "adequate") != true {
		t.Errorf("tried, containers are %v and virtual machines %v: %v", found["containers"], found["virtual_machines"], at(t, data, "summary"))
	}
	_, d = tf.readCapability(args{"prove": list{"magic"}})
	wantError(t, d, "copy_on_write")
}

func TestCapabilityWithoutADaemon(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "unix.socket")
	for address, texts := range map[string][]string{
		"unix://" + socket:    {socket, "terraform-provider-lab bootstrap"},
		"https://127.0.0.1:1": {"127.0.0.1:1", "address"},
	} {
		data, d := newTerraform(t, args{"address": address}).readCapability(args{"pool": "lab"})
		noErrors(t, d)
		summary, _ := at(t, data, "summary").(string)
		for _, text := range texts {
			if !strings.Contains(summary, text) {
				t.Errorf("%s: the summary lacks %q: %s", address, text, summary)
			}
		}
		if at(t, data, "adequate") != false || at(t, data, "server") != nil || verdicts(t, data)["daemon"] != "absent" {
			t.Errorf("%s: %v", address, decode(t, data))
		}
	}
}

func TestCapabilityOfAnUnknownDaemon(t *testing.T) {
	t.Parallel()
	data, d := newTerraform(t, args{"address": unknown}).readCapability(nil)
	noErrors(t, d)
	for _, name := range []string{"adequate", "capabilities", "pools", "server", "members"} {
		if at(t, data, name) != nil {
			t.Errorf("%s is %v, want null", name, at(t, data, name))
		}
	}
	if summary, _ := at(t, data, "summary").(string); !strings.Contains(summary, "judged at apply") {
		t.Errorf("summary is %q", summary)
	}
}
