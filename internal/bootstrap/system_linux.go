// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

const (
	// graceTime is what a program that is told to end may take before it is killed.
	graceTime = 10 * time.Second
	// statusGrace is what reading the last of a program's status may take after it ended.
	statusGrace = time.Second
	// tryPoolSize is a little more than the smallest pool that btrfs makes.
	tryPoolSize = "128MiB"
)

// systemPath is where programs of the system are, also where PATH leaves some out, as a person's may.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"

// System is the machine that this process runs on.
type System struct {
	// UserAgent is sent to the daemon.
	UserAgent string
}

var _ Host = System{}

// Run implements [Host].
func (s System) Run(ctx context.Context, c Command) (string, error) {
	cmd := s.command(ctx, c)
	// apt and its kin end in an orderly way when they are asked to. In a group of its own, an interrupt from the
	// terminal reaches them only through us.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = graceTime
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	err := runWithStatus(cmd, c.Status)
	if err == nil {
		return output.String(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return output.String(), &CommandError{Command: c, Output: output.String(), Err: err}
}

// runWithStatus runs a program, and hands on what it writes to descriptor 3.
func runWithStatus(cmd *exec.Cmd, status func(line string)) error {
	if status == nil {
		return cmd.Run()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	cmd.ExtraFiles = []*os.File{write}
	err = cmd.Start()
	_ = write.Close() // the program has it, if it started
	if err != nil {
		return err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(read); lines.Scan(); {
			status(lines.Text())
		}
	})
	err = cmd.Wait()
	// A service that the program started may have the other end, and never close it.
	deadlineErr := read.SetReadDeadline(time.Now().Add(statusGrace))
	if deadlineErr == nil {
		reading.Wait()
	}
	return errors.Join(err, deadlineErr)
}

func (s System) command(ctx context.Context, c Command) *exec.Cmd {
	program := c.Args[0]
	if found := s.Find(program); found != "" {
		program = found
	}
	cmd := exec.CommandContext(ctx, program, c.Args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+strings.Join(searchPath(), ":"))
	cmd.Env = append(cmd.Env, c.Env...)
	return cmd
}

// Start implements [Host].
func (s System) Start(ctx context.Context, c Command, log string) (<-chan error, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil { //nolint:gosec // as /var/log
		return nil, fmt.Errorf("start `%s`: %w", c, err)
	}
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start `%s`: %w", c, err)
	}
	defer func() { _ = file.Close() }() // the program has it, too
	// It outlives the context, this process, and the terminal.
	cmd := s.command(context.WithoutCancel(ctx), c)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start `%s`: %w", c, err)
	}
	exited := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		exited <- err
	}()
	return exited, nil
}

// ReadFile implements [Host].
func (System) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }

// Exists implements [Host].
func (System) Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// OwningGroup implements [Host].
func (System) OwningGroup(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("the owner of %s cannot be told", path)
	}
	return int(stat.Gid), nil
}

// Find implements [Host].
func (System) Find(program string) string {
	for _, dir := range searchPath() {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

func searchPath() []string { return filepath.SplitList(os.Getenv("PATH") + ":" + systemPath) }

// Getenv implements [Host].
func (System) Getenv(name string) string { return os.Getenv(name) }

// Invoker implements [Host].
func (System) Invoker() (Invoker, error) {
	groups, err := os.Getgroups()
	if err != nil {
		return Invoker{}, fmt.Errorf("read this process's groups: %w", err)
	}
	invoker := Invoker{Root: os.Geteuid() == 0, Groups: append(groups, os.Getegid())}
	if invoker.Root {
		invoker.User = os.Getenv("SUDO_USER")
		return invoker, nil
	}
	owner, err := user.Current()
	if err != nil {
		return Invoker{}, fmt.Errorf("find out who runs this: %w", err)
	}
	invoker.User = owner.Username
	return invoker, nil
}

// Ask implements [Host].
func (s System) Ask(ctx context.Context, address string) (Server, error) {
	d, err := lxd.Connect(ctx, lxd.Config{Address: address, UserAgent: s.UserAgent})
	if err != nil {
		return Server{}, err
	}
	environment := d.Server().Environment
	server := Server{Product: "LXD", Version: environment.ServerVersion, PID: environment.ServerPid}
	if environment.Server == "incus" {
		server.Product = "Incus"
	}
	for _, driver := range environment.StorageSupportedDrivers {
		server.Drivers = append(server.Drivers, driver.Name)
	}
	return server, nil
}

// TryPool implements [Host].
func (s System) TryPool(ctx context.Context, address, driver string) error {
	d, err := lxd.Connect(ctx, lxd.Config{Address: address, UserAgent: s.UserAgent})
	if err != nil {
		return err
	}
	return WithThrowAwayPool(ctx, d, driver, tryPoolSize, func(context.Context, string) error { return nil })
}
