// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// debianTimeout bounds the build of the image, which fetches packages when it is not cached.
const debianTimeout = 15 * time.Minute

// Debian returns the image of the examples: Debian with systemd, built once per host. It is imported.
func (h *Host) Debian(t testing.TB) Image {
	t.Helper()
	image, err := h.debian.get(func() (Image, error) {
		image, err := buildDebian(context.WithoutCancel(t.Context()))
		if err != nil {
			return image, err
		}
		return image, importImage(h.Client(t), image.Metadata, image.Rootfs, api.InstanceTypeContainer)
	})
	if err != nil {
		t.Fatalf("Unable to import the Debian image: %v", err)
	}
	return image
}

func buildDebian(ctx context.Context) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, debianTimeout)
	defer cancel()
	top, err := ModuleRoot()
	if err != nil {
		return Image{}, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(top, "examples", "images", "debian.sh"))
	cmd.WaitDelay = time.Second
	var progress strings.Builder
	cmd.Stderr = &progress
	out, err := cmd.Output()
	if err != nil {
		return Image{}, fmt.Errorf("%s: %w\n%s", cmd, err, progress.String())
	}
	dir := strings.TrimSpace(string(out))
	image := Image{Metadata: filepath.Join(dir, "debian-12.tar.xz"), Rootfs: filepath.Join(dir, "debian-12.squashfs")}
	image.Fingerprint, err = fingerprint(image.Metadata, image.Rootfs)
	return image, err
}

// ModuleRoot returns the directory that holds go.mod, from the directory of the tested package upwards.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: this is not the source tree")
		}
		dir = parent
	}
}
