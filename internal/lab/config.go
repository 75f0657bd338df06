// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"maps"
	"strings"
)

// shown is the part of an object's live configuration that its owner is told of: every key but those that the daemon
// or we keep there by themselves, unless the owner declared them.
func shown(live, declared map[string]string, ownKey func(key string) bool) map[string]string {
	out := map[string]string{}
	for key, value := range live {
		_, asked := declared[key]
		if asked || !ownKey(key) {
			out[key] = value
		}
	}
	return out
}

// replaced is a live configuration in which the declared keys that were known before give way to those declared now.
// All other keys, the daemon's and ours, stay.
func replaced(live, before, now map[string]string) map[string]string {
	out := maps.Clone(live)
	if out == nil {
		out = map[string]string{}
	}
	for key := range before {
		delete(out, key)
	}
	maps.Copy(out, now)
	return out
}

// internalKey says whether a key is kept by the daemon or by us on any kind of object.
func internalKey(key string) bool {
	return strings.HasPrefix(key, volatilePrefix) || strings.HasPrefix(key, keyPrefix)
}

// setOrDelete sets a key, or removes it when the value is empty.
func setOrDelete(config map[string]string, key, value string) {
	if value == "" {
		delete(config, key)
		return
	}
	config[key] = value
}
