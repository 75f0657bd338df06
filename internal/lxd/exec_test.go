// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func TestExecInMemory(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ends lxdtest.ExecResult
		want CommandResult
	}{
		"well":          {lxdtest.ExecResult{Stdout: "out", Stderr: "err"}, CommandResult{Stdout: []byte("out"), Stderr: []byte("err")}},
		"badly":         {lxdtest.ExecResult{Code: 3, Stderr: "err"}, CommandResult{ExitCode: 3, Stderr: []byte("err")}},
		"by a signal":   {lxdtest.ExecResult{Code: 137}, CommandResult{ExitCode: 137}},
		"before it ran": {lxdtest.ExecResult{Code: 127}, CommandResult{ExitCode: 127, Stderr: []byte(`run ["it"] in machine "m": Command not found`)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := inMemory(t, lxdtest.WithExec(func(_ context.Context, e lxdtest.Exec) lxdtest.ExecResult {
				want := api.InstanceExecPost{
					Command: []string{"it"}, Environment: map[string]string{"A": "b"}, Cwd: "/tmp", User: 1, Group: 2, WaitForWS: true,
				}
				if diff := cmp.Diff(want, e.InstanceExecPost); diff != "" {
					t.Errorf("the daemon was asked for another command (-want +got):\n%s", diff)
				}
				return test.ends
			}))
			must(t, d.SetInstanceState(patient(t), "m", api.InstanceStatePut{Action: "start"}))
			got, err := d.Exec(patient(t), "m", Command{
				Args: []string{"it"}, Environment: map[string]string{"A": "b"}, Directory: "/tmp", User: 1, Group: 2,
			})
			must(t, err)
			if diff := cmp.Diff(&test.want, got, cmp.Comparer(bytes.Equal)); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, want := range []int{0, 3, 127, 137} {
		d, server := inMemory(t, lxdtest.WithExec(func(_ context.Context, e lxdtest.Exec) lxdtest.ExecResult {
			if diff := cmp.Diff([]string{"it", "now"}, e.Command); diff != "" {
				t.Errorf("another command (-want +got):\n%s", diff)
			}
			return lxdtest.ExecResult{Code: want}
		}))
		must(t, d.SetInstanceState(patient(t), "m", api.InstanceStatePut{Action: "start"}))
		server.ForgetRequests()
		got, err := d.ExitCode(patient(t), "m", "it", "now")
		must(t, err)
		if got != want || len(server.Requests()) != 2 {
			t.Errorf("got %d, want %d; requests: %v", got, want, server.Requests())
		}
	}
	d, _ := inMemory(t)
	if _, err := d.ExitCode(patient(t), "m", "true"); !isOnly(err, ErrRefused) {
		t.Errorf("in a stopped machine: %v", err)
	}
}

func TestExecInAStoppedMachine(t *testing.T) {
	t.Parallel()
	d, _ := inMemory(t)
	if _, err := d.Exec(patient(t), "m", Command{Args: []string{"true"}}); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "not running") {
		t.Errorf("got %v, want the daemon's refusal", err)
	}
	if _, err := d.Exec(patient(t), "none", Command{Args: []string{"true"}}); !isOnly(err, ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
}

func TestExecKillsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	killed := make(chan struct{})
	d, _ := inMemory(t, lxdtest.WithExec(func(command context.Context, _ lxdtest.Exec) lxdtest.ExecResult {
		cancel()
		<-command.Done() // the client's signal
		close(killed)
		return lxdtest.ExecResult{}
	}))
	must(t, d.SetInstanceState(patient(t), "m", api.InstanceStatePut{Action: "start"}))
	_, err := d.Exec(ctx, "m", Command{Args: []string{"sleep", "infinity"}})
	<-killed
	if _, ok := errors.AsType[*TimeoutError](err); !ok || !isOnly(err, context.Canceled) {
		t.Errorf("got %v, want an interrupted wait", err)
	}
}

// TestExecThatCannotAttach has a daemon that never answers when it is asked for a stream.
func TestExecThatCannotAttach(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	direct, server := inMemory(t)
	must(t, direct.SetInstanceState(patient(t), "m", api.InstanceStatePut{Action: "start"}))
	d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/websocket") {
			cancel()
			<-r.Context().Done()
			return
		}
		next.ServeHTTP(w, r)
	})
	if _, err := d.Exec(ctx, "m", Command{Args: []string{"true"}}); !isOnly(err, context.Canceled) {
		t.Errorf("got %v, want an interrupt", err)
	}
}

