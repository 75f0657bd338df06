// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"archive/tar"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

//go:embed testdata/tiny/init.sh
var tinyInit string

//go:embed testdata/tiny/udhcpc.sh
var tinyDHCP string

// architectures are LXD's names for Go's.
var architectures = map[string]string{"amd64": "x86_64", "arm64": "aarch64", "riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x"}

// tinyTime is the time of every file, so that a build on the same host gives the same fingerprint.
var tinyTime = time.Unix(1700000000, 0)

// buildTiny writes the image's files into dir, which it makes. A serial makes the fingerprint differ from others'.
func buildTiny(dir, serial string) (Image, error) {
	image := Image{
		Metadata: filepath.Join(dir, "metadata.tar"),
		Rootfs:   filepath.Join(dir, "rootfs.tar"),
		Unified:  filepath.Join(dir, "tiny.tar"),
	}
	metadata, err := tinyMetadata(serial)
	if err != nil {
		return image, err
	}
	files, err := tinyRootfs()
	if err != nil {
		return image, err
	}
	unified := []entry{metadata, {name: "rootfs/", mode: 0o755}}
	for _, f := range files {
		f.name = "rootfs/" + f.name
		unified = append(unified, f)
	}
	err = errors.Join(
		os.MkdirAll(dir, 0o700),
		writeTar(image.Metadata, []entry{metadata}),
		writeTar(image.Rootfs, files),
		writeTar(image.Unified, unified),
	)
	if err != nil {
		return image, err
	}
	image.Fingerprint, err = fingerprint(image.Unified)
	return image, err
}

func tinyMetadata(serial string) (entry, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return entry{}, fmt.Errorf("LXD's name for the architecture %s is not known here", runtime.GOARCH)
	}
	text := fmt.Sprintf("architecture: %s\ncreation_date: %d\nproperties:\n  os: tiny\n  description: busybox for acceptance tests\n  serial: %q\n",
		arch, tinyTime.Unix(), serial)
	return entry{name: "metadata.yaml", mode: 0o644, content: text}, nil
}

// tinyRootfs returns the files of the root directory, each after its parent.
func tinyRootfs() ([]entry, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	applets, err := exec.CommandContext(context.Background(), busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("unable to list the applets of %s: %w", busybox, err)
	}
	var files []entry
	for _, dir := range []string{"bin/", "dev/", "etc/", "mnt/", "proc/", "root/", "run/", "sbin/", "sys/", "usr/", "usr/bin/", "var/"} {
		files = append(files, entry{name: dir, mode: 0o755})
	}
	files = append(files,
		entry{name: "tmp/", mode: 0o1777},
		entry{name: "bin/busybox", mode: 0o755, content: string(program)},
		entry{name: "sbin/init", mode: 0o755, content: tinyInit},
		entry{name: "etc/udhcpc.sh", mode: 0o755, content: tinyDHCP},
		entry{name: "etc/passwd", mode: 0o644, content: "root:x:0:0:root:/root:/bin/sh\n"},
		entry{name: "etc/group", mode: 0o644, content: "root:x:0:\n"},
		entry{name: "etc/os-release", mode: 0o644, content: "ID=tiny\nNAME=tiny\n"},
	)
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" && applet != "init" {
			files = append(files, entry{name: "bin/" + applet, link: "busybox"})
		}
	}
	return files, nil
}

// entry is a file of an archive: a directory if its name ends in a slash, a link if that is set, else a regular file.
type entry struct {
	name, content, link string
	mode                int64
}

func (e entry) header() *tar.Header {
	h := &tar.Header{Name: e.name, Mode: e.mode, ModTime: tinyTime, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
	switch {
	case strings.HasSuffix(e.name, "/"):
		h.Typeflag = tar.TypeDir
	case e.link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
	}
	return h
}

func writeTar(path string, entries []entry) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w := tar.NewWriter(f)
	for _, e := range entries {
		if err := w.WriteHeader(e.header()); err != nil {
			return err
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), f.Close())
}
