// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var unexported = cmp.AllowUnexported(osRelease{}, aptPackage{}, unit{}, aptStatus{})

func TestParseOSRelease(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want osRelease
	}{
		"quoted": {
			"PRETTY_NAME=\"Ubuntu 24.04 LTS\"\nID=ubuntu\nID_LIKE=debian\n# ID=other\n",
			osRelease{id: "ubuntu", name: "Ubuntu 24.04 LTS", like: []string{"debian"}},
		},
		"several": {
			"ID='pop'\nID_LIKE=\"ubuntu debian\"\nPRETTY_NAME=Pop",
			osRelease{id: "pop", name: "Pop", like: []string{"ubuntu", "debian"}},
		},
		"none": {"", osRelease{name: "an unknown system", like: []string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, parseOSRelease(test.text), unexported); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	got := parsePolicy(`lxd:
  Installed: 5.0.2-5+deb12u6
  Candidate: 5.0.2-5+deb12u6
  Version table:
 *** 5.0.2-5+deb12u6 500
        500 file:/srv/mirror bookworm/main amd64 Packages
        100 /var/lib/dpkg/status
snapd:
  Installed: (none)
  Candidate: 2.57.6-1
  Version table:
     2.57.6-1 500
gone:
  Installed: (none)
  Candidate: (none)
`)
	want := map[string]aptPackage{
		"lxd":   {installed: "5.0.2-5+deb12u6", candidate: "5.0.2-5+deb12u6"},
		"snapd": {candidate: "2.57.6-1"},
		"gone":  {},
	}
	if diff := cmp.Diff(want, got, unexported); diff != "" {
		t.Error(diff)
	}
	if got := parsePolicy("N: Unable to locate package lxd\n"); len(got) != 0 {
		t.Errorf("packages were made up: %v", got)
	}
}

func TestParseUnit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text                          string
		want                          unit
		loaded, masked, failed, stuck bool
	}{
		"running": {
			"LoadState=loaded\nActiveState=active\nResult=success\nUnitFileState=indirect\n",
			unit{"loaded", "active", "success", "indirect"},
			true, false, false, false,
		},
		"absent":  {"LoadState=not-found\nActiveState=inactive\nUnitFileState=\n", unit{load: "not-found", active: "inactive"}, false, false, false, false},
		"masked":  {"LoadState=masked\nUnitFileState=masked\n", unit{load: "masked", file: "masked"}, false, true, false, false},
		"runtime": {"LoadState=loaded\nUnitFileState=masked-runtime\n", unit{load: "loaded", file: "masked-runtime"}, true, true, false, false},
		"failed":  {"LoadState=loaded\nActiveState=failed\nResult=exit-code\n", unit{load: "loaded", active: "failed", result: "exit-code"}, true, false, true, false},
		"stuck":   {"LoadState=loaded\nActiveState=activating\nResult=exit-code\n", unit{load: "loaded", active: "activating", result: "exit-code"}, true, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := parseUnit(test.text)
			if diff := cmp.Diff(test.want, got, unexported); diff != "" {
				t.Error(diff)
			}
			is := []bool{got.loaded(), got.masked(), got.failed(), got.stuck()}
			if diff := cmp.Diff([]bool{test.loaded, test.masked, test.failed, test.stuck}, is); diff != "" {
				t.Errorf("loaded, masked, failed, stuck: %s", diff)
			}
		})
	}
}

func TestParseGroup(t *testing.T) {
	t.Parallel()
	if name, gid, ok := parseGroup("lxd:x:105:alice,bob\n"); name != "lxd" || gid != 105 || !ok {
		t.Errorf("got %q, %d, %t", name, gid, ok)
	}
	for _, bad := range []string{"", "lxd", "lxd:x:many:alice"} {
		if _, _, ok := parseGroup(bad); ok {
			t.Errorf("%q was taken for a group", bad)
		}
	}
}

func TestParseAptStatus(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]aptStatus{
		"dlstatus:3:40.5:Retrieving file 3 of 8":      {fraction: 0.405, doing: "Retrieving file 3 of 8"},
		"pmstatus:lxd:50.0000:Unpacking lxd (amd64)":  {installing: true, fraction: 0.5, doing: "Unpacking lxd (amd64)"},
		"pmstatus:a:100:Configuring a: with a colon ": {installing: true, fraction: 1, doing: "Configuring a: with a colon"},
	} {
		got, ok := parseAptStatus(line)
		if diff := cmp.Diff(want, got, unexported); diff != "" || !ok {
			t.Errorf("%q: %t %s", line, ok, diff)
		}
	}
	for _, bad := range []string{"", "Setting up lxd (5.0.2) ...", "pmerror:lxd:50:it broke", "dlstatus:1:much:Retrieving"} {
		if got, ok := parseAptStatus(bad); ok {
			t.Errorf("%q was taken for %+v", bad, got)
		}
	}
}

func TestAptChanges(t *testing.T) {
	t.Parallel()
	installed, effects := aptChanges(`Reading package lists...
Setting up libuv1:amd64 (1.44.2-1+deb12u1) ...
Setting up lxd (5.0.2-5+deb12u6) ...
Setting up lxd dnsmasq configuration.
Setting up btrfs-progs (6.2-1) ...
Processing triggers for initramfs-tools (0.142) ...
update-initramfs: Generating /boot/initrd.img-6.1.0-35-amd64
invoke-rc.d: policy-rc.d denied execution of start.
`, []string{"lxd", "btrfs-progs"})
	if diff := cmp.Diff([]string{"installed lxd 5.0.2-5+deb12u6", "installed btrfs-progs 6.2-1"}, installed); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"installed libuv1 1.44.2-1+deb12u1 along",
		"rebuilt the initramfs /boot/initrd.img-6.1.0-35-amd64",
		"a service was not started: invoke-rc.d: policy-rc.d denied execution of start.",
	}
	if diff := cmp.Diff(want, effects); diff != "" {
		t.Error(diff)
	}
}

func TestHalfDone(t *testing.T) {
	t.Parallel()
	got := halfDone("lxd half-configured\nnftables installed\nsnapd not-installed\nbtrfs-progs unpacked\napparmor config-files\n")
	if diff := cmp.Diff([]string{"lxd", "btrfs-progs"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"plain-1.0/x": "plain-1.0/x", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "a=b": "a=b",
	} {
		if got := Quote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
		}
	}
}
