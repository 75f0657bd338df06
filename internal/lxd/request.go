// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// path builds the path of an API object in the daemon's project and on its member, each part escaped.
func (d *Daemon) path(parts ...string) *api.URL {
	return api.NewURL().Path(append([]string{"1.0"}, parts...)...).Project(d.project).Target(d.target)
}

// change sends a request that changes something and waits for the outcome, whether this daemon answers at once or
// with an operation (newer daemons do so for pools, networks and profiles, where the official client would return
// before it is done and lose the error).
//
// While the daemon is busy with an operation of its own on the machine, it is asked again.
//
// When the context ends first the error is a [TimeoutError] and the operation goes on: LXD's cannot be cancelled.
// When contact is lost after the request was sent it is an [ErrUnknownOutcome].
func (d *Daemon) change(ctx context.Context, ask, method string, at *api.URL, body any, etag string) error {
	defer d.listings.writing()()
	started := time.Now()
	err := Poll(ctx, "the daemon is ready to "+ask, func(ctx context.Context) (bool, string, error) {
		err := d.changeOnce(ctx, ask, method, at, body, etag)
		if instanceBusy(err) {
			return false, err.Error(), nil
		}
		return true, "", err
	})
	if timeout, ok := err.(*TimeoutError); ok { //nolint:errorlint // only the one that Poll made, not one from within
		err = &Error{Ask: ask, Kind: ErrBusy, Err: timeout}
	}
	d.logCall(ctx, ask, started, err)
	return err
}

// logCall writes the one line for a call.
func (d *Daemon) logCall(ctx context.Context, ask string, started time.Time, err error) {
	d.log.DebugContext(ctx, "daemon call", "ask", ask, "project", d.project, "duration_ms", time.Since(started).Milliseconds(), "error", err)
}

// instanceBusy says that the daemon did nothing because an operation of its own has hold of the machine. That ends: a
// machine that failed to start, for one, is cleaned up for some seconds after the start was answered.
func instanceBusy(err error) bool {
	return errors.Is(err, ErrBusy) && strings.Contains(err.Error(), "is busy running")
}

func (d *Daemon) changeOnce(ctx context.Context, ask, method string, at *api.URL, body any, etag string) error {
	var request outgoing
	response, _, err := d.client(request.watch(ctx)).RawQuery(method, at.String(), body, etag)
	if err != nil {
		return request.failure(ctx, ask, err)
	}
	_, err = d.outcome(ctx, ask, response)
	return err
}

// outcome waits for what a response started, if it started anything, and gives the operation as it ended or, beside an
// error, as it was when it was last seen.
func (d *Daemon) outcome(ctx context.Context, ask string, response *api.Response) (*api.Operation, error) {
	if response.Type != api.AsyncResponse {
		return nil, nil //nolint:nilnil // a daemon that answered at once has no operation, and that is no error
	}
	operation, err := response.MetadataAsOperation()
	if err != nil {
		return nil, &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: err}
	}
	ended, err := d.await(ctx, ask, operation)
	if ended == nil {
		return operation, err
	}
	return ended, err
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
	unknown := func(err error) error { return &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: err} }
	if api.StatusErrorCheck(err, http.StatusNotFound) {
		return nil, unknown(fmt.Errorf("the daemon does not know its operation %s any more: %w", operation.ID, err))
	}
	var ended *api.Operation
	switch failed := failedOperation(err); {
	case failed:
		if ended = d.endedOperation(ctx, operation.ID); ended == nil {
			return nil, classifyOperation(ask, err.Error())
		}
	case err != nil:
		return nil, unknown(lost(err))
	default:
		ended, err = response.MetadataAsOperation()
	}
	switch {
	case ended == nil:
		return nil, unknown(err)
	case !ended.StatusCode.IsFinal():
		return nil, unknown(fmt.Errorf("the daemon gave up waiting for its operation %s, which is %s", operation.ID, ended.Status))
	case ended.StatusCode != api.Success:
		return ended, classifyOperation(ask, cmp.Or(ended.Err, ended.Status))
	default:
		return ended, nil
	}
}

