// SPDX-License-Identifier: MPL-2.0

package bootstrap

import (
	"errors"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	task := Lines{Out: &out}.Begin("install lxd")
	for _, at := range []float64{0.1, 0.26, 0.3, 0.6} {
		task.At(at, "unpacking")
	}
	task.End(errors.New("broken"))
	text := out.String()
	if n := strings.Count(text, "unpacking"); n != 2 {
		t.Errorf("%d lines for two quarters:\n%s", n, text)
	}
	if !strings.HasPrefix(text, "install lxd ...\n") || !strings.Contains(text, "install lxd: failed after") {
		t.Errorf("got:\n%s", text)
	}
}
