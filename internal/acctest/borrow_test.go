// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"slices"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"
)

// holdings are what a daemon's owner sees of it.
type holdings struct {
	Projects, Pools, Networks, Instances []string
}

func holdingsOf(t *testing.T, h *Host) holdings {
	t.Helper()
	c := h.Client(t)
	var got holdings
	var err error
	for _, list := range []struct {
		into *[]string
		get  func() ([]string, error)
	}{
		{&got.Projects, c.GetProjectNames},
		{&got.Pools, c.GetStoragePoolNames},
		{&got.Networks, c.GetNetworkNames},
		{&got.Instances, func() ([]string, error) { return c.GetInstanceNames(api.InstanceTypeAny) }},
	} {
		if *list.into, err = list.get(); err != nil {
			t.Fatal(err)
		}
	}
	// The host's interfaces, which the daemon lists too, are others' and change meanwhile.
	got.Networks = slices.DeleteFunc(got.Networks, func(name string) bool {
		n, _, err := c.GetNetwork(name)
		return err != nil || !n.Managed
	})
	return got
}

func TestBorrowedProjectIsGivenBack(t *testing.T) {
	t.Parallel()
	lender := Start(t, Options{})
	lender.LXC(t, "launch", lender.Tiny(t).Fingerprint, "theirs", "--storage", lender.Pool(t), "--network", lender.Network(t))
	before := holdingsOf(t, lender)

	s, err := makeSpace(openDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.lock.Close() }()
	h, err := s.borrow(t.Context(), lender.Address())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{h.Pool(t), h.Network(t)} {
		if err := s.record(name); err != nil { // As Name does where nothing else is to be had.
			t.Fatal(err)
		}
	}
	h.LXC(t, "launch", h.Tiny(t).Fingerprint, "ours", "--storage", h.Pool(t), "--network", h.Network(t))
	if got := holdingsOf(t, lender); cmp.Equal(before, got) {
		t.Fatal("the owner sees nothing of what was made")
	}

	if err := takeDown(t.Context(), s.dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, holdingsOf(t, lender)); diff != "" {
		t.Errorf("what the owner sees has changed (-before +after):\n%s", diff)
	}
	if got := lender.In(t, "theirs", "hostname"); got != "theirs" {
		t.Errorf("the owner's machine answers %q", got)
	}
}

func TestBorrowTakesUnixAddressesOnly(t *testing.T) {
	t.Parallel()
	s := &space{dir: t.TempDir()}
	if _, err := s.borrow(t.Context(), "https://127.0.0.1:8443"); err == nil {
		t.Error("an https address was taken")
	}
}
