// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestImageUploadBody(t *testing.T) {
	t.Parallel()
	part := func(name, content string) [2]string { return [2]string{name, content} }
	for name, test := range map[string]struct {
		image ImageUpload
		want  [][2]string // name and content of each part
	}{
		"container":       {ImageUpload{Metadata: strings.NewReader("meta"), Rootfs: strings.NewReader("root")}, [][2]string{part("metadata", "meta"), part("rootfs", "root")}},
		"virtual machine": {ImageUpload{Metadata: strings.NewReader("meta"), Rootfs: strings.NewReader("disk"), VirtualMachine: true}, [][2]string{part("metadata", "meta"), part("rootfs.img", "disk")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, contentType := test.image.body()
			kind, parameters, err := mime.ParseMediaType(contentType)
			must(t, err)
			if kind != "multipart/form-data" {
				t.Errorf("content type is %s", kind)
			}
			var got [][2]string
			parts := multipart.NewReader(body, parameters["boundary"])
			for {
				p, err := parts.NextPart()
				if errors.Is(err, io.EOF) {
					break
				}
				must(t, err)
				content, err := io.ReadAll(p)
				must(t, err)
				if p.FileName() == "" {
					t.Errorf("part %s is not a file", p.FormName())
				}
				got = append(got, [2]string{p.FormName(), string(content)})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("parts differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestImageUploadBodyUnified(t *testing.T) {
	t.Parallel()
	body, contentType := ImageUpload{Metadata: strings.NewReader("all")}.body()
	content, err := io.ReadAll(body)
	must(t, err)
	if contentType != "application/octet-stream" || string(content) != "all" {
		t.Errorf("got %q as %s", content, contentType)
	}
}

// TestImageThatCannotBeRead has a file of ours fail in the middle, of which nothing is lost but the file.
func TestImageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	failure := errors.New("input/output error")
	broken := func() io.Reader { return io.MultiReader(strings.NewReader("some"), iotest.ErrReader(failure)) }
	for name, image := range map[string]ImageUpload{
		"unified":  {Metadata: broken()},
		"metadata": {Metadata: broken(), Rootfs: strings.NewReader("root")},
		"rootfs":   {Metadata: strings.NewReader("meta"), Rootfs: broken()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := inMemory(t)
			if _, err := d.UploadImage(patient(t), image); !errors.Is(err, failure) || !isOnly(err, nil) {
				t.Errorf("got %v, want the reader's error and no kind", err)
			}
		})
	}
}

// headers records the headers of the next POST that a daemon gets.
func headers(t *testing.T) (*Daemon, func() http.Header) {
	t.Helper()
	seen := make(chan http.Header, 1)
	_, server := inMemory(t)
	d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			seen <- r.Header.Clone()
			refuse(t, w, http.StatusBadRequest, "seen enough")
			return
		}
		next.ServeHTTP(w, r)
	})
	return d, func() http.Header { return <-seen }
}

// TestHeadersOfBothDaemons checks that LXD and Incus, which ignore each other's headers, are told the same.
func TestHeadersOfBothDaemons(t *testing.T) {
	t.Parallel()
	d, seen := headers(t)
	check := func(want map[string]string) {
		t.Helper()
		got := seen()
		for name, value := range want {
			for _, family := range []string{"X-LXD-", "X-Incus-"} {
				if got.Get(family+name) != value {
					t.Errorf("%s%s is %q, want %q", family, name, got.Get(family+name), value)
				}
			}
		}
	}
	file := File{Path: "/etc/motd", Content: []byte("lab"), Mode: 0o640, UID: 1000, GID: 100}
	if err := d.PushFile(patient(t), "m", file); !isOnly(err, ErrRefused) {
		t.Errorf("got %v, want the refusal", err)
	}
	check(map[string]string{"uid": "1000", "gid": "100", "mode": "0640", "type": "file", "write": "overwrite", "modify-perm": "uid,gid,mode"})

	if err := d.PushFile(patient(t), "m", File{Path: "/srv", Mode: 0o755, Directory: true}); !isOnly(err, ErrRefused) {
		t.Errorf("got %v, want the refusal", err)
	}
	check(map[string]string{"uid": "0", "gid": "0", "mode": "0755", "type": "directory"})

	properties := map[string]string{"user.a": "b & c"}
	if _, err := d.UploadImage(patient(t), ImageUpload{Metadata: bytes.NewReader([]byte("image")), Properties: properties}); !isOnly(err, ErrRefused) {
		t.Errorf("got %v, want the refusal", err)
	}
	check(map[string]string{"properties": "user.a=" + url.QueryEscape("b & c")})
}

func TestPushFileRefusesWhatTheDaemonDrops(t *testing.T) {
	t.Parallel()
	d, server := inMemory(t)
	server.ForgetRequests()
	err := d.PushFile(patient(t), "m", File{Path: "/bin/su", Mode: 0o4755})
	if !isOnly(err, ErrUnsupported) || !strings.Contains(err.Error(), "mode is 4755") || len(server.Requests()) > 0 {
		t.Errorf("got %v after %d requests, want it refused before any", err, len(server.Requests()))
	}
}
