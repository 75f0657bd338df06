// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// ownKeys refuses configuration keys that have an argument of their own, or that the daemon or the provider keeps.
type ownKeys struct{ arguments map[string]string }

// ownKeysValidator refuses keys in a config argument for which there are arguments. A key is given as it is, or as
// "key=argument" where the two differ.
func ownKeysValidator(keys ...string) validator.Map {
	arguments := map[string]string{}
	for _, pair := range keys {
		key, argument, differ := strings.Cut(pair, "=")
		if !differ {
			argument = key
		}
		arguments[key] = argument
	}
	return ownKeys{arguments}
}

func (v ownKeys) Description(context.Context) string {
	return "keys that have an argument of their own, or that the daemon keeps, are refused"
}

func (v ownKeys) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v ownKeys) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	for key := range req.ConfigValue.Elements() {
		if argument, ok := v.arguments[key]; ok {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Key has its own argument", fmt.Sprintf("Use the argument `%s` in the place of the key %q.", argument, key))
		}
		kept := []string{"volatile.", "user.lab.", "image."}
		if slices.ContainsFunc(kept, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(key), "Key is not yours to set", fmt.Sprintf("The daemon or this provider keeps the key %q.", key))
		}
	}
}