// failedOperation says whether the answer to a wait is the failure of what was waited for. Newer daemons
// give the error in the place of the operation, after they have sent the status of a success.
func failedOperation(err error) bool { return api.StatusErrorCheck(err, http.StatusOK) }

// endedOperation reads an operation that has ended, for what it says beside its error. It is nil when the daemon has
// forgotten it, as it does after some seconds.
func (d *Daemon) endedOperation(ctx context.Context, id string) *api.Operation {
	operation, _, err := d.client(ctx).GetOperation(id)
	if err != nil || !operation.StatusCode.IsFinal() {
		return nil
	}
	return operation
}

// outgoing is a request on its way to the daemon.
type outgoing struct {
	started time.Time
	// sent says that there was a connection to write the request to.
	sent atomic.Bool
}

// watch gives the context to make the request with.
func (o *outgoing) watch(ctx context.Context) context.Context {
	o.started = time.Now()
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { o.sent.Store(true) }})
}

// failure gives a failed request its kind. One that got no answer never arrived, or nobody knows what came of it.
func (o *outgoing) failure(ctx context.Context, ask string, err error) error {
	_, answered := api.StatusErrorMatch(err)
	if cause := ctx.Err(); cause != nil && o.sent.Load() && !answered {
		return &Error{Ask: ask, Kind: timeoutKind(cause), Err: &TimeoutError{
			Condition: "the daemon has answered", LastSeen: "the request was sent, and the daemon may go on with it",
			Waited: time.Since(o.started), Cause: cause,
		}}
	}
	classified := classify(ask, err)
	if errors.Is(classified, ErrUnreachable) && o.sent.Load() {
		return &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: lost(err)}
	}
	return classified
}

// setHeader sets one of the headers that the daemon reads beside a body: LXD and Incus each know their own only.
func setHeader(header http.Header, name, value string) {
	header.Set("X-LXD-"+name, value)
	header.Set("X-Incus-"+name, value)
}

func lost(err error) error { return fmt.Errorf("contact with the daemon was lost: %w", err) }

// upload sends a body that is not JSON, with headers, and waits for the outcome. The official client's own upload
// calls take no context.
func (d *Daemon) upload(ctx context.Context, ask string, at *api.URL, header http.Header, body io.Reader) (*api.Operation, error) {
	defer d.listings.writing()()
	started := time.Now()
	operation, err := d.uploadOnce(ctx, ask, at, header, body)
	d.logCall(ctx, ask, started, err)
	return operation, err
}

func (d *Daemon) uploadOnce(ctx context.Context, ask string, at *api.URL, header http.Header, body io.Reader) (*api.Operation, error) {
	// The scheme and host that requests go to, as the official client has it.
	base, err := d.server.GetConnectionInfo()
	if err != nil {
		return nil, classify(ask, err)
	}
	var way outgoing
	request, err := http.NewRequestWithContext(way.watch(ctx), http.MethodPost, base.URL+at.String(), body)
	if err != nil {
		return nil, classify(ask, err)
	}
	request.Header = header
	reply, err := d.server.DoHTTP(request)
	if err != nil {
		return nil, way.failure(ctx, ask, err)
	}
	defer func() { _ = reply.Body.Close() }()

	response, err := readResponse(reply)
	if err != nil {
		return nil, way.failure(ctx, ask, err)
	}
	return d.outcome(ctx, ask, response)
}

// readResponse reads what the daemon said to a request that did not go through the official client.
func readResponse(reply *http.Response) (*api.Response, error) {
	response := &api.Response{}
	if err := json.NewDecoder(reply.Body).Decode(response); err != nil {
		return nil, fmt.Errorf("%s: %w", reply.Status, err)
	}
	if response.Type == api.ErrorResponse {
		return nil, api.NewStatusError(reply.StatusCode, response.Error)
	}
	return response, nil
}
