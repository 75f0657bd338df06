// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// VMHostVariable names the file from which tests learn where virtual machines run. The command in directory nested sets
// it; without it, tests of virtual machines are skipped.
const VMHostVariable = "LAB_ACC_VM"

// VMHost is where virtual machines run, and what runs in them.
type VMHost struct {
	// Address is the https address of a daemon; empty where daemons of this host run virtual machines.
	Address string
	// Fingerprint is the SHA-256 of the daemon's certificate, in hex.
	Fingerprint string
	// The certificates and the client's key are in PEM.
	ServerCertificate, ClientCertificate, ClientKey string
	// Metadata and Disk are the files of an image that needs no secure boot and brings LXD's agent up in seconds.
	Metadata, Disk string
}

// Write writes it where VMHostVariable may point to.
func (v VMHost) Write(file string) error {
	data, err := json.Marshal(v) //nolint:gosec // The file is for its reader's eyes only.
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600) // with a key in it
}

var vmHost = sync.OnceValues(func() (*Host, error) {
	told := VMHost{}
	data, err := os.ReadFile(os.Getenv(VMHostVariable))
	if err == nil {
		err = json.Unmarshal(data, &told)
	}
	if err != nil {
		return nil, fmt.Errorf("unable to read what %s names: %w", VMHostVariable, err)
	}
	h, err := shared()
	if told.Address != "" {
		h, err = remote()
	}
	if err != nil {
		return nil, err
	}
	h.vm = told
	return h, nil
})

// VirtualMachines returns the daemon on which virtual machines are tested: one for all tests, often the only one that
// runs under emulation, where each step takes a hundred times as long. It skips the test where there is none.
func VirtualMachines(t testing.TB) *Host {
	t.Helper()
	need(t)
	if os.Getenv(VMHostVariable) == "" {
		t.Skipf("tests of virtual machines run by make test-vm, which sets %s", VMHostVariable)
	}
	h, err := vmHost()
	if err != nil {
		t.Fatalf("Unable to reach the host that runs virtual machines: %v", err)
	}
	return h
}

// VirtualMachinesAtLength is the same for a test that takes long: it runs only by make test-vm-full, which sets
// LAB_ACC_VM_FULL.
func VirtualMachinesAtLength(t testing.TB) *Host {
	t.Helper()
	if os.Getenv("LAB_ACC_VM_FULL") == "" {
		t.Skip("long tests of virtual machines run by make test-vm-full")
	}
	return VirtualMachines(t)
}

// remote is a daemon that nobody else uses, and that is thrown away by who started it.
func remote() (*Host, error) {
	s, err := workspace()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(s.dir, strconv.Itoa(int(s.hosts.Add(1))))
	return &Host{root: root, project: "default", shared: true}, os.MkdirAll(root, 0o700)
}

// thrownAway says whether the host ends with the run of all tests, and not with a package's.
func (h *Host) thrownAway() bool { return h.vm.Address != "" }

// arguments are those of a connection to the daemon.
func (v VMHost) arguments() *lxd.ConnectionArgs {
	return &lxd.ConnectionArgs{TLSClientCert: v.ClientCertificate, TLSClientKey: v.ClientKey, TLSServerCert: v.ServerCertificate, UserAgent: "acctest"}
}

// configure makes the directory with the configuration of LXD's command line client.
func (v VMHost) configure(dir string) error {
	config := "default-remote: host\nremotes:\n  host: {addr: \"" + v.Address + "\", auth_type: tls, protocol: lxd}\n"
	if err := os.MkdirAll(filepath.Join(dir, "servercerts"), 0o700); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"config.yml": config, "client.crt": v.ClientCertificate, "client.key": v.ClientKey, "servercerts/host.crt": v.ServerCertificate,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Environment is how the provider and its commands are told of the daemon.
func (h *Host) Environment() map[string]string {
	environment := map[string]string{"LAB_ADDRESS": h.Address()}
	if h.vm.Address != "" {
		environment["LAB_CLIENT_CERTIFICATE"], environment["LAB_CLIENT_KEY"] = h.vm.ClientCertificate, h.vm.ClientKey
		environment["LAB_SERVER_FINGERPRINT"] = h.vm.Fingerprint
	}
	return environment
}

// Guest returns an image of a virtual machine: busybox, with LXD's agent. It is imported.
func (h *Host) Guest(t testing.TB) Image {
	t.Helper()
	image, err := h.guest.get(func() (Image, error) {
		image := Image{Metadata: h.vm.Metadata, Rootfs: h.vm.Disk}
		var err error
		if image.Fingerprint, err = fingerprint(image.Metadata, image.Rootfs); err != nil {
			return image, err
		}
		c := h.Client(t)
		if _, _, err := c.GetImage(image.Fingerprint); err == nil {
			return image, nil // another package's tests imported it
		}
		return image, importImage(c, image.Metadata, image.Rootfs, api.InstanceTypeVM)
	})
	if err != nil {
		t.Fatalf("Unable to import the image of a virtual machine: %v", err)
	}
	return image
}
