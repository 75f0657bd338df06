// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// path builds the path of an API object in the daemon's project and on its member, each part escaped.
func (d *Daemon) path(parts ...string) *api.URL {
	return api.NewURL().Path(append([]string{"1.0"}, parts...)...).Project(d.project).Target(d.target)
}

// change sends a request that changes something and waits for the outcome, whether this daemon answers at once or
// with an operation (newer daemons do so for pools, networks and profiles, where the official client would return
// before it is done and lose the error). It returns the finished operation, or nil where there was none.
//
// While the daemon is busy with an operation of its own on the machine, it is asked again.
//
// When the context ends first the error is a [TimeoutError] and the operation goes on: LXD's cannot be cancelled.
// When contact is lost after the request was sent it is an [ErrUnknownOutcome].
func (d *Daemon) change(ctx context.Context, ask, method string, at *api.URL, body any, etag string) (*api.Operation, error) {
	started := time.Now()
	var operation *api.Operation
	err := Poll(ctx, "the daemon is ready to "+ask, func(ctx context.Context) (bool, string, error) {
		var err error
		operation, err = d.changeOnce(ctx, ask, method, at, body, etag)
		if instanceBusy(err) {
			return false, err.Error(), nil
		}
		return true, "", err
	})
	if timeout, ok := err.(*TimeoutError); ok { //nolint:errorlint // only the one that Poll made, not one from within
		err = &Error{Ask: ask, Kind: ErrBusy, Err: timeout}
	}
	d.log.DebugContext(ctx, "daemon call", "ask", ask, "project", d.project, "duration_ms", time.Since(started).Milliseconds(), "error", err)
	return operation, err
}

// instanceBusy says that the daemon did nothing because an operation of its own has hold of the machine. That ends: a
// machine that failed to start, for one, is cleaned up for some seconds after the start was answered.
func instanceBusy(err error) bool {
	return errors.Is(err, ErrBusy) && strings.Contains(err.Error(), "is busy running")
}

func (d *Daemon) changeOnce(ctx context.Context, ask, method string, at *api.URL, body any, etag string) (*api.Operation, error) {
	response, _, err := d.client(ctx).RawQuery(method, at.String(), body, etag)
	if err != nil {
		return nil, lostContact(ask, err)
	}
	return d.outcome(ctx, ask, response)
}

// outcome waits for what a response started, if it started anything.
func (d *Daemon) outcome(ctx context.Context, ask string, response *api.Response) (*api.Operation, error) {
	if response.Type != api.AsyncResponse {
		return nil, nil //nolint:nilnil // a daemon that answered at once has no operation, and that is no error
	}
	operation, err := response.MetadataAsOperation()
	if err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: err}
	}
	return d.await(ctx, ask, operation)
}

// await waits until an operation has ended, and turns a failed one into an error.
func (d *Daemon) await(ctx context.Context, ask string, operation *api.Operation) (*api.Operation, error) {
	started := time.Now()
	wait := api.NewURL().Path("1.0", "operations", operation.ID, "wait").WithQuery("timeout", "-1")
	response, _, err := d.client(ctx).RawQuery(http.MethodGet, wait.String(), nil, "")
	if cause := ctx.Err(); cause != nil {
		return nil, &Error{Ask: ask, Kind: timeoutKind(cause), Err: &TimeoutError{
			Condition: fmt.Sprintf("the daemon's operation %s (%s) has ended", operation.ID, operation.Description),
			LastSeen:  "the operation was still running, and goes on without us",
			Waited:    time.Since(started), Cause: cause,
		}}
	}
	if err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: fmt.Errorf("contact with the daemon was lost: %w", err)}
	}
	ended, err := response.MetadataAsOperation()
	if err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: err}
	}
	if ended.Err != "" || ended.StatusCode == api.Failure {
		return ended, classifyOperation(ask, ended.Err)
	}
	return ended, nil
}

// lostContact tells a request that never arrived from one whose outcome nobody knows.
func lostContact(ask string, err error) error {
	classified := classify(ask, err)
	if errors.Is(classified, ErrUnreachable) && !neverSent(err) {
		return &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: fmt.Errorf("contact with the daemon was lost: %w", err)}
	}
	return classified
}

// neverSent says that a request failed before it could reach the daemon.
func neverSent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return ok && dial.Op == "dial"
}

// upload sends a body that is not JSON, with headers, and waits for the outcome. The official client's own upload
// calls take no context.
func (d *Daemon) upload(ctx context.Context, ask string, at *api.URL, header http.Header, body io.Reader) (*api.Operation, error) {
	base, err := d.baseURL()
	if err != nil {
		return nil, classify(ask, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+at.String(), body)
	if err != nil {
		return nil, classify(ask, err)
	}
	request.Header = header
	reply, err := d.server.DoHTTP(request)
	if err != nil {
		return nil, lostContact(ask, err)
	}
	defer func() { _ = reply.Body.Close() }()

	response := api.Response{}
	if err := json.NewDecoder(reply.Body).Decode(&response); err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: fmt.Errorf("%s: %w", reply.Status, err)}
	}
	if response.Type == api.ErrorResponse {
		return nil, classify(ask, api.NewStatusError(reply.StatusCode, response.Error))
	}
	return d.outcome(ctx, ask, &response)
}

// baseURL is the scheme and host that requests go to, as the official client has it.
func (d *Daemon) baseURL() (string, error) {
	info, err := d.server.GetConnectionInfo()
	if err != nil {
		return "", err
	}
	return info.URL, nil
}
