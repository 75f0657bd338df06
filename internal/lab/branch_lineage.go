// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"fmt"
	"strings"
)

// branchesOf names the branches that were made of a machine, by the lineage that is recorded on them. They may be in
// other projects than the machine.
func (l *Lab) branchesOf(ctx context.Context, id MachineID) ([]string, error) {
	instances, err := l.daemon.AllInstances(ctx)
	if err != nil {
		return nil, err
	}
	branches := []string{}
	for _, instance := range instances {
		source, marked := instance.Config[keySource]
		if !marked || (source != id.String() && !strings.HasPrefix(source, id.String()+"/")) {
			continue
		}
		name := instance.Name
		if instance.Project != id.Project {
			name = fmt.Sprintf("%s (in project %s)", name, instance.Project)
		}
		branches = append(branches, name)
	}
	return branches, nil
}
