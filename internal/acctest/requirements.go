// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// busybox is the program that tiny machines consist of.
const busybox = "/bin/busybox"

// requirements are the programs that daemons of our own need, with the Debian package that has each. One of a line's
// programs suffices.
var requirements = []struct {
	programs []string
	pkg      string
}{
	{[]string{"lxd"}, "lxd"},
	{[]string{"lxc"}, "lxd-client"},
	{[]string{"dnsmasq"}, "dnsmasq-base"},
	{[]string{"nft", "iptables"}, "nftables"},
	{[]string{"btrfs"}, "btrfs-progs"},
	{[]string{"mkfs.btrfs"}, "btrfs-progs"},
	{[]string{"mkfs.ext4"}, "e2fsprogs"},
	{[]string{"losetup"}, "mount"},
	{[]string{"ip"}, "iproute2"},
}

// missing is nil if daemons can be started here, else it names everything that is missing for that.
var missing = sync.OnceValue(findMissing)

func findMissing() error {
	var errs []error
	if os.Geteuid() != 0 {
		errs = append(errs, errors.New("starting a daemon needs root"))
	}
	for _, r := range requirements {
		if _, err := lookAny(r.programs); err != nil {
			errs = append(errs, fmt.Errorf("%s is missing (Debian package %s)", strings.Join(r.programs, " or "), r.pkg))
		}
	}
	if path, err := exec.LookPath("lxd"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil && (strings.HasPrefix(target, "/snap/") || filepath.Base(target) == "snap") {
			errs = append(errs, errors.New("the LXD of a snap cannot be started with a directory of its own"))
		}
	}
	return errors.Join(append(errs, checkStatic(busybox))...)
}

func lookAny(programs []string) (string, error) {
	var last error
	for _, p := range programs {
		path, err := exec.LookPath(p)
		if err == nil {
			return path, nil
		}
		last = err
	}
	return "", last
}

// checkStatic fails unless path is a program that runs without a dynamic loader, as it must in a bare root directory.
func checkStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is missing (Debian package busybox-static): %w", path, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not statically linked (Debian package busybox-static has one)", path)
		}
	}
	return nil
}
