// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"net"
	"net/netip"
	"regexp"
	"testing"
)

func TestName(t *testing.T) {
	t.Parallel()
	valid := regexp.MustCompile(`^[a-z][a-z0-9-]{0,13}[a-z0-9]$`)
	seen := map[string]bool{}
	for range 1000 {
		name := Name(t, "prefix78")
		if !valid.MatchString(name) {
			t.Fatalf("%q does not match %s", name, valid)
		}
		if seen[name] {
			t.Fatalf("%q was given twice", name)
		}
		seen[name] = true
	}
}

func TestSubnetIsClaimedOnce(t *testing.T) {
	t.Parallel()
	p, release, err := claimSubnet()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release.Close() }()
	address := &net.UnixAddr{Name: subnetSocket(p), Net: "unix"}
	if l, err := net.ListenUnix("unix", address); err == nil {
		_ = l.Close()
		t.Errorf("%s can be claimed twice", p)
	}
	_ = release.Close()
	l, err := net.ListenUnix("unix", address)
	if err != nil {
		t.Fatalf("%s is not free after its release: %v", p, err)
	}
	_ = l.Close()
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	used := []netip.Prefix{netip.MustParsePrefix("10.1.0.7/16"), netip.MustParsePrefix("::1/128")}
	for address, want := range map[string]bool{"10.1.200.1/24": true, "10.2.0.1/24": false} {
		if got := overlaps(netip.MustParsePrefix(address), used); got != want {
			t.Errorf("overlaps(%s) = %t, want %t", address, got, want)
		}
	}
}
