// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// kinds are all kinds that an error may have.
var kinds = []error{
	ErrNotFound, ErrExists, ErrBusy, ErrInUse, ErrRefused, ErrUnsupported, ErrTimeout, ErrUnknownOutcome, ErrUnreachable, context.Canceled,
}

// isOnly says whether an error is of the one kind and of no other; nil means none at all.
func isOnly(err, kind error) bool {
	for _, k := range kinds {
		if errors.Is(err, k) != (k == kind) { //nolint:errorlint // the kinds themselves are compared
			return false
		}
	}
	return true
}

// TestClassify holds what daemons really said.
func TestClassify(t *testing.T) {
	t.Parallel()
	const async = 0
	tests := []struct {
		status int
		text   string
		want   error
	}{
		{404, "Instance not found", ErrNotFound},
		{404, `Failed to fetch snapshot "nope" of instance "a" in project "default": InstanceSnapshot not found`, ErrNotFound},
		{404, "Image alias not found", ErrNotFound},
		{409, "The storage pool already exists", ErrExists},
		{409, `This "profiles" entry already exists`, ErrExists},
		{409, `IP address "10.0.0.5" already defined on another NIC`, ErrRefused},
		{409, "Storage volume found on more than one cluster member. Please target a specific member", ErrRefused},
		{412, "ETag doesn't match: 1 vs 2", ErrBusy},
		{400, "The storage pool is currently in use", ErrInUse},
		{400, "The network is currently in use", ErrInUse},
		{400, "Instance is running", ErrRefused},
		{400, "Instance is not running", ErrRefused},
		{400, "Instance is frozen", ErrRefused},
		{400, `Instance type "virtual-machine" is not supported on this server: vhost_vsock kernel module not loaded`, ErrUnsupported},
		{403, "not authorized", ErrRefused},
		{401, "not authorised", ErrRefused},
		{500, `Required tool "lvm" is missing`, ErrUnsupported},
		{500, `Error loading "zfs" module`, ErrUnsupported},
		{500, "Unknown driver", ErrUnsupported},
		{500, "Not supported", ErrUnsupported},
		{500, `Invalid option "bogus"`, ErrRefused},
		{500, "Pool cannot be shrunk", ErrRefused},
		{500, "Provided path does not reside on a btrfs filesystem", ErrRefused},
		{500, `Failed to run: btrfs subvolume delete /p: exec: "btrfs": executable file not found in $PATH`, ErrRefused},
		{501, "Password authentication is no longer supported, please update your client", ErrUnsupported},
		{503, `Storage pool "x" unavailable on this server`, ErrRefused},
		{503, "LXD is shutting down", ErrBusy},
		{503, "LXD daemon setup in progress", ErrBusy},

		{async, `Failed to create instance restore operation: Instance is busy running a "restore" operation`, ErrBusy},
		{async, `Failed creating instance record: Add instance info to the database: This "instances" entry already exists`, ErrExists},
		{async, `Failed creating instance snapshot record "s": Add snapshot info to the database: This "instances_snapshots" entry already exists`, ErrExists},
		{async, "Image with same fingerprint already exists", ErrExists},
		{async, "Snapshot a/nope does not exist", ErrNotFound},
		{async, "Instance not found", ErrNotFound},
		{async, "Instance snapshot not found", ErrNotFound},
		{async, "Stateful snapshots are not supported for containers", ErrUnsupported},
		{async, "Container is protected", ErrRefused},
		{async, "Failed getting root disk: No root device could be found", ErrRefused},
		{async, "Cannot use source as it's already in use by pool \"a\"", ErrRefused},
		{async, `Snapshot "a" cannot be restored due to subsequent snapshot(s). Set zfs.remove_snapshots to override`, ErrRefused},
		{async, "Error deleting storage volume: Cannot remove a volume that has snapshots", ErrRefused},
		{async, "mkdir /var/lib/lxd/storage-pools/p/containers/a: file exists", ErrRefused},
		{async, `Failed to start device "eth0": Parent device "br9" doesn't exist`, ErrRefused},
		{async, `Error deleting storage volume: Failed to run: zfs destroy: exec: "zfs": executable file not found in $PATH`, ErrRefused},
		{async, `Failed instance creation: Profile "p" in project "default": Network not found`, ErrRefused},
		{async, "Command not found", ErrRefused},
		{async, "LXD VM agent isn't currently running", ErrRefused},
		{async, `Storage pool "x" unavailable on this server`, ErrRefused},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			t.Parallel()
			err := classifyOperation("do it", test.text)
			if test.status != async {
				err = classify("do it", api.NewStatusError(test.status, test.text))
			}
			if !isOnly(err, test.want) {
				t.Errorf("got %#v, want the kind %q", err, test.want)
			}
			if err.Error() != "do it: "+test.text {
				t.Errorf("error %q does not say what was asked and what the daemon said", err)
			}
		})
	}
}

func TestClassifyWhatIsNotOfTheDaemon(t *testing.T) {
	t.Parallel()
	certificate := &x509.Certificate{Raw: []byte("certificate")}
	tests := map[string]struct {
		err, want error
	}{
		"nobody there":      {&url.Error{Op: "Get", URL: "http://unix.socket/1.0", Err: io.EOF}, ErrUnreachable},
		"deadline":          {&url.Error{Op: "Get", URL: "http://unix.socket/1.0", Err: context.DeadlineExceeded}, ErrTimeout},
		"interrupt":         {fmt.Errorf("wrapped: %w", context.Canceled), context.Canceled},
		"wrong fingerprint": {&url.Error{Op: "Get", Err: &fingerprintError{want: "a", have: "b"}}, ErrRefused},
		"unknown authority": {&url.Error{Op: "Get", Err: &tls.CertificateVerificationError{
			UnverifiedCertificates: []*x509.Certificate{certificate}, Err: x509.UnknownAuthorityError{},
		}}, ErrRefused},
		"classified already": {&Error{Ask: "earlier", Kind: ErrBusy, Err: io.EOF}, ErrBusy},
		"without a kind":     {fmt.Errorf("wrapped: %w", &Error{Ask: "earlier", Err: io.EOF}), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := classify("do it", test.err); !isOnly(err, test.want) {
				t.Errorf("got %#v, want the kind %q", err, test.want)
			}
		})
	}
	if err := classify("do it", nil); err != nil {
		t.Errorf("success became %v", err)
	}
}

func TestTimeoutErrorTellsAll(t *testing.T) {
	t.Parallel()
	err := &TimeoutError{Condition: "the guest is up", LastSeen: "booting", Waited: 1234567 * time.Microsecond, Cause: context.DeadlineExceeded}
	if want := "gave up after 1.235s waiting until the guest is up; last seen: booting"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !isOnly(err, ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error("an expiry is not ErrTimeout and its cause")
	}
	err.Cause, err.LastSeen = context.Canceled, ""
	if want := "interrupted after 1.235s waiting until the guest is up"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !isOnly(err, context.Canceled) {
		t.Error("an interrupt is a timeout")
	}
}

func TestUnknownAuthorityTellsTheFingerprint(t *testing.T) {
	t.Parallel()
	certificate := &x509.Certificate{Raw: []byte("certificate")}
	err := classify("connect", &tls.CertificateVerificationError{UnverifiedCertificates: []*x509.Certificate{certificate}, Err: x509.UnknownAuthorityError{}})
	if want := `set server_fingerprint = "` + certificateFingerprint(certificate); !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not contain %q", err, want)
	}
}
