// SPDX-License-Identifier: MPL-2.0

package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

// buildTimeout is for a slow mirror; a build takes about two minutes.
const buildTimeout = 20 * time.Minute

// directory holds what was built.
type directory string

func (d directory) file(name string) string { return filepath.Join(string(d), name) }

// build gives the directory with the guest's image and, unless only that is wanted, the nested host.
func build(ctx context.Context, guestOnly bool) (directory, error) {
	top, err := acctest.ModuleRoot()
	if err != nil {
		return "", err
	}
	what := "host"
	if guestOnly {
		what = "guest"
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	recipe, err := recipeOf(top)
	if err != nil {
		return "", err
	}
	out := directory(filepath.Join(cache, what))
	if err := os.MkdirAll(string(out), 0o750); err != nil {
		return "", err
	}
	lock := flock.New(out.file(".lock"))
	if _, err := lock.TryLockContext(ctx, time.Second); err != nil {
		return "", err
	}
	defer func() { _ = lock.Unlock() }()
	if built, err := os.ReadFile(out.file(".recipe")); err == nil && string(built) == recipe {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	// In a mount namespace of its own, what is mounted is gone whatever way it ends.
	args := []string{"unshare", "--mount", filepath.Join(top, "internal", "acctest", "nested", "build.sh"), what, string(out)}
	if os.Geteuid() != 0 {
		args = append([]string{"sudo"}, args...)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	log := &strings.Builder{}
	command.Stdout, command.Stderr, command.WaitDelay = log, log, time.Second
	fmt.Fprintf(os.Stderr, "nested: building the %s that virtual machines are tested with (a few minutes, once)\n", what)
	if err := errors.Join(os.RemoveAll(out.file(".recipe")), command.Run()); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, tail(log.String(), 30))
	}
	return out, os.WriteFile(out.file(".recipe"), []byte(recipe), 0o600)
}

// cacheDir is where the images of the examples are cached, too.
func cacheDir() (string, error) {
	base := os.Getenv("LAB_CACHE")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		base = filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "terraform-provider-lab")
	}
	return filepath.Join(base, "nested"), nil
}

// recipeOf is what the outcome of a build depends on, as a hash.
func recipeOf(top string) (string, error) {
	hash, tree := sha256.New(), os.DirFS(top)
	for _, root := range []string{"internal/acctest/nested", "internal/acctest/testdata/tiny", "examples/images/debian.sh"} {
		err := fs.WalkDir(tree, root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") {
				return err
			}
			content, err := fs.ReadFile(tree, path)
			_, _ = fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// tail is the end of a text, in lines.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
