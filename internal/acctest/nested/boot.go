// SPDX-License-Identifier: MPL-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/canonical/lxd/shared"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const (
	// bootTimeout is many times what a boot takes alone on a machine, which is half a minute.
	bootTimeout = 6 * time.Minute
	bootPause   = 200 * time.Millisecond
	// readyLine is what lab-ready.service of build.sh prints.
	readyLine = "lab: ready"
)

// crashError is a nested host that ended by itself.
type crashError struct{ text string }

func (e *crashError) Error() string { return e.text }

// nestedHost is an emulated machine that runs LXD.
type nestedHost struct {
	dir     string // certificates; removed at the end
	serial  string
	address string
	command *exec.Cmd
	log     strings.Builder
	ended   chan struct{}
	fingerprint,
	clientCertificate, clientKey, serverCertificate string
}

// boot starts a host and waits until its LXD serves requests.
func boot(ctx context.Context, images directory, serial string) (*nestedHost, error) {
	dir, err := os.MkdirTemp("", "nested-*")
	if err != nil {
		return nil, err
	}
	host := &nestedHost{dir: dir, serial: serial, ended: make(chan struct{})}
	if err := errors.Join(host.introduce(), host.listen(ctx), os.RemoveAll(serial)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	host.command = exec.Command("qemu-system-x86_64", host.arguments(images)...) //nolint:noctx // Stopped by stop.
	host.command.Stdout, host.command.Stderr = &host.log, &host.log
	// A process group of its own, so that Ctrl-C at the terminal reaches the tests first.
	host.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := host.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		_ = host.command.Wait()
		close(host.ended)
	}()
	if err := host.waitReady(ctx); err != nil {
		host.stop()
		return nil, err
	}
	return host, nil
}

// arguments of the emulator. Nothing is written to the disk that was built.
func (h *nestedHost) arguments(images directory) []string {
	firmware := func(name string) []string {
		return []string{"-fw_cfg", "name=opt/lab/" + name + ",file=" + filepath.Join(h.dir, name)}
	}
	arguments := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi,tb-size=1024",
		// LXD in it starts virtual machines by the emulated AMD SVM.
		"-cpu", "max,-la57,-pku",
		"-smp", "1", // with two, it crashes within minutes of a virtual machine's start
		"-m", "6144", "-nodefaults", "-no-user-config", "-display", "none",
		"-no-reboot", // a crash is to be seen as one
		"-kernel", images.file("vmlinuz"), "-initrd", images.file("initrd.img"),
		"-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off nokaslr apparmor=0 audit=0 nowatchdog " +
			"tsc=reliable no5lvl quiet systemd.show_status=0",
		"-drive", "file=" + images.file("disk.img") + ",if=virtio,format=raw,cache=unsafe,snapshot=on",
		// It sees nothing of the world, and of it only the daemon's port is seen.
		"-netdev", "user,id=net,restrict=on,hostfwd=tcp:" + h.address + "-:8443",
		"-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
		"-serial", "file:" + h.serial,
	}
	for _, name := range []string{"server.crt", "server.key", "client.crt"} {
		arguments = append(arguments, firmware(name)...)
	}
	return arguments
}

// introduce makes the certificates by which the daemon and its client know each other.
func (h *nestedHost) introduce() error {
	for name, client := range map[string]bool{"client": true, "server": false} {
		certificate, key, err := shared.GenerateMemCert(client, shared.CertOptions{AddHosts: !client})
		if err != nil {
			return err
		}
		err = errors.Join(
			os.WriteFile(filepath.Join(h.dir, name+".crt"), certificate, 0o600),
			os.WriteFile(filepath.Join(h.dir, name+".key"), key, 0o600),
		)
		if err != nil {
			return err
		}
		if client {
			h.clientCertificate, h.clientKey = string(certificate), string(key)
			continue
		}
		h.serverCertificate = string(certificate)
		if h.fingerprint, err = shared.CertFingerprintStr(string(certificate)); err != nil {
			return err
		}
	}
	return nil
}

// listen finds a port of this host.
func (h *nestedHost) listen(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.address = listener.Addr().String()
	return listener.Close()
}

// waitReady waits until the host says that its daemon serves requests.
func (h *nestedHost) waitReady(ctx context.Context) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	tick := time.NewTicker(bootPause)
	defer tick.Stop()
	for {
		console, err := os.ReadFile(h.serial)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		// The line is a command's echo, too.
		if strings.Contains(strings.ReplaceAll(string(console), "\r", ""), "\n"+readyLine+"\n") {
			fmt.Fprintf(os.Stderr, "nested: booted in %s\n", time.Since(started).Round(time.Second))
			return nil
		}
		select {
		case <-tick.C:
		case <-h.ended:
			return h.crash("while it booted")
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return &crashError{fmt.Sprintf("the nested host was not ready after %s; its console ends with:\n%s", bootTimeout, tail(string(console), 20))}
		}
	}
}

// crash describes a host that has ended.
func (h *nestedHost) crash(when string) error {
	console, _ := os.ReadFile(h.serial)
	return &crashError{fmt.Sprintf("the nested host ended %s (%s)\n%s\nIts console ends with:\n%s",
		when, h.command.ProcessState, tail(h.log.String(), 20), tail(string(console), 20))}
}

// stop ends the host. What it wrote is gone.
func (h *nestedHost) stop() {
	_ = h.command.Process.Kill()
	<-h.ended
	_ = os.RemoveAll(h.dir)
}

// describe tells tests how to reach the daemon.
func (h *nestedHost) describe(told *acctest.VMHost) {
	told.Address, told.Fingerprint = "https://"+h.address, h.fingerprint
	told.ClientCertificate, told.ClientKey, told.ServerCertificate = h.clientCertificate, h.clientKey, h.serverCertificate
}
