// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/gorilla/websocket"
)

// eventBacklog is how many events may wait for a client that is slow.
const eventBacklog = 1000

// listener is a client that follows the operations of a project, or of all if that is empty.
type listener struct {
	project string
	events  chan api.Event
}

// announce tells the listeners how an operation is now. The caller holds the lock.
func (s *Server) announce(op *operation) {
	data, err := json.Marshal(op.Operation)
	if err != nil {
		panic(err) // The API's types can all be encoded.
	}
	event := api.Event{Type: api.EventTypeOperation, Timestamp: time.Now().UTC(), Metadata: data, Location: "none", Project: op.project}
	for l := range s.listeners {
		if l.project == "" || l.project == op.project {
			select {
			case l.events <- event:
			default: // LXD drops a client that does not read, too.
			}
		}
	}
}

// eventsGet sends events of operations, the only ones that there are, until either side ends.
func (s *Server) eventsGet(w http.ResponseWriter, r *http.Request) {
	l := &listener{project: projectOf(r), events: make(chan api.Event, eventBacklog)}
	if r.URL.Query().Get("all-projects") == "true" {
		l.project = ""
	}
	// What starts after the client has its connection must not be missed.
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()

	conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered.
	}
	defer func() { _ = conn.Close() }()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				return
			}
		}
	}()
	for {
		select {
		case e := <-l.events:
			if err := conn.WriteJSON(e); err != nil {
				return
			}
		case <-gone:
			return
		case <-s.ended:
			return
		}
	}
}
