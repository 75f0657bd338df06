// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A person's PATH lacks the directories of administrators, where mkfs.btrfs is, and a daemon's has them.
func TestToolsOfADaemonAreNotSoughtOnAPersonsPathAlone(t *testing.T) {
	t.Parallel()
	want := []string{"/home/u/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/sbin"}
	if diff := cmp.Diff(want, guessedPath("/home/u/bin:/usr/bin:/bin")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
