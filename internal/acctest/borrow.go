// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	lxd "github.com/canonical/lxd/client"
	"github.com/canonical/lxd/shared/api"
)

// loanName is the file in a host's directory that says what to give back.
const loanName = "loan.json"

// loan is a project on a daemon that others use.
type loan struct {
	Address, Project string
}

// borrow makes a project of the tests' own on the daemon at address.
func (s *space) borrow(ctx context.Context, address string) (*Host, error) {
	if !strings.HasPrefix(address, "unix://") {
		return nil, fmt.Errorf("%s is %q: it must be a unix:// address", addressVariable, address)
	}
	root := filepath.Join(s.dir, strconv.Itoa(int(s.hosts.Add(1))))
	h := &Host{root: root, address: address, project: filepath.Base(s.dir)}
	data, err := json.Marshal(loan{Address: address, Project: h.project})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(root, 0o700), os.WriteFile(filepath.Join(root, loanName), data, 0o600)); err != nil {
		return nil, err
	}
	c, err := lxd.ConnectLXDUnixWithContext(ctx, h.Socket(), nil)
	if err != nil {
		return nil, fmt.Errorf("unable to use the daemon that %s names: %w", addressVariable, err)
	}
	defer c.Disconnect()
	// Networks are the default project's: a project of its own may not have bridges.
	return h, c.CreateProject(api.ProjectsPost{Name: h.project, ProjectPut: api.ProjectPut{Config: map[string]string{
		"features.images": "true", "features.profiles": "true", "features.storage.volumes": "true", "features.networks": "false",
	}}})
}

// giveBack removes the project that root records, with everything in it, and the pools and networks that were named for
// its tests. It does nothing, and says so, if root is not that of a loan.
func giveBack(ctx context.Context, root string) (handled bool, err error) {
	data, err := os.ReadFile(filepath.Join(root, loanName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	var l loan
	if err := errors.Join(err, json.Unmarshal(data, &l)); err != nil {
		return true, err
	}
	ctx, cancel := context.WithTimeout(ctx, emptyTimeout)
	defer cancel()
	c, err := lxd.ConnectLXDUnixWithContext(ctx, strings.TrimPrefix(l.Address, "unix://"), nil)
	if err != nil {
		return true, err
	}
	defer c.Disconnect()
	if err := removeProject(ctx, c, l.Project); err != nil {
		return true, fmt.Errorf("unable to remove the project %q from %s: %w", l.Project, l.Address, err)
	}
	return true, removeNamed(c, filepath.Join(filepath.Dir(root), namesName))
}

func removeProject(ctx context.Context, c lxd.InstanceServer, name string) error {
	p := c.UseProject(name)
	instances, err := p.GetInstances(api.InstanceTypeAny)
	if api.StatusErrorCheck(err, 404) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := removeInstances(ctx, p, instances); err != nil {
		return err
	}
	images, err := p.GetImages()
	if err != nil {
		return err
	}
	for _, i := range images {
		op, err := p.DeleteImage(i.Fingerprint)
		if err != nil {
			return err
		}
		if err := op.WaitContext(ctx); err != nil {
			return err
		}
	}
	return c.DeleteProject(name)
}

// removeNamed removes the networks and pools, which no project holds, whose names are recorded in the file names.
func removeNamed(c lxd.InstanceServer, names string) error {
	f, err := os.Open(names)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var errs []error
	for lines := bufio.NewScanner(f); lines.Scan(); {
		for _, remove := range []func(string) error{c.DeleteNetwork, c.DeleteStoragePool} {
			if err := remove(lines.Text()); err != nil && !api.StatusErrorCheck(err, 404) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
