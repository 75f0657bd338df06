// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"strings"
)

// raceTries is how often a request is made that loses a race within the daemon, which is over at once.
const raceTries = 6

// again does what is to be done, and does it again while it loses a race within the daemon and nothing came of it.
func again(ctx context.Context, raced func(error) bool, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || !raced(err) || try == raceTries || ctx.Err() != nil {
			return err
		}
		wait(ctx, firstPause<<try)
	}
}

// list makes a list. LXD 5.0 says of all of it that it is not found when one of its objects is removed meanwhile.
func list[T any](ctx context.Context, ask string, get func() ([]T, error)) (all []T, err error) {
	err = again(ctx, func(err error) bool { return errors.Is(err, ErrNotFound) }, func() error {
		all, err = get()
		return classify(ask, err)
	})
	return all, err
}

// withFileHelper does something with the files of a machine. The daemon reaches them by a helper, which ends when nobody
// has asked for a while; a request that comes just then finds its socket gone, and the next one another helper.
func withFileHelper(ctx context.Context, do func() error) error {
	return again(ctx, func(err error) bool { return strings.Contains(err.Error(), "forkfile.sock") }, do)
}

// besideDeletions deletes an image or a pool. Both take the copies of images on pools along, and the daemon fails as it
// misses one that goes with the other at the same time.
func besideDeletions(ctx context.Context, do func() error) error {
	return again(ctx, func(err error) bool { return strings.Contains(err.Error(), "Storage volume not found") }, do)
}
