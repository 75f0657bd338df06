// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// takeDown removes a space and everything that its hosts left on this machine.
func takeDown(ctx context.Context, dir string) error {
	roots, err := filepath.Glob(filepath.Join(dir, "[0-9]*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, root := range roots {
		errs = append(errs, takeDownHost(ctx, root))
	}
	if err := errors.Join(errs...); err != nil {
		return err // The directory is what the next sweep finds the rest by.
	}
	return os.RemoveAll(dir)
}

// takeDownHost removes one host: through the daemon's API as far as that answers, and then what is still there.
func takeDownHost(ctx context.Context, root string) error {
	if handled, err := giveBack(ctx, root); handled {
		return errors.Join(err, os.RemoveAll(root))
	}
	dir := filepath.Join(root, "lxd")
	// An orderly removal spares the kernel leftovers such as AppArmor profiles. Whatever it cannot do, the rest does.
	if !joined(root) {
		_ = emptyDaemon(ctx, filepath.Join(dir, "unix.socket"))
	}
	if err := endProcesses(ctx, dir); err != nil {
		return err
	}
	bridges, err := filepath.Glob(filepath.Join(dir, "networks", "*"))
	if err != nil {
		return err
	}
	for _, path := range bridges {
		if err := removeBridge(ctx, filepath.Base(path)); err != nil {
			return err
		}
	}
	if err := releaseDisks(ctx, root); err != nil {
		return err
	}
	return os.RemoveAll(root)
}

// removeBridge removes what a network of a dead daemon left in the kernel, the interfaces of its machines included: when
// a machine ends, its own end of the cable comes back to the host, for LXD to remove.
func removeBridge(ctx context.Context, name string) error {
	interfaces, err := ports(name)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join("/sys/class/net", name, "bridge")); err == nil {
		interfaces = append(interfaces, name)
	}
	for _, i := range interfaces {
		if err := run(ctx, "ip", "link", "delete", i); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return nil //nolint:nilerr // Then LXD did not use it either.
	}
	return removeChains(ctx, name)
}

// ports returns the interfaces that are connected to a bridge.
func ports(bridge string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join("/sys/class/net", bridge, "brif", "*"))
	for i, path := range paths {
		paths[i] = filepath.Base(path)
	}
	return paths, err
}

// removeChains removes the chains that LXD's nftables driver made for a bridge: they are called KIND.BRIDGE.
func removeChains(ctx context.Context, bridge string) error {
	out, err := exec.CommandContext(ctx, "nft", "-j", "list", "chains").Output()
	if err != nil {
		return fmt.Errorf("unable to list the firewall's chains: %w", err)
	}
	var listing struct {
		Nftables []struct {
			Chain struct{ Family, Table, Name string }
		}
	}
	if err := json.Unmarshal(out, &listing); err != nil {
		return fmt.Errorf("unable to read the firewall's chains: %w", err)
	}
	for _, n := range listing.Nftables {
		c := n.Chain
		if c.Table != "lxd" || !strings.HasSuffix(c.Name, "."+bridge) {
			continue
		}
		if err := run(ctx, "nft", "delete", "chain", c.Family, c.Table, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// releaseDisks unmounts everything below root and detaches the loop devices whose files lie there. One can depend on
// the other, as with a pool's file on a disk of the harness, so it goes round until nothing is left.
func releaseDisks(ctx context.Context, root string) error {
	var last error
	for range 20 {
		mounts, err := mountsBelow(root)
		if err != nil {
			return err
		}
		loops, err := loopsBelow(root)
		if err != nil {
			return err
		}
		if len(mounts)+len(loops) == 0 {
			return nil
		}
		var errs []error
		for _, m := range mounts {
			errs = append(errs, run(ctx, "umount", m))
		}
		for _, l := range loops {
			errs = append(errs, run(ctx, "losetup", "--detach", l))
		}
		last = errors.Join(errs...)
		if err := pause(ctx); err != nil {
			return errors.Join(err, last)
		}
	}
	return fmt.Errorf("unable to release the disks below %s: %w", root, last)
}

// mountsBelow returns the mount points below root, the latest first.
func mountsBelow(root string) ([]string, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var points []string
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], root+"/") {
			points = append([]string{f[4]}, points...)
		}
	}
	return points, nil
}

// loopsBelow returns the loop devices whose files lie, or lay, below root, and that do not detach themselves when they
// are no longer mounted. Those that do may live on for as long as some other mount namespace, of a container or a
// build that began meanwhile, has a copy of the mount; nobody can do anything about that, or needs to.
func loopsBelow(root string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue // Detached since it was listed.
		}
		autoclear, err := os.ReadFile(filepath.Join(filepath.Dir(f), "autoclear"))
		if err != nil {
			continue // Likewise.
		}
		if strings.HasPrefix(string(data), root+"/") && strings.TrimSpace(string(autoclear)) == "0" {
			devices = append(devices, "/dev/"+filepath.Base(filepath.Dir(filepath.Dir(f))))
		}
	}
	return devices, nil
}

// pause waits until it is time to look again, unless ctx ends first.
func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
