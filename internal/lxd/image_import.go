// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/canonical/lxd/shared/api"
)

// importGrace is how long the daemon may take to end the making of an image that was called off.
const importGrace = 10 * time.Second

// ImportImage makes the daemon fetch an image, or make one of an instance, as the source says, and returns its
// fingerprint.
//
// When the context ends first, a download is called off, and the end of that is waited for. The making of an image of an
// instance cannot be called off; it fails when the instance is deleted. A fingerprint beside an error is that of an
// image that was made all the same.
func (d *Daemon) ImportImage(ctx context.Context, image api.ImagesPost) (string, error) {
	const ask = "import image"
	body, err := json.Marshal(image)
	if err != nil {
		return "", &Error{Ask: ask, Err: err}
	}
	header := http.Header{"Content-Type": {"application/json"}}
	operation, err := d.upload(ctx, ask, d.path("images"), header, bytes.NewReader(body))
	return d.imageMade(ctx, ask, operation, err)
}

// imageMade gives the fingerprint of the image that an operation made. One that was not waited for is called off first.
func (d *Daemon) imageMade(ctx context.Context, ask string, operation *api.Operation, err error) (string, error) {
	if cause := ctx.Err(); operation != nil && cause != nil {
		operation = d.callOff(ctx, ask, operation)
		if operation != nil && operation.StatusCode != api.Success {
			return "", &Error{Ask: ask, Kind: ErrCalledOff, Err: fmt.Errorf("the daemon has given it up: %w", cause)}
		}
	}
	if operation == nil || operation.StatusCode != api.Success {
		if err == nil {
			err = &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: errors.New("the daemon answered without an operation")}
		}
		return "", err
	}
	fingerprint, ok := operation.Metadata["fingerprint"].(string)
	if !ok && err == nil {
		err = &Error{Ask: ask, Kind: ErrUnknownOutcome, Err: errors.New("the daemon did not tell the fingerprint")}
	}
	return fingerprint, err
}

// callOff cancels an operation, where the daemon can, and waits for its end. It gives the operation as it ended; nil when
// that did not come to be known.
func (d *Daemon) callOff(ctx context.Context, ask string, operation *api.Operation) *api.Operation {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), importGrace)
	defer cancel()
	// Most operations cannot be cancelled, and a download only once it has begun; the daemon says so.
	_, _, _ = d.client(ctx).RawQuery(http.MethodDelete, api.NewURL().Path("1.0", "operations", operation.ID).String(), nil, "")
	ended, err := d.await(ctx, "call off: "+ask, operation)
	if err != nil && (ended == nil || !ended.StatusCode.IsFinal()) {
		return nil
	}
	return ended
}
