// SPDX-License-Identifier: MPL-2.0

package lxdtest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/canonical/lxd/shared/api"
)

// answer is what a handler has to say: an error, an operation, or else a value.
type answer struct {
	err    error
	op     *operation
	status int // 200 if zero
	value  any
	etag   string
	write  func(http.ResponseWriter) // replaces all of that, for what is not JSON
}

func value(v any) answer { return answer{value: v} }

func failed(err error) answer { return answer{err: err} }

// failedf is an error with an HTTP status.
func failedf(status int, format string, args ...any) answer {
	return failed(api.StatusErrorf(status, format, args...))
}

// internalf is an error in LXD's own words that it gives status 500, as it does many that are the user's.
func internalf(format string, args ...any) error {
	return api.StatusErrorf(http.StatusInternalServerError, format, args...)
}

func badRequest(format string, args ...any) answer {
	return failedf(http.StatusBadRequest, format, args...)
}

// done is the answer to a change that either failed or has nothing to say.
func done(err error) answer {
	if err != nil {
		return failed(err)
	}
	return value(struct{}{})
}

// tagged is a value with the ETag of what in it can be changed.
func tagged(v any, writable ...any) answer {
	return answer{value: v, etag: etagOf(writable...)}
}

// etagOf returns the hash of an object, as in ETag and If-Match.
func etagOf(writable ...any) string {
	data, err := json.Marshal(writable)
	if err != nil {
		panic(err) // The API's types can all be encoded.
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// checkETag fails if the request was made for another state of the object.
func checkETag(r *http.Request, writable ...any) error {
	want := strings.Trim(r.Header.Get("If-Match"), `"`)
	if is := etagOf(writable...); want != "" && want != is {
		return api.StatusErrorf(http.StatusPreconditionFailed, "ETag doesn't match: %s vs %s", is, want)
	}
	return nil
}

// send answers for a handler that does not hold the lock.
func (a answer) send(w http.ResponseWriter) { a.render()(w) }

// render fixes the answer, so that it can be sent when the objects in it may change again.
func (a answer) render() func(http.ResponseWriter) {
	if a.write != nil {
		return a.write
	}
	status, body := a.body()
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // The API's types can all be encoded.
	}
	return func(w http.ResponseWriter) {
		if body.Operation != "" {
			w.Header().Set("Location", body.Operation)
		}
		if a.etag != "" {
			w.Header().Set("ETag", `"`+a.etag+`"`)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(data) // A client that has gone does not want it.
	}
}

func (a answer) body() (status int, body api.ResponseRaw) {
	switch {
	case a.err != nil:
		status, ok := api.StatusErrorMatch(a.err)
		if !ok {
			status = http.StatusInternalServerError
		}
		return status, api.ResponseRaw{Type: api.ErrorResponse, Code: status, Error: a.err.Error()}
	case a.op != nil:
		return http.StatusAccepted, api.ResponseRaw{
			Type: api.AsyncResponse, Status: api.OperationCreated.String(), StatusCode: int(api.OperationCreated),
			Operation: "/1.0/operations/" + a.op.ID, Metadata: a.op.Operation,
		}
	default:
		return cmp.Or(a.status, http.StatusOK), api.ResponseRaw{
			Type: api.SyncResponse, Status: "Success", StatusCode: http.StatusOK, Metadata: a.value,
		}
	}
}

// decode reads the JSON body of a request.
func decode(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		return api.StatusErrorf(http.StatusBadRequest, "%s", err.Error())
	}
	return nil
}

// objectPath returns the API path of an object, such as "/1.0/instances/a", with the project where it is not the default one.
func objectPath(project string, parts ...string) string {
	u := api.NewURL().Path(append([]string{"1.0"}, parts...)...)
	if project != "default" {
		u = u.Project(project)
	}
	return u.String()
}

// recursive tells whether a list is to hold whole objects, and full ones at level 2.
func recursive(r *http.Request, level string) bool {
	return r.URL.Query().Get("recursion") >= level
}

// projectOf returns the name of the project that a request is about.
func projectOf(r *http.Request) string {
	if name := r.URL.Query().Get("project"); name != "" {
		return name
	}
	return "default"
}

// newer tells whether the daemon's version is at least the given one, such as 6.6.
func (s *settings) newer(major, minor int) bool {
	var isMajor, isMinor int
	if _, err := fmt.Sscanf(s.environment.ServerVersion, "%d.%d", &isMajor, &isMinor); err != nil {
		panic(errors.Join(errors.New("the server's version has no major and minor number"), err))
	}
	return isMajor > major || isMajor == major && isMinor >= minor
}
