// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPollPausesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, last := time.Now(), time.Now()
		var pauses []time.Duration
		err := Poll(t.Context(), "it is late", func(context.Context) (bool, string, error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return time.Since(start) > time.Second, "early", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		ms := time.Millisecond
		want := []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 250 * ms, 250 * ms, 250 * ms}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Errorf("pauses differ (-want +got):\n%s", diff)
		}
	})
}

func TestPollPausesAreAsLongAsALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var pauses []time.Duration
		ended := time.Now()
		looks := []time.Duration{time.Second, 100 * time.Millisecond, time.Minute, 0, 0}
		err := Poll(t.Context(), "it is late", func(context.Context) (bool, string, error) {
			pauses = append(pauses, time.Since(ended))
			time.Sleep(looks[len(pauses)-1])
			ended = time.Now()
			return len(pauses) == len(looks), "early", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, time.Second, 100 * time.Millisecond, 5 * time.Second, 80 * time.Millisecond}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Errorf("pauses differ (-want +got):\n%s", diff)
		}
	})
}

// unaware is a context that has not seen its deadline pass.
type unaware struct{ context.Context } //nolint:containedctx // It is one.

func (unaware) Err() error { return nil }

// A connection may see the deadline before the context does.
func TestPollTellsWhatItSawBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		looks := 0
		err := Poll(unaware{ctx}, "it is done", func(context.Context) (bool, string, error) {
			looks++
			if looks == 1 {
				return false, "red", nil
			}
			time.Sleep(time.Second)
			return false, "cut off", errors.New("i/o timeout")
		})
		timeout, ok := errors.AsType[*TimeoutError](err)
		if !ok || timeout.LastSeen != "red" || !errors.Is(timeout.Cause, context.DeadlineExceeded) {
			t.Errorf("got %v after %d looks", err, looks)
		}
	})
}

func TestPollEnds(t *testing.T) {
	t.Parallel()
	failure := errors.New("it broke")
	timeout := func(cause error, last string, waited time.Duration) error {
		return &TimeoutError{Condition: "it is done", LastSeen: last, Waited: waited, Cause: cause}
	}
	tests := map[string]struct {
		// look is asked with how often it was asked before; the context ends after a second, by cancel or deadline.
		look   func(ctx context.Context, before int) (bool, string, error)
		cancel bool
		want   error
	}{
		"done at once": {look: func(context.Context, int) (bool, string, error) { return true, "", nil }},
		"done later":   {look: func(_ context.Context, before int) (bool, string, error) { return before == 3, "", nil }},
		"failed":       {look: func(context.Context, int) (bool, string, error) { return false, "", failure }, want: failure},
		"deadline": {
			look: func(_ context.Context, before int) (bool, string, error) {
				return false, []string{"red", "amber", ""}[min(before, 2)], nil
			},
			want: timeout(context.DeadlineExceeded, "amber", time.Second),
		},
		"interrupt": {
			look:   func(context.Context, int) (bool, string, error) { return false, "red", nil },
			cancel: true, want: timeout(context.Canceled, "red", time.Second),
		},
		"an error that comes of the deadline": {
			look: func(ctx context.Context, _ int) (bool, string, error) {
				<-ctx.Done()
				return false, "", ctx.Err()
			},
			want: timeout(context.DeadlineExceeded, "", time.Second),
		},
		"what the last look could not see": {
			look: func(ctx context.Context, before int) (bool, string, error) {
				if before == 0 {
					return false, "red", nil
				}
				<-ctx.Done()
				return false, "interrupted", nil
			},
			want: timeout(context.DeadlineExceeded, "red", time.Second),
		},
		"done beats the deadline": {
			look: func(ctx context.Context, _ int) (bool, string, error) {
				<-ctx.Done()
				return true, "", nil
			},
		},
		"failed for good beats the deadline": {
			look: func(ctx context.Context, _ int) (bool, string, error) {
				<-ctx.Done()
				return true, "", failure
			},
			want: failure,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if test.cancel {
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(time.Second, cancel)
				}
				defer cancel()
				asked := 0
				err := Poll(ctx, "it is done", func(ctx context.Context) (bool, string, error) {
					defer func() { asked++ }()
					return test.look(ctx, asked)
				})
				if !errors.Is(err, test.want) && !equalTimeouts(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		})
	}
}

// equalTimeouts says whether both are the same [TimeoutError].
func equalTimeouts(a, b error) bool {
	x, ok1 := errors.AsType[*TimeoutError](a)
	y, ok2 := errors.AsType[*TimeoutError](b)
	return ok1 && ok2 && *x == *y
}