func TestExecThatMayNotAttach(t *testing.T) {
	t.Parallel()
	direct, server := inMemory(t)
	must(t, direct.SetInstanceState(patient(t), "m", api.InstanceStatePut{Action: "start"}))
	d := between(t, server.Socket(), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/websocket") {
			refuse(t, w, http.StatusForbidden, "websocket: bad secret")
			return
		}
		next.ServeHTTP(w, r)
	})
	if _, err := d.Exec(patient(t), "m", Command{Args: []string{"true"}}); !isOnly(err, ErrRefused) || !strings.Contains(err.Error(), "bad secret") {
		t.Errorf("got %v, want the daemon's words", err)
	}
}

func TestPatienceWithACommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		contextEnds, commandEnds time.Duration // 0 for never
		want                     time.Duration
	}{
		"killed, and it dies":         {contextEnds: time.Minute, commandEnds: time.Minute + time.Second, want: time.Minute + time.Second},
		"killed, but it does not die": {contextEnds: time.Minute, want: time.Minute + killGrace},
		"output is held":              {commandEnds: time.Minute, want: time.Minute + outputGrace},
		"output is held for too long": {commandEnds: time.Minute, contextEnds: time.Minute + time.Second, want: time.Minute + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, ctx := &streams{ended: make(chan struct{})}, t.Context()
				if test.contextEnds > 0 {
					var end context.CancelFunc
					ctx, end = context.WithTimeout(ctx, test.contextEnds)
					defer end()
				}
				if test.commandEnds > 0 {
					time.AfterFunc(test.commandEnds, func() { close(s.ended) })
				}
				start := time.Now()
				wait, cancel := s.patience(ctx)
				defer cancel()
				<-wait.Done()
				if got := time.Since(start); got != test.want {
					t.Errorf("it ended after %s, want %s", got, test.want)
				}
			})
		})
	}
}

// stream makes a websocket that the messages arrive on, and then what ends it.
func stream(t *testing.T, messages ...[]byte) *websocket.Conn {
	t.Helper()
	path := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		for _, message := range messages {
			_ = conn.WriteMessage(websocket.BinaryMessage, message)
		}
		_ = conn.WriteMessage(websocket.TextMessage, nil)
	}))
	dialer := websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	conn, reply, err := dialer.DialContext(patient(t), "ws://stream", nil)
	must(t, err)
	t.Cleanup(func() { _, _ = conn.Close(), reply.Body.Close() })
	return conn
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("0123456789abcdef"), outputLimit/16)
	for name, test := range map[string]struct {
		messages [][]byte
		want     []byte
	}{
		"nothing":     {nil, nil},
		"little":      {[][]byte{[]byte("a"), []byte("b")}, []byte("ab")},
		"just enough": {[][]byte{long}, long},
		"too much":    {[][]byte{[]byte("lost"), long[:10], long[10:], []byte("end")}, append(bytes.Clone(long[3:]), "end"...)},
		"at once":     {[][]byte{append([]byte("lost"), long...)}, long},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var output tail
			output.readFrom(stream(t, test.messages...))
			if got := output.Bytes(); !bytes.Equal(got, test.want) {
				t.Errorf("kept %d bytes %.20q…, want %d bytes %.20q…", len(got), got, len(test.want), test.want)
			}
		})
	}
}
