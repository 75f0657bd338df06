// SPDX-License-Identifier: MPL-2.0

package lxdtest_test

import (
	"io"
	"syscall"

	"github.com/canonical/lxd/shared/api"
	"github.com/gorilla/websocket"
)

// nopCloser is a writer that cannot be closed.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// killer tells a command to die as soon as it can be told anything.
func killer(conn *websocket.Conn) {
	_ = conn.WriteJSON(api.InstanceExecControl{Command: "signal", Signal: int(syscall.SIGKILL)})
}
