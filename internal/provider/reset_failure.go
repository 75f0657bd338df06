// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// resetFailure turns a reset that failed into what a person reads. A reset that was refused gives one error for each
// machine in the way, at its snapshot.
func resetFailure(verb, thing string, err error) diag.Diagnostics {
	var diags diag.Diagnostics
	refused, ok := errors.AsType[*lab.ResetRefusedError](err)
	if !ok {
		diags.Append(failure(verb, thing, "", err))
		return diags
	}
	for _, key := range slices.Sorted(maps.Keys(refused.ByKey)) {
		one := failure(verb, thing, "", refused.ByKey[key])
		diags.AddAttributeError(path.Root("snapshots").AtMapKey(key), one.Summary(), one.Detail())
	}
	return diags
}

// nextResetStep says what a person may do about a reset that got half-way.
func nextResetStep(verb string, err error) string {
	again := "Run `terraform apply` again: it puts all machines back, whatever state they are in."
	if verb == verbInvoke {
		again = "Invoke it again: it puts all machines back, whatever state they are in."
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "Interrupted. " + again
	case errors.Is(err, lxd.ErrTimeout):
		return fmt.Sprintf("%s If it only needs longer, raise timeouts.%s.", again, timeoutOf(verb))
	default:
		return again
	}
}
