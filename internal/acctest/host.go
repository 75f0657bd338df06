// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	lxd "github.com/canonical/lxd/client"
)

// commandTimeout bounds one run of a client program.
const commandTimeout = 2 * time.Minute

// Host is an LXD daemon that tests may do anything to.
type Host struct {
	// Dir is the daemon's LXD_DIR; empty for a project on a daemon that others use.
	Dir string

	root    string  // everything of this host on disk
	daemon  *daemon // nil for a project on a daemon that others use
	address string  // of a daemon that others use
	project string
	https   string  // listening address, if any
	member  string  // name in a cluster, if it is in one
	peers   []*Host // all members of that cluster
	tools   string  // the directory that is the daemon's PATH, if it is degraded
	vm      VMHost  // of a daemon that runs virtual machines
	shared  bool

	subnet        io.Closer // reserves the shared network's
	pool, network once[string]
	tiny, debian  once[Image]
	guest         once[Image]
}

// once makes a thing that the tests of a package share when the first of them asks.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

func (o *once[T]) get(produce func() (T, error)) (T, error) {
	o.Do(func() { o.value, o.err = produce() })
	return o.value, o.err
}

// start makes a daemon in a directory of its own.
func (s *space) start(ctx context.Context, o Options) (*Host, error) {
	root := filepath.Join(s.dir, strconv.Itoa(int(s.hosts.Add(1))))
	h := &Host{root: root, Dir: filepath.Join(root, "lxd"), project: "default"}
	h.daemon = &daemon{dir: h.Dir, path: os.Getenv("PATH"), logFile: filepath.Join(root, "lxd.log")}
	if err := h.prepare(ctx, o); err != nil {
		return nil, errors.Join(err, h.close(context.WithoutCancel(ctx)))
	}
	return h, nil
}

func (h *Host) prepare(ctx context.Context, o Options) error {
	if err := os.MkdirAll(h.Dir, 0o711); err != nil { //nolint:gosec // Containers reach their files through it.
		return err
	}
	if o.DiskSize != "" {
		if err := mountDisk(ctx, h.root, h.Dir, o.DiskSize); err != nil {
			return err
		}
	}
	if len(o.WithoutTools) > 0 {
		h.tools = filepath.Join(h.root, "path")
		if err := errors.Join(os.Mkdir(h.tools, 0o755), toolsExcept(h.tools, o.WithoutTools)); err != nil { //nolint:gosec // As any PATH.
			return err
		}
		h.daemon.path = h.tools
	}
	if err := h.daemon.start(ctx); err != nil {
		return err
	}
	if o.HTTPS {
		return h.listen(ctx)
	}
	return nil
}

// close takes the daemon down, with all that it holds.
func (h *Host) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, takedownTimeout)
	defer cancel()
	return takeDownHost(ctx, h.root)
}

// Socket returns the path of the daemon's unix socket.
func (h *Host) Socket() string {
	if h.daemon == nil {
		return strings.TrimPrefix(h.address, "unix://")
	}
	return h.daemon.socket()
}

// Address returns the daemon's address, as the provider takes it.
func (h *Host) Address() string {
	if h.vm.Address != "" {
		return h.vm.Address
	}
	return "unix://" + h.Socket()
}

// Project returns the project that tests use: "default" on a daemon of our own.
func (h *Host) Project() string { return h.project }

// StagingProjects are the names of the projects that branches with memory are made in.
func (h *Host) StagingProjects(t testing.TB) []string {
	t.Helper()
	projects, err := h.Client(t).GetProjectNames()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(projects, func(name string) bool { return !strings.HasPrefix(name, "lab-staging-") })
}

// LXC runs LXD's command line client against the daemon and returns what it printed to standard output, without the
// last line break. The test fails if the client does.
func (h *Host) LXC(t testing.TB, args ...string) string {
	t.Helper()
	// Cleanups, which run after the test's context has ended, use it too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "lxc", append([]string{"--quiet", "--project", h.project}, args...)...)
	config := filepath.Join(h.root, "lxc")
	cmd.Env = append(withoutLXD(os.Environ()), "PATH="+os.Getenv("PATH"), "LXD_CONF="+config)
	if h.vm.Address == "" {
		cmd.Env = append(cmd.Env, "LXD_SOCKET="+h.Socket())
	} else if err := h.vm.configure(config); err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lxc %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Client returns a client that asks the daemon without any code of the provider in between.
func (h *Host) Client(t testing.TB) lxd.InstanceServer {
	t.Helper()
	c, err := h.connect(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("Unable to connect to LXD at %s: %v\n", h.Address(), err)
	}
	t.Cleanup(c.Disconnect)
	return c
}

func (h *Host) connect(ctx context.Context) (lxd.InstanceServer, error) {
	connect, at, args := lxd.ConnectLXDUnixWithContext, h.Socket, &lxd.ConnectionArgs{UserAgent: "acctest"}
	if h.vm.Address != "" {
		connect, at, args = lxd.ConnectLXDWithContext, h.Address, h.vm.arguments()
	}
	c, err := connect(ctx, at(), args)
	if err != nil {
		return nil, err
	}
	return c.UseProject(h.project), nil
}

// Stop ends the daemon in an orderly way. Its instances keep running.
func (h *Host) Stop(t testing.TB) { t.Helper(); h.signal(t, syscall.SIGTERM) }

// Kill ends the daemon at once, which leaves a socket that nobody serves. Its instances keep running.
func (h *Host) Kill(t testing.TB) { t.Helper(); h.signal(t, syscall.SIGKILL) }

// Restart ends the daemon, if it runs, and starts it again.
func (h *Host) Restart(t testing.TB) {
	t.Helper()
	h.Stop(t)
	if err := h.daemon.start(t.Context()); err != nil {
		t.Fatalf("Unable to restart: %v", err)
	}
	if err := h.waitForPeers(t.Context()); err != nil {
		t.Fatalf("Unable to rejoin the cluster: %v", err)
	}
}

func (h *Host) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if h.shared || h.daemon == nil {
		t.Fatal("other tests use this daemon: use Start to get one that may be stopped")
	}
	if err := h.daemon.signal(t.Context(), s); err != nil {
		t.Fatalf("Unable to stop: %v", err)
	}
}

// AddTools puts the programs back that Options.WithoutTools took away. The daemon is not told, as if a package had been
// installed.
func (h *Host) AddTools(t testing.TB) {
	t.Helper()
	if h.tools == "" {
		t.Fatal("this daemon lacks no tools")
	}
	if err := toolsExcept(h.tools, nil); err != nil {
		t.Fatal(err)
	}
}

// HTTPSAddress returns the address of a daemon that was started with Options.HTTPS.
func (h *Host) HTTPSAddress() string { return "https://" + h.https }

// listen makes the daemon serve https on a free loopback port.
func (h *Host) listen(ctx context.Context) error {
	c, err := h.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Disconnect()
	var last error
	for range 5 { // Somebody else may take the port between our look and the daemon's use.
		address, err := freeAddress(ctx)
		if err != nil {
			return err
		}
		server, etag, err := c.GetServer()
		if err != nil {
			return err
		}
		put := server.Writable()
		put.Config["core.https_address"] = address
		if last = c.UpdateServer(put, etag); last == nil {
			h.https = address
			return nil
		}
	}
	return fmt.Errorf("unable to make LXD listen on a loopback port: %w", last)
}
