// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CLI is one directory of configuration in which terraform (or tofu) runs as a person runs it, with the provider built
// from this tree as a process of its own: for what the test kit, which runs the provider inside the test, cannot show.
type CLI struct {
	program, dir string
	binaries     string // the directory with the provider
	env          []string
}

const providerName = "terraform-provider-lab"

// cliProvider is the provider's binary, built once for the process.
var cliProvider once[string]

// NewCLI makes a directory with a configuration. It is removed when the test ends; what was applied is not.
func NewCLI(t testing.TB, config string) *CLI {
	t.Helper()
	binaries, err := cliProvider.get(func() (string, error) { return buildProvider(t.Context()) })
	if err != nil {
		t.Fatalf("Unable to build the provider: %v", err)
	}
	c := &CLI{program: os.Getenv("TF_ACC_TERRAFORM_PATH"), dir: t.TempDir(), binaries: binaries}
	settings := filepath.Join(c.dir, "cli.tfrc")
	overrides := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"cowlab/lab\" = %[1]q\n    \"hashicorp/lab\" = %[1]q\n  }\n  direct {}\n}\n", binaries)
	if err := os.WriteFile(settings, []byte(overrides), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Write(t, config)
	c.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "TF_IN_AUTOMATION=1")
	return c
}

// Write puts another configuration in the place of the one that is there.
func (c *CLI) Write(t testing.TB, config string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Command is terraform with arguments, ready to be started. It is killed when the context ends.
func (c *CLI) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.program, args...)
	command.Dir, command.Env, command.WaitDelay = c.dir, c.env, time.Second
	return command
}

// Script is a script with arguments, ready to be started, which is told of terraform and of a mirror with the provider.
// It is killed when the test ends.
func (c *CLI) Script(t testing.TB, path string, args ...string) *exec.Cmd {
	t.Helper()
	mirror := t.TempDir()
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		dir := filepath.Join(mirror, registry, "cowlab", "lab", "0.0.1", runtime.GOOS+"_"+runtime.GOARCH)
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.Symlink(filepath.Join(c.binaries, providerName), filepath.Join(dir, "terraform-provider-lab_v0.0.1"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Env, command.WaitDelay = append(os.Environ(), "TERRAFORM="+c.program, "MIRROR="+mirror), time.Second
	return command
}

// Setenv sets an environment variable for what is run from now on.
func (c *CLI) Setenv(name, value string) { c.env = append(c.env, name+"="+value) }

// Use makes what is run from now on talk to a host.
func (c *CLI) Use(h *Host) {
	for name, value := range h.Environment() {
		c.Setenv(name, value)
	}
}

// Provider is the provider itself with arguments, ready to be started.
func (c *CLI) Provider(ctx context.Context, args ...string) *exec.Cmd {
	command := c.Command(ctx, args...)
	command.Path = filepath.Join(c.binaries, providerName)
	return command
}

// Run runs terraform with arguments, which must succeed, and gives its output.
func (c *CLI) Run(t testing.TB, args ...string) string {
	t.Helper()
	output, err := c.Command(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// Apply applies, with more arguments of terraform's plan, and then plans again, which must find nothing to do.
func (c *CLI) Apply(t testing.TB, args ...string) {
	t.Helper()
	c.Run(t, append([]string{"apply", "-auto-approve", "-no-color"}, args...)...)
	c.Run(t, append([]string{"plan", "-detailed-exitcode", "-no-color"}, args...)...)
}

// Interrupt runs terraform with arguments and sends a signal to it and to the provider when it is time, and returns when
// they have ended. untilTime gets what sends the signal, and a channel that is closed when they have ended by themselves.
// What terraform prints is logged.
func (c *CLI) Interrupt(t testing.TB, signal syscall.Signal, untilTime func(send func(), ended <-chan struct{}), args ...string) {
	t.Helper()
	command := c.Command(t.Context(), args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the provider gets the signal, too
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // interrupted, killed, or just done
	}()
	untilTime(func() { _ = syscall.Kill(-command.Process.Pid, signal) }, ended)
	<-ended
	t.Logf("it printed:\n%s", output.String())
}

// buildProvider gives the directory that holds the provider's binary.
func buildProvider(ctx context.Context) (string, error) {
	space, err := workspace()
	if err != nil {
		return "", err
	}
	top, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(space.dir, "provider")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(dir, providerName), ".")
	build.Dir, build.WaitDelay = top, time.Second
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, output)
	}
	return dir, nil
}

// Destroy removes what was applied, for use in a cleanup, when the test's own context has ended.
func (c *CLI) Destroy(t testing.TB) {
	t.Helper()
	if output, err := c.Command(context.WithoutCancel(t.Context()), "destroy", "-auto-approve", "-no-color").CombinedOutput(); err != nil {
		t.Errorf("terraform destroy: %v\n%s", err, output)
	}
}
