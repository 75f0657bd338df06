// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// defaultMode is that of a file whose mode is not given.
const defaultMode = 0o644

// pushFiles puts files into a machine, in the order of their paths, and makes the directories that are missing.
func (l *Lab) pushFiles(ctx context.Context, machine string, files map[string]File) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		content, err := file.bytes()
		if err != nil {
			return argumentErrorf("files", "file %s: %w", name, err)
		}
		mode, err := ParseMode(file.Mode)
		if err != nil {
			return argumentErrorf("files", "file %s: %w", name, err)
		}
		push := lxd.File{Path: name, Content: content, Mode: mode, UID: file.UID, GID: file.GID}
		err = l.daemon.PushFile(ctx, machine, push)
		if errors.Is(err, lxd.ErrNotFound) {
			if err := l.makeDirectories(ctx, machine, path.Dir(name)); err != nil {
				return argumentErrorf("files", "file %s: %w", name, err)
			}
			err = l.daemon.PushFile(ctx, machine, push)
		}
		if err != nil {
			return argumentErrorf("files", "file %s: %w", name, err)
		}
	}
	return nil
}

// fill puts the files into a machine that was not started yet, or says that they must be put into it from within: the
// disk of a virtual machine is written by its own agent.
func (l *Lab) fill(ctx context.Context, spec *MachineSpec) (within bool, err error) {
	if len(spec.Files) == 0 {
		return false, nil
	}
	kind := spec.Type
	if kind == "" { // a branch has its source's
		live, _, err := l.daemon.Instance(ctx, spec.Name)
		if err != nil {
			return false, err
		}
		kind = live.Type
	}
	if kind == TypeVirtualMachine {
		return true, nil
	}
	return false, l.pushFiles(ctx, spec.Name, spec.Files)
}

// fillFromWithin puts files into a virtual machine as soon as its agent answers.
func (l *Lab) fillFromWithin(ctx context.Context, spec *MachineSpec) error {
	if err := waitExec(ctx, l.daemon, spec.Name); err != nil {
		return err
	}
	return l.pushFiles(ctx, spec.Name, spec.Files)
}

// makeDirectories makes a directory in a machine and those above it; those that exist stay as they are.
func (l *Lab) makeDirectories(ctx context.Context, machine, directory string) error {
	made := "/"
	for part := range strings.SplitSeq(strings.Trim(directory, "/"), "/") {
		made = path.Join(made, part)
		err := l.daemon.PushFile(ctx, machine, lxd.File{Path: made, Mode: 0o755, Directory: true})
		if err != nil && !errors.Is(err, lxd.ErrExists) {
			return err
		}
	}
	return nil
}

// ParseMode reads permissions in octal, such as "0644"; empty is the default, 0644.
func ParseMode(mode string) (uint32, error) {
	if mode == "" {
		return defaultMode, nil
	}
	bits, err := strconv.ParseUint(mode, 8, 9)
	return uint32(bits), err
}
