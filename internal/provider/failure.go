// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lab"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// What an object was being done to, as in "Unable to create machine".
const (
	verbConnect = "connect to"
	verbCreate  = "create"
	verbRead    = "read"
	verbUpdate  = "update"
	verbDelete  = "delete"
	verbImport  = "import"
)

// failure turns an error of the layers below into what a person reads: what could not be done, why, and what to do
// next, at the argument at fault.
func failure(verb, thing, name string, err error) diag.Diagnostic {
	summary := fmt.Sprintf("Unable to %s %s", verb, thing)
	if name != "" {
		summary += fmt.Sprintf(" %q", name)
	}
	detail, argument := sentence(err), ""
	if refusal, ok := errors.AsType[*capability.Refusal](err); ok {
		summary, detail, argument = refusal.Summary(), refusal.Detail(), refusal.Argument
	}
	if at, ok := errors.AsType[*lab.ArgumentError](err); ok {
		argument = at.Argument
	}
	if next := nextStep(verb, thing, err); next != "" {
		detail += "\n\n" + next
	}
	if argument == "" {
		return diag.NewErrorDiagnostic(summary, detail)
	}
	return diag.NewAttributeErrorDiagnostic(argumentPath(argument), summary, detail)
}

// argumentPath turns "file.metadata" into the path of that attribute.
func argumentPath(argument string) path.Path {
	names := strings.Split(argument, ".")
	at := path.Root(names[0])
	for _, name := range names[1:] {
		at = at.AtName(name)
	}
	return at
}

// sentence makes an error's text stand by itself. One of several lines ends with somebody's output, as it was.
func sentence(err error) string {
	text := err.Error()
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
		return text
	}
	return text + "."
}

// nextStep says what a person may do about a kind of failure.
func nextStep(verb, thing string, err error) string {
	if _, ok := errors.AsType[*capability.Refusal](err); ok {
		return "" // it brings its own remedy
	}
	if _, ok := errors.AsType[*lab.ResetError](err); ok {
		return nextResetStep(verb, err)
	}
	switch {
	case errors.Is(err, lxd.ErrCalledOff) && errors.Is(err, context.Canceled):
		return "Interrupted. Nothing was left of it."
	case errors.Is(err, lxd.ErrCalledOff):
		return fmt.Sprintf("If it only needs longer, raise timeouts.%s. Nothing was left of it.", timeoutOf(verb))
	case errors.Is(err, context.Canceled):
		return "Interrupted. What the daemon had begun goes on; the next plan shows where it stands."
	case errors.Is(err, lxd.ErrBusy):
		return "Somebody else is at work on it. Try again when that is done; nothing was changed."
	case errors.Is(err, lxd.ErrTimeout):
		return fmt.Sprintf("If it only needs longer, raise timeouts.%s. What was made so far is kept in the state, and the next apply deals with it.", timeoutOf(verb))
	case errors.Is(err, lxd.ErrUnknownOutcome):
		return "Whether the daemon did it is not known. Run `terraform plan` to see, and look into the daemon's log."
	case errors.Is(err, lxd.ErrExists) && verb == verbCreate:
		return fmt.Sprintf("A %s of this name is there already and was left as it is. Choose another name, or take it over with `terraform import`.", thing)
	case errors.Is(err, lxd.ErrUnreachable):
		return "Run `terraform-provider-lab bootstrap --check` on the host to see what is missing, and `terraform-provider-lab bootstrap` to set it up; " +
			"or name the daemon in the provider's `address`."
	default:
		return ""
	}
}

// timeoutOf names the timeout that bounds what was being done.
func timeoutOf(verb string) string {
	switch verb {
	case verbReset:
		return verbUpdate
	case verbConnect, verbImport:
		return verbRead
	default:
		return verb
	}
}
