// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"testing"

	"github.com/canonical/lxd/shared/api"
)

func TestAdmitCheckpointableMachine(t *testing.T) {
	t.Parallel()
	type device = map[string]string
	for name, test := range map[string]struct {
		kind   api.InstanceType
		device device
		says   string // nothing where it is not refused
	}{
		"no devices":                       {api.InstanceTypeVM, nil, ""},
		"a container":                      {api.InstanceTypeContainer, nil, "the memory of a container"},
		"a type not known yet":             {"", nil, ""},
		"a TPM":                            {api.InstanceTypeVM, device{"type": "tpm"}, "TPM"},
		"a PCI device":                     {api.InstanceTypeVM, device{"type": "pci", "address": "00:01.0"}, "PCI"},
		"a GPU":                            {api.InstanceTypeVM, device{"type": "gpu"}, "GPU"},
		"a USB device":                     {api.InstanceTypeVM, device{"type": "usb"}, "USB"},
		"a card of the host":               {api.InstanceTypeVM, device{"type": "nic", "nictype": "physical"}, "network card"},
		"a part of a card of the host":     {api.InstanceTypeVM, device{"type": "nic", "nictype": "sriov"}, "network card"},
		"a bridge":                         {api.InstanceTypeVM, device{"type": "nic", "nictype": "bridged", "parent": "br0"}, ""},
		"macvlan":                          {api.InstanceTypeVM, device{"type": "nic", "nictype": "macvlan", "parent": "eth0"}, ""},
		"a proxy":                          {api.InstanceTypeVM, device{"type": "proxy"}, ""},
		"a directory of the host":          {api.InstanceTypeVM, device{"type": "disk", "source": "/srv", "path": "/srv"}, "shares a directory"},
		"a volume as a directory":          {api.InstanceTypeVM, device{"type": "disk", "pool": "rbd", "source": "data", "path": "/data"}, "shares a directory"},
		"a block device of the host":       {api.InstanceTypeVM, device{"type": "disk", "source": "/dev/sdb"}, "outside of LXD's storage pools"},
		"a disk for cloud-init":            {api.InstanceTypeVM, device{"type": "disk", "source": "cloud-init:config"}, "outside of LXD's storage pools"},
		"a volume of this host":            {api.InstanceTypeVM, device{"type": "disk", "pool": "cow", "source": "data"}, `driver "btrfs"`},
		"a volume of a shared pool":        {api.InstanceTypeVM, device{"type": "disk", "pool": "rbd", "source": "data"}, ""},
		"a volume on a shared pool, NVMe":  {api.InstanceTypeVM, device{"type": "disk", "pool": "rbd", "source": "data", "io.bus": "nvme"}, "NVMe"},
		"a volume of a pool not known yet": {api.InstanceTypeVM, device{"type": "disk", "source": "data"}, ""},
		"the root disk":                    {api.InstanceTypeVM, device{"type": "disk", "pool": "cow", "path": "/"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := MachineAsk{Name: "a", Pool: "cow", Type: test.kind, Checkpointable: true}
			argument, parts := "", []string(nil)
			if test.says != "" {
				argument, parts = "devices", []string{test.says, "leave checkpointable out"}
			}
			if test.kind == api.InstanceTypeContainer {
				argument = "checkpointable"
			}
			if test.device != nil {
				ask.Devices = map[string]map[string]string{"more": test.device}
			}
			wantRefusal(t, checkerOf(manyPools()).AdmitMachine(t.Context(), ask), argument, parts...)
			ask.Checkpointable = false
			wantRefusal(t, checkerOf(manyPools()).AdmitMachine(t.Context(), ask), "")
		})
	}
}

func TestRefuseReshaped(t *testing.T) {
	t.Parallel()
	wantRefusal(t, RefuseReshaped("a", "saved", nil), "")
	wantRefusal(t, RefuseReshaped("a", "saved", []string{"limits.cpu was 1, and is 2 now"}), "snapshots", "limits.cpu was 1, and is 2 now", "Take a new checkpoint")
}
