// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"
)

// operation is something that goes on after its request was answered.
type operation struct {
	api.Operation
	project string
	ended   chan struct{}
	command *command // of an operation that runs a command
}

// start answers with an operation that does the work. The work runs under the lock; it can put metadata on the operation.
func (s *Server) start(project, description string, resources map[string][]string, work func(*operation) error) answer {
	op := s.newOperation(project, description, resources)
	s.run(op, work)
	return answer{op: op}
}

func (s *Server) newOperation(project, description string, resources map[string][]string) *operation {
	now := time.Now().UTC()
	op := &operation{project: project, ended: make(chan struct{}), Operation: api.Operation{
		ID: uuid.NewString(), Class: api.OperationClassTask, Description: description, CreatedAt: now, UpdatedAt: now,
		Status: api.Running.String(), StatusCode: api.Running, Resources: resources, Location: "none",
	}}
	s.operations[op.ID] = op
	s.announce(op)
	return op
}

func (s *Server) run(op *operation, work func(*operation) error) {
	s.tasks.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		err := work(op)
		op.UpdatedAt = time.Now().UTC()
		op.StatusCode = api.Success
		if err != nil {
			// A failed operation has the text of the error only: its HTTP status is lost.
			op.StatusCode, op.Err = api.Failure, err.Error()
		}
		op.Status = op.StatusCode.String()
		close(op.ended)
		s.announce(op)
		time.AfterFunc(s.settings.memory, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.operations, op.ID)
		})
	})
}

// change does the work of a request at once, or in an operation if the daemon is a newer one.
func (s *Server) change(description string, status int, work func() error) answer {
	if s.settings.async {
		return s.start("default", description, nil, func(*operation) error { return work() })
	}
	a := done(work())
	a.status = status
	return a
}

func (s *Server) operationsGet(r *http.Request) answer {
	lists := map[string][]any{}
	for _, op := range s.operations {
		if op.project != projectOf(r) && r.URL.Query().Get("all-projects") != "true" {
			continue
		}
		var entry any = "/1.0/operations/" + op.ID
		if recursive(r, "1") {
			entry = op.Operation
		}
		status := strings.ToLower(op.Status)
		lists[status] = append(lists[status], entry)
	}
	return value(lists)
}

func (s *Server) findOperation(id string) (*operation, error) {
	if op, ok := s.operations[id]; ok {
		return op, nil
	}
	return nil, api.StatusErrorf(http.StatusNotFound, "Operation not found")
}

func (s *Server) operationGet(r *http.Request) answer {
	op, err := s.findOperation(r.PathValue("id"))
	if err != nil {
		return failed(err)
	}
	return value(op.Operation)
}

func (s *Server) operationDelete(r *http.Request) answer {
	op, err := s.findOperation(r.PathValue("id"))
	if err != nil {
		return failed(err)
	}
	if op.StatusCode.IsFinal() {
		return badRequest("Only running operations can be cancelled")
	}
	return badRequest("This operation can't be cancelled")
}

// operationWait answers when the operation has ended, or after the timeout with the operation as it is then.
func (s *Server) operationWait(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	op, err := s.findOperation(r.PathValue("id"))
	s.mu.Unlock()
	if err != nil {
		failed(err).send(w)
		return
	}
	var expired <-chan time.Time
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeout")); err == nil && seconds >= 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-op.ended:
	case <-expired:
	case <-r.Context().Done():
		return
	}
	s.mu.Lock()
	send := value(op.Operation).render()
	if s.settings.waitErrors && op.Err != "" {
		send = failed(api.NewStatusError(http.StatusOK, op.Err)).render()
	}
	s.mu.Unlock()
	send(w)
}
