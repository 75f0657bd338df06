// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mountDisk mounts a new file system of the given size, such as "256M", on dir. Its image lies in root.
func mountDisk(ctx context.Context, root, dir, size string) error {
	image := filepath.Join(root, "disk.img")
	for _, args := range [][]string{
		{"truncate", "--size", size, image},
		{"mkfs.ext4", "-q", "-m", "0", image},
		{"mount", "-o", "loop", image, dir},
	} {
		if err := run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program of the host; its output becomes part of the error.
func run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
