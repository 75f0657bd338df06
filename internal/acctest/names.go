// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// namesName is the file in a space that names are recorded in.
const namesName = "names"

// randomLength leaves 8 of the 15 characters that a bridge's name may have to the prefix, and one to the hyphen.
const randomLength = 6

var (
	prefixPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,7}$`)
	usedNames     sync.Map
)

// Name returns a name that no other test uses, on this host or another. It starts with prefix, which has at most 8
// characters, and suits instances, pools, networks, profiles and projects.
func Name(t testing.TB, prefix string) string {
	t.Helper()
	if !prefixPattern.MatchString(prefix) {
		t.Fatalf("prefix %q does not match %s", prefix, prefixPattern)
	}
	for {
		name := prefix + "-" + strings.ToLower(rand.Text()[:randomLength])
		if _, used := usedNames.LoadOrStore(name, true); used {
			continue
		}
		if err := recordName(name); err != nil {
			t.Fatalf("Unable to record the name %q: %v", name, err)
		}
		return name
	}
}

// recordName notes a name where a project on somebody's daemon is used: pools and networks belong to no project, so
// this is how ours are told from theirs.
func recordName(name string) error {
	if os.Getenv(enableVariable) == "" || !borrowed() {
		return nil
	}
	s, err := workspace()
	if err != nil {
		return err
	}
	return s.record(name)
}

func (s *space) record(name string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, namesName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	return errors.Join(err, f.Close())
}

// Subnet returns the address of a bridge, such as "10.17.3.1/24", in a network that nothing on this host uses and that
// no other test gets before this one ends.
func Subnet(t testing.TB) string {
	t.Helper()
	prefix, release, err := claimSubnet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release.Close() })
	return prefix.String()
}

// claimSubnet reserves a subnet until release is closed or the process ends. Listening on an abstract socket is what
// reserves it: the kernel lets one process of a network namespace do so, which is also where a bridge must be unique.
func claimSubnet() (address netip.Prefix, release io.Closer, err error) {
	used, err := usedPrefixes()
	if err != nil {
		return netip.Prefix{}, nil, err
	}
	for range 1000 {
		var b [2]byte
		rand.Read(b[:])
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, b[0], b[1], 1}), 24)
		if overlaps(p, used) {
			continue
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: subnetSocket(p), Net: "unix"})
		if err == nil {
			return p, l, nil
		}
	}
	return netip.Prefix{}, nil, errors.New("no free subnet in 10.0.0.0/8")
}

func subnetSocket(p netip.Prefix) string { return "@lab-acctest-" + p.Masked().String() }

func usedPrefixes() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("unable to list the host's addresses: %w", err)
	}
	var used []netip.Prefix
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			used = append(used, p)
		}
	}
	return used, nil
}

func overlaps(p netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, p.Overlaps)
}
