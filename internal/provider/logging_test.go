// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"
)

func TestLogLinesReachTerraform(t *testing.T) {
	t.Parallel()
	var output bytes.Buffer
	ctx := tflogtest.RootLogger(t.Context(), &output)
	log := slog.New(tflogHandler{})
	log.DebugContext(ctx, "daemon call", "ask", "read a", "duration_ms", 12)
	log.InfoContext(ctx, "made")
	log.WarnContext(ctx, "again", "error", errors.New("busy"))
	log.ErrorContext(ctx, "lost")
	lines, err := tflogtest.MultilineJSONDecode(&output)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		delete(line, "@module")
		delete(line, "@caller")
		delete(line, "@timestamp")
	}
	want := []map[string]any{
		{"@level": "debug", "@message": "daemon call", "ask": "read a", "duration_ms": float64(12)},
		{"@level": "info", "@message": "made"},
		{"@level": "warn", "@message": "again", "error": "busy"},
		{"@level": "warn", "@message": "lost"},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
