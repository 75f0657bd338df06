// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/gorilla/websocket"
)

// killGrace is how long a command that was told to die may take to do so.
const killGrace = 2 * time.Second

// outputGrace is how long the daemon may take to pass on the output of a command that has ended.
const outputGrace = 5 * time.Second

// outputLimit is how many bytes of each stream are kept: the last ones, where the reason of a failure is.
const outputLimit = 64 << 10

// streams are the websockets of a running command.
type streams struct {
	control        *websocket.Conn
	conns          []*websocket.Conn
	readers        sync.WaitGroup
	stdout, stderr tail
	// ended is closed when the daemon closes the control stream, which it does when the command has ended.
	ended chan struct{}
}

// attach connects to the streams of a command, which makes it start. The control stream comes first, so that there is
// no command that cannot be killed.
func (d *Daemon) attach(ctx context.Context, operation *api.Operation) (*streams, error) {
	fds, ok := operation.Metadata["fds"].(map[string]any)
	if !ok {
		return nil, errors.New("the daemon offered no streams for the command")
	}
	s := &streams{ended: make(chan struct{})}
	for _, name := range []string{api.SecretNameControl, "0", "1", "2"} {
		secret, ok := fds[name].(string)
		if !ok {
			continue
		}
		conn, err := d.websocket(ctx, api.NewURL().Path("1.0", "operations", operation.ID, "websocket").WithQuery("secret", secret))
		if err != nil {
			s.kill() // it may have started, if it was the last stream that failed on our side only
			s.close()
			return nil, err
		}
		s.conns = append(s.conns, conn)
		switch name {
		case "0":
			// No input: an end of file, as an empty text message.
			_ = conn.WriteMessage(websocket.TextMessage, nil)
		case "1":
			s.readers.Go(func() { s.stdout.readFrom(conn) })
		case "2":
			s.readers.Go(func() { s.stderr.readFrom(conn) })
		default:
			s.control = conn
			go func() {
				defer close(s.ended)
				_, _, _ = conn.ReadMessage() // there is none; it answers the daemon's pings
			}()
		}
	}
	return s, nil
}

// websocket connects to a stream of the daemon. The official client's own call takes no context.
func (d *Daemon) websocket(ctx context.Context, at *api.URL) (*websocket.Conn, error) {
	transport, err := transportOf(d.server)
	if err != nil {
		return nil, err
	}
	base, err := d.server.GetConnectionInfo()
	if err != nil {
		return nil, err
	}
	connect := transport.DialContext
	if connect == nil {
		connect = new(net.Dialer).DialContext
	}
	dialer := websocket.Dialer{TLSClientConfig: transport.TLSClientConfig, Proxy: transport.Proxy}
	// The library minds the context while it connects, but not while it waits for the daemon's answer after that.
	outer, stop := ctx, func() bool { return true }
	dialer.NetDialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := connect(ctx, network, address)
		if err == nil {
			stop = context.AfterFunc(outer, func() { _ = conn.Close() })
		}
		return conn, err
	}
	conn, reply, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(base.URL, "http")+at.String(), http.Header{"User-Agent": {d.userAgent}})
	if !stop() {
		err = ctx.Err()
	}
	if reply != nil {
		defer func() { _ = reply.Body.Close() }()
	}
	if errors.Is(err, websocket.ErrBadHandshake) {
		_, err = readResponse(reply)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// kill sends the command SIGKILL.
func (s *streams) kill() {
	if s.control == nil {
		return
	}
	message, err := json.Marshal(api.InstanceExecControl{Command: "signal", Signal: int(syscall.SIGKILL)})
	if err == nil {
		_ = s.control.WriteMessage(websocket.TextMessage, message) // the command may be gone already
	}
}

// patience gives the context for the wait until the daemon tells how a command ended. It lasts for a while after the
// caller's context, as the command is killed then, and for a while after the command, which the daemon needs to pass on
// the rest of the output.
func (s *streams) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer cancel()
		grace, interrupt := outputGrace, ctx.Done()
		select {
		case <-s.ended:
		case <-ctx.Done():
			grace, interrupt = killGrace, s.ended
		case <-wait.Done():
			return
		}
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-interrupt:
		case <-wait.Done():
		}
	}()
	return wait, cancel
}

// drain waits for the rest of the output: the daemon ends each stream, but a background child may hold one open.
func (s *streams) drain() {
	done := make(chan struct{})
	go func() { s.readers.Wait(); close(done) }()
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// lastSeen says what became of a command that was to be killed, and what it said last.
func (s *streams) lastSeen(ended bool) string {
	select {
	case <-s.ended:
		ended = true
	default:
	}
	seen := "the command was killed"
	if !ended {
		seen = fmt.Sprintf("the command was told to die, and had not done so %s later", killGrace)
	}
	for _, output := range []*tail{&s.stderr, &s.stdout} {
		if lines := strings.Split(strings.TrimSpace(string(output.Bytes())), "\n"); lines[len(lines)-1] != "" {
			return fmt.Sprintf("%s; it had printed %q", seen, lines[len(lines)-1])
		}
	}
	return seen
}

func (s *streams) close() {
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (t *tail) readFrom(conn *websocket.Conn) {
	for {
		kind, data, err := conn.ReadMessage()
		if err != nil || kind == websocket.TextMessage {
			return // the daemon ends a stream with a text message
		}
		t.mu.Lock()
		t.buffer.Write(data)
		t.buffer.Next(max(0, t.buffer.Len()-outputLimit))
		t.mu.Unlock()
	}
}

// Bytes is what has been kept so far.
func (t *tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.buffer.Bytes())
}
