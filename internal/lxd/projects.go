// SPDX-License-Identifier: MPL-2.0

package lxd

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/canonical/lxd/shared/api"
)

// Projects lists the projects that the client may see.
func (d *Daemon) Projects(ctx context.Context) ([]api.Project, error) {
	return list(ctx, "list projects", d.client(ctx).GetProjects)
}

// CreateProject makes a project.
func (d *Daemon) CreateProject(ctx context.Context, project api.ProjectsPost) error {
	return d.change(ctx, fmt.Sprintf("create project %q", project.Name), http.MethodPost, api.NewURL().Path("1.0", "projects"), project, "")
}

// DeleteProject removes an empty project.
func (d *Daemon) DeleteProject(ctx context.Context, name string) error {
	return d.change(ctx, fmt.Sprintf("delete project %q", name), http.MethodDelete, api.NewURL().Path("1.0", "projects", name), nil, "")
}

// Quiet waits until the daemon runs no operation in the project, as it does none in one that is gone. The context is the
// only deadline.
func (d *Daemon) Quiet(ctx context.Context) error {
	return Poll(ctx, fmt.Sprintf("the daemon runs no operation in project %q", d.project), func(ctx context.Context) (bool, string, error) {
		operations, err := d.client(ctx).GetOperations()
		if err = classify("list the daemon's operations", err); errors.Is(err, ErrNotFound) {
			return true, "", nil
		}
		if err != nil {
			return false, "", err
		}
		for _, operation := range operations {
			if !operation.StatusCode.IsFinal() {
				return false, fmt.Sprintf("operation %s (%s), %s", operation.ID, operation.Description, operation.Status), nil
			}
		}
		return true, "", nil
	})
}

// RenameInstance gives a stopped instance another name. Memory that is kept on its disk stays.
func (d *Daemon) RenameInstance(ctx context.Context, name, to string) error {
	ask := fmt.Sprintf("rename machine %q to %q", name, to)
	return d.change(ctx, ask, http.MethodPost, d.path("instances", name), map[string]any{"name": to}, "")
}

// MoveInstance moves a stopped instance to another project under its name, without its snapshots. The daemon makes a copy
// and deletes the original; configuration, devices, uuid and memory that is kept on its disk stay.
func (d *Daemon) MoveInstance(ctx context.Context, name, project string) error {
	ask := fmt.Sprintf("move machine %q to project %q", name, project)
	move := map[string]any{"name": name, "migration": true, "project": project, "instance_only": true, "live": false}
	return d.change(ctx, ask, http.MethodPost, d.path("instances", name), move, "")
}
