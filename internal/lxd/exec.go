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

// outputLimit is how many bytes of each stream are kept: the last ones, where the reason of a failure is.
const outputLimit = 64 << 10

// Command is something to run in a machine.
type Command struct {
	// Args is the program and its arguments; no shell is involved.
	Args []string
	// Environment is added to the machine's own.
	Environment map[string]string
	// Directory is where it runs; empty means root's home.
	Directory string
	// User and Group run it; 0 is root.
	User, Group uint32
}

// CommandResult is how a command ended.
type CommandResult struct {
	// ExitCode is what it returned; 127 when it was not found, 137 when it was killed.
	ExitCode int
	// Stdout and Stderr hold the end of what it printed, at most 64 KiB each.
	Stdout, Stderr []byte
}

// Exec runs a command in an instance and returns how it ended. A command that ran and failed is no error. When the
// context ends first, the command is killed; processes that it started are not.
func (d *Daemon) Exec(ctx context.Context, instance string, command Command) (*CommandResult, error) {
	ask, started := fmt.Sprintf("run %q in machine %q", command.Args, instance), time.Now()
	result, err := d.exec(ctx, ask, instance, command)
	d.logCall(ctx, ask, started, err)
	return result, err
}

func (d *Daemon) exec(ctx context.Context, ask, instance string, command Command) (*CommandResult, error) {
	var request outgoing
	response, _, err := d.client(request.watch(ctx)).RawQuery(http.MethodPost, d.path("instances", instance, "exec").String(), api.InstanceExecPost{
		Command: command.Args, Environment: command.Environment, Cwd: command.Directory, User: command.User, Group: command.Group,
		WaitForWS: true,
	}, "")
	if err != nil {
		return nil, request.failure(ctx, ask, err)
	}
	operation, err := response.MetadataAsOperation()
	if err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: err}
	}
	streams, err := d.attach(ctx, operation)
	if err != nil {
		return nil, request.failure(ctx, ask, err)
	}
	defer streams.close()

	stop := context.AfterFunc(ctx, streams.kill)
	defer stop()
	// The command's end is waited for beyond the context, for as long as a killed command may take.
	grace, cancel := withGrace(ctx, killGrace)
	defer cancel()
	ended, err := d.await(grace, ask, operation)
	if cause := ctx.Err(); cause != nil {
		return nil, &Error{Ask: ask, Kind: timeoutKind(cause), Err: &TimeoutError{
			Condition: "the command has ended", LastSeen: streams.lastSeen(ended != nil), Waited: time.Since(request.started), Cause: cause,
		}}
	}
	// A command that is not there gives a failed operation and, beside it, a plain exit code.
	code, ok := exitCode(ended)
	if err != nil && !ok {
		return nil, err
	}
	if !ok {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: errors.New("the daemon did not tell the exit code")}
	}
	streams.drain()
	result := &CommandResult{ExitCode: code, Stdout: streams.stdout.Bytes(), Stderr: streams.stderr.Bytes()}
	if err != nil && len(result.Stderr) == 0 {
		result.Stderr = []byte(err.Error())
	}
	return result, nil
}

func exitCode(operation *api.Operation) (int, bool) {
	if operation == nil {
		return 0, false
	}
	code, ok := operation.Metadata["return"].(float64)
	return int(code), ok && code >= 0
}

// withGrace is a context that ends some time after its parent.
func withGrace(parent context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(ctx, func() { timer.Stop() })
	})
	return ctx, func() { stop(); cancel() }
}

// streams are the websockets of a running command.
type streams struct {
	control        *websocket.Conn
	conns          []*websocket.Conn
	readers        sync.WaitGroup
	stdout, stderr tail
}

// attach connects to the streams of a command, which makes it start. The control stream comes first, so that there is
// no command that cannot be killed.
func (d *Daemon) attach(ctx context.Context, operation *api.Operation) (*streams, error) {
	fds, ok := operation.Metadata["fds"].(map[string]any)
	if !ok {
		return nil, errors.New("the daemon offered no streams for the command")
	}
	s := &streams{}
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
			go func() { _, _, _ = conn.ReadMessage() }() // answers the daemon's pings until it is closed
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
	stop := func() bool { return true }
	dialer.NetDialContext = func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := connect(dialing, network, address)
		if err == nil {
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
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
	return conn, err
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
