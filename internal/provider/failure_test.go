// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	of := func(kind error) error {
		return &lxd.Error{Ask: `create network "a"`, Kind: kind, Err: errors.New("the daemon's words")}
	}
	refusal := &capability.Refusal{
		Capability: capability.Pools, Argument: "driver", Found: "it copies", Evidence: []string{"evidence"}, Remedy: "Use btrfs.",
	}
	for name, test := range map[string]struct {
		verb    string
		err     error
		summary string
		detail  []string // all of these
		path    string
	}{
		"no kind":             {verb: verbCreate, err: of(nil), summary: `Unable to create network "a"`, detail: []string{`Create network "a": the daemon's words.`}},
		"not found":           {verb: verbUpdate, err: of(lxd.ErrNotFound), summary: `Unable to update network "a"`, detail: []string{"the daemon's words"}},
		"refused":             {verb: verbCreate, err: of(lxd.ErrRefused), summary: `Unable to create network "a"`, detail: []string{"the daemon's words"}},
		"exists":              {verb: verbCreate, err: of(lxd.ErrExists), summary: `Unable to create network "a"`, detail: []string{"the daemon's words", "left as it is", "terraform import"}},
		"busy":                {verb: verbDelete, err: of(lxd.ErrBusy), summary: `Unable to delete network "a"`, detail: []string{"the daemon's words", "Try again"}},
		"timed out creating":  {verb: verbCreate, err: of(lxd.ErrTimeout), summary: `Unable to create network "a"`, detail: []string{"timeouts.create"}},
		"timed out importing": {verb: verbImport, err: of(lxd.ErrTimeout), summary: `Unable to import network "a"`, detail: []string{"timeouts.read"}},
		"unknown outcome":     {verb: verbCreate, err: of(lxd.ErrUnknownOutcome), summary: `Unable to create network "a"`, detail: []string{"not known", "terraform plan"}},
		"unreachable":         {verb: verbConnect, err: &lxd.NoDaemonError{Looked: []string{"/a/socket"}}, summary: `Unable to connect to network "a"`, detail: []string{"/a/socket", "bootstrap"}},
		"called off":          {verb: verbCreate, err: of(lxd.ErrCalledOff), summary: `Unable to create network "a"`, detail: []string{"timeouts.create", "Nothing was left"}},
		"interrupted":         {verb: verbCreate, err: fmt.Errorf("wait: %w", context.Canceled), summary: `Unable to create network "a"`, detail: []string{"Interrupted"}},
		"refusal":             {verb: verbCreate, err: fmt.Errorf("wrapped: %w", refusal), summary: "Host refused: copy-on-write storage", detail: []string{"it copies", "evidence", "Use btrfs."}, path: "driver"},
		"an argument's":       {verb: verbCreate, err: &lab.ArgumentError{Argument: "file.rootfs", Err: errors.New("no such file")}, summary: `Unable to create network "a"`, detail: []string{"No such file."}, path: "file.rootfs"},
		"an argument's, of a kind": {
			verb: verbCreate, err: fmt.Errorf("wrapped: %w", &lab.ArgumentError{Argument: "aliases", Err: of(lxd.ErrExists)}),
			summary: `Unable to create network "a"`, detail: []string{"terraform import"}, path: "aliases",
		},
	} {
		got := failure(test.verb, thingNetwork, "a", test.err)
		if got.Summary() != test.summary || got.Severity() != diag.SeverityError {
			t.Errorf("%s: summary is %s %q, want %q", name, got.Severity(), got.Summary(), test.summary)
		}
		for _, text := range test.detail {
			if !strings.Contains(got.Detail(), text) {
				t.Errorf("%s: the detail lacks %q: %s", name, text, got.Detail())
			}
		}
		path := ""
		if at, ok := got.(diag.DiagnosticWithPath); ok {
			path = at.Path().String()
		}
		if path != test.path {
			t.Errorf("%s: it is at %q, want %q", name, path, test.path)
		}
	}
}

func TestFailureWithoutAName(t *testing.T) {
	t.Parallel()
	if got := failure(verbConnect, "daemon", "", errors.New("no")).Summary(); got != "Unable to connect to daemon" {
		t.Errorf("summary is %q", got)
	}
}
