// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckStaticSaysWhatToInstall(t *testing.T) {
	t.Parallel()
	programs := map[string]string{"missing": filepath.Join(t.TempDir(), "busybox")}
	if ls, err := exec.LookPath("ls"); err == nil { // Linked dynamically on every distribution that LXD runs on.
		programs["dynamic"] = ls
	}
	for name, path := range programs {
		if err := checkStatic(path); err == nil || !strings.Contains(err.Error(), "busybox-static") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToolsExcept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := toolsExcept(dir, []string{"ls"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sh")); err != nil {
		t.Errorf("a tool that is not taken away: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ls")); !os.IsNotExist(err) {
		t.Errorf("a tool that is taken away: %v", err)
	}
	if err := toolsExcept(dir, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ls")); err != nil {
		t.Errorf("a tool that is put back: %v", err)
	}
}
