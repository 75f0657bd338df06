// SPDX-License-Identifier: MPL-2.0

package bootstrap_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }

// runTimeout bounds one run of the program. An installation over a slow network is the longest.
const runTimeout = 10 * time.Minute

// program is the program under test, built once.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "bootstrap-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "terraform-provider-lab")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", path, "../..")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(err, errors.New(string(out)))
	}
	return os.ReadFile(path)
})

// buildProgram gives the path of the program under test.
func buildProgram(t *testing.T) string {
	t.Helper()
	data, err := program()
	if err != nil {
		t.Fatalf("Unable to build the program: %v", err)
	}
	path := filepath.Join(t.TempDir(), "terraform-provider-lab")
	if err := os.WriteFile(path, data, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

// result is how a command ended, and what it printed.
type result struct {
	code        int
	out, errOut string
}

// runCommand runs a command with variables added to the environment.
func runCommand(ctx context.Context, t *testing.T, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok && err != nil || ok && exit.ExitCode() < 0 {
		t.Fatalf("%v: %v\n%s%s", args, err, out.String(), errOut.String())
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}
