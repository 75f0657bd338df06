// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// ResetRefusedError is a reset that cannot be done. Nothing was touched.
type ResetRefusedError struct {
	// ByKey says of each machine that cannot be put back why, by the caller's key.
	ByKey map[string]error
}

func (e *ResetRefusedError) Error() string { return errors.Join(e.Unwrap()...).Error() }

// Unwrap gives the reasons, in the order of the keys.
func (e *ResetRefusedError) Unwrap() []error {
	reasons := []error{}
	for _, key := range slices.Sorted(maps.Keys(e.ByKey)) {
		reasons = append(reasons, e.ByKey[key])
	}
	return reasons
}

// ResetError is a reset in which some machines were not put back. What kind of failure it was, [errors.Is] tells.
type ResetError struct {
	// Failed says of each machine that was not put back, by its name, why and where it stands.
	Failed map[string]error
	// Back names the machines that are where they should be.
	Back []string
}

func (e *ResetError) Error() string {
	lines := []string{fmt.Sprintf("%d of %d machines could not be put back:", len(e.Failed), len(e.Failed)+len(e.Back))}
	for _, name := range slices.Sorted(maps.Keys(e.Failed)) {
		lines = append(lines, fmt.Sprintf("- %s: %v", name, e.Failed[name]))
	}
	if len(e.Back) > 0 {
		lines = append(lines, "- at their snapshots, as they should be: "+strings.Join(slices.Sorted(slices.Values(e.Back)), ", "))
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the failures.
func (e *ResetError) Unwrap() []error { return slices.Collect(maps.Values(e.Failed)) }

// resetStage is how far the putting back of a machine got.
type resetStage int

const (
	stageStopping resetStage = iota
	stageRestoring
	stageRewriting
	stageVerifying
	stageSwitching
	stageWaiting
)

// stands adds to a failure at a stage in which state the machine was left.
func (r *machineReset) stands(ctx context.Context, at resetStage, cause error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	power := "it is not known whether it runs"
	live, _, err := r.lab.daemon.Instance(ctx, r.snapshot.Machine.Name)
	if errors.Is(err, lxd.ErrNotFound) {
		return fmt.Errorf("%w; the machine is gone", cause)
	}
	if err == nil {
		power = "it is " + strings.ToLower(live.Status) + " now"
	}
	return fmt.Errorf("%w; %s, and %s", cause, power, r.disk(at, outcomeOpen(cause)))
}

// disk says what is known of a machine's disk and configuration after a failure at a stage.
func (r *machineReset) disk(at resetStage, open bool) string {
	back := fmt.Sprintf("its disk is back at snapshot %q", r.snapshot.Name)
	switch {
	case at == stageStopping:
		return "its disk was not touched"
	case at == stageRestoring && open && r.stateful:
		return fmt.Sprintf("whether its disk and its memory are back at snapshot %q is not known", r.snapshot.Name)
	case at == stageRestoring && r.stateful:
		return fmt.Sprintf("whether its disk is back at snapshot %q is not known, and its memory is not", r.snapshot.Name)
	case at == stageRestoring && open:
		return fmt.Sprintf("whether its disk is back at snapshot %q is not known", r.snapshot.Name)
	case at == stageRestoring:
		return "its disk was not put back"
	case at == stageRewriting && r.stateful:
		return back + ", its memory too, but so is its configuration, which is not yet as declared"
	case at == stageRewriting:
		return back + ", but so is its configuration, which is not yet as declared"
	case at == stageVerifying:
		return "its disk is not what it should be"
	default:
		return back
	}
}
