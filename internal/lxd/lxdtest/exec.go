// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"context"
	"net/http"
	"syscall"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
)

const (
	codeNotFound = 127
	codeKilled   = 128 + int(syscall.SIGKILL)

	// attachTimeout is how long LXD waits for a client to connect to the streams.
	attachTimeout = 5 * time.Second
)

// command is one that runs in an instance, with a websocket for each of its streams.
type command struct {
	secrets  map[string]string // stream by secret
	conns    map[string]*websocket.Conn
	attached chan struct{} // closed when there is a connection for each
}

func (s *Server) execPost(r *http.Request) answer {
	i, err := s.findInstance(r)
	if err != nil {
		return failed(err)
	}
	e := Exec{Project: i.Project, Instance: i.Name}
	if err := decode(r, &e.InstanceExecPost); err != nil {
		return failed(err)
	}
	switch {
	case i.StatusCode == api.Frozen:
		return badRequest("Instance is frozen")
	case !i.running():
		return badRequest("Instance is not running")
	case e.Interactive || e.RecordOutput:
		return failedf(http.StatusNotImplemented, "interactive and recorded commands are not known to the daemon in memory")
	}
	if !e.WaitForWS {
		return s.start(i.Project, "Executing command", i.resources(), func(op *operation) error {
			ctx, cancel := s.context()
			defer cancel()
			_, err := s.runCommand(ctx, op, e)
			return err
		})
	}
	op := s.newOperation(i.Project, "Executing command", i.resources())
	op.Class = api.OperationClassWebsocket
	op.command = &command{secrets: map[string]string{}, conns: map[string]*websocket.Conn{}, attached: make(chan struct{})}
	fds := map[string]any{}
	for _, stream := range []string{"0", "1", "2", api.SecretNameControl} {
		secret := uuid.NewString()
		fds[stream] = secret
		op.command.secrets[secret] = stream
	}
	op.Metadata = map[string]any{"command": e.Command, "environment": e.Environment, "fds": fds, "interactive": false}
	s.run(op, func(op *operation) error { return s.runAttached(op, e) })
	return answer{op: op}
}

// context returns one that ends with the server.
func (s *Server) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// runCommand lets the test decide how a command ends. The caller holds the lock, which is given up meanwhile.
func (s *Server) runCommand(ctx context.Context, op *operation, e Exec) (ExecResult, error) {
	run := s.settings.exec
	s.mu.Unlock()
	result := run(ctx, e)
	s.mu.Lock()
	if ctx.Err() != nil {
		result.Code = codeKilled
	}
	if result.Err != "" {
		return result, internalf("%s", result.Err)
	}
	op.Metadata = map[string]any{"return": result.Code}
	if result.Code == codeNotFound {
		return result, internalf("Command not found")
	}
	return result, nil
}

// runAttached runs a command whose streams a client connects to.
func (s *Server) runAttached(op *operation, e Exec) error {
	c := op.command
	s.mu.Unlock()
	timer := time.NewTimer(attachTimeout)
	defer timer.Stop()
	timedOut := false
	select {
	case <-c.attached:
	case <-timer.C:
		timedOut = true
	case <-s.ended:
		timedOut = true
	}
	s.mu.Lock()
	if timedOut {
		return internalf("Timed out waiting for websockets to connect")
	}
	ctx, cancel := s.context()
	defer cancel()
	go c.follow(cancel)
	result, err := s.runCommand(ctx, op, e)
	s.mu.Unlock()
	defer s.mu.Lock()
	c.finish(result)
	return err
}

// follow waits for the client to kill the command.
func (c *command) follow(kill func()) {
	for {
		var m api.InstanceExecControl
		if err := c.conns[api.SecretNameControl].ReadJSON(&m); err != nil {
			return
		}
		if m.Command == "signal" && m.Signal == int(syscall.SIGKILL) {
			kill()
		}
	}
}

// finish sends the output and ends the streams, as LXD does: with a text message, then a close.
func (c *command) finish(result ExecResult) {
	for stream, output := range map[string]string{"1": result.Stdout, "2": result.Stderr} {
		// A client that has gone does not want it.
		_ = c.conns[stream].WriteMessage(websocket.BinaryMessage, []byte(output))
		_ = c.conns[stream].WriteMessage(websocket.TextMessage, nil)
	}
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func (s *Server) operationWebsocket(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	op, err := s.findOperation(r.PathValue("id"))
	s.mu.Unlock()
	if err != nil {
		failed(err).send(w)
		return
	}
	stream, ok := "", false
	if op.command != nil {
		stream, ok = op.command.secrets[r.URL.Query().Get("secret")]
	}
	if !ok {
		failedf(http.StatusForbidden, "websocket: bad secret").send(w)
		return
	}
	conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	op.command.conns[stream] = conn
	if len(op.command.conns) == len(op.command.secrets) {
		close(op.command.attached)
	}
}
