// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"
)

// importName is what a person gives to import an object.
type importName struct{ project, name, snapshot string }

// parseImportName reads "[project/]name".
func parseImportName(id, thing string) (importName, error) {
	parts := strings.Split(id, "/")
	if len(parts) > 2 || slices.Contains(parts, "") {
		return importName{}, fmt.Errorf(`%q does not name a %s: write "name", or "project/name" for one outside the provider's project`, id, thing)
	}
	if len(parts) == 1 {
		return importName{name: parts[0]}, nil
	}
	return importName{project: parts[0], name: parts[1]}, nil
}

// parseSnapshotImportName reads "[project/]machine/snapshot".
func parseSnapshotImportName(id string) (importName, error) {
	parts := strings.Split(id, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return importName{}, fmt.Errorf(`%q does not name a snapshot: write "machine/snapshot", or "project/machine/snapshot" for one outside the provider's project`, id)
	}
	if len(parts) == 2 {
		return importName{name: parts[0], snapshot: parts[1]}, nil
	}
	return importName{project: parts[0], name: parts[1], snapshot: parts[2]}, nil
}
