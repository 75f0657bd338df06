// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ImageRemote is an image on a server.
type ImageRemote struct {
	Server lxd.ImageServer
	// Fingerprint is the image's, in full; empty takes the one that Alias points to.
	Fingerprint string
	Alias       string
	// Type is the type of instances that the image of the alias is for.
	Type string
}

// FindImage gives the fingerprint of an image on a server: the one that was given, or the one that the alias points to
// now. The error is [lxd.ErrNotFound] when the server has no such alias, and [lxd.ErrUnreachable] when it does not answer.
func (l *Lab) FindImage(ctx context.Context, remote ImageRemote) (string, error) {
	if remote.Fingerprint != "" {
		return remote.Fingerprint, nil
	}
	fingerprint, err := l.daemon.FindImage(ctx, remote.Server, remote.Alias, remote.Type)
	switch {
	case errors.Is(err, lxd.ErrNotFound):
		return "", &ArgumentError{Argument: "remote.alias", Err: err}
	case err != nil:
		return "", &ArgumentError{Argument: "remote.server", Err: err}
	default:
		return fingerprint, nil
	}
}

// fetch makes the daemon download an image, marked with an id.
func (l *Lab) fetch(ctx context.Context, remote ImageRemote, fingerprint, id string) (string, error) {
	made, err := l.daemon.FetchImage(ctx, remote.Server, fingerprint, map[string]string{keyID: id})
	if err != nil {
		return made, &ArgumentError{Argument: "remote", Err: err}
	}
	return made, nil
}
