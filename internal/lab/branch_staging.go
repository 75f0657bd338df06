// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/canonical/lxd/shared/api"
	"github.com/google/uuid"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// keyStaging marks a staging project, and the branch that is under way in it, with who is at work since when. A branch
// loses the mark when it is handed over: one that still has it was never finished, and is in nobody's state.
const keyStaging = "user.lab.staging"

// stagingPrefix is that of the names of staging projects.
const stagingPrefix = "lab-staging-"

// stagingPatience is how long a sweep tries for the lock of another branch, which a living run holds to its end.
const stagingPatience = 250 * time.Millisecond

// stagingMark says which run makes which branch, from which host.
type stagingMark struct {
	run, host, project, name string
	started                  time.Time
}

func (m stagingMark) String() string {
	return fmt.Sprintf("%s %s %s %s/%s", m.run, m.started.Format(time.RFC3339), m.host, m.project, m.name)
}

// parseStagingMark reads a mark; ok is false for anything that this program did not write.
func parseStagingMark(text string) (m stagingMark, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return stagingMark{}, false
	}
	started, err := time.Parse(time.RFC3339, fields[1])
	project, name, _ := strings.Cut(fields[3], "/")
	m = stagingMark{run: fields[0], started: started, host: fields[2], project: project, name: name}
	return m, err == nil && m.String() == text
}

// stagingProject is the name of the run's staging project.
func (m stagingMark) stagingProject() string { return stagingPrefix + m.run }

// mayLive says whether a run may still be at work although its lock is free: a lock is not seen from another host.
func (m stagingMark) mayLive() bool {
	return m.host != capability.ThisHost() && !capability.Abandoned(m.started)
}

// staging is the making of one branch with memory.
type staging struct {
	lab  *Lab
	mark stagingMark
	// name and source are the names of the branch and of its source, and id is the branch's uuid.
	name, source, id string
}

func (l *Lab) newStaging(name, source, id string) *staging {
	return &staging{lab: l, name: name, source: source, id: id, mark: stagingMark{
		run: strings.ReplaceAll(uuid.NewString(), "-", "")[:12], host: capability.ThisHost(),
		project: l.daemon.Project(), name: name, started: time.Now().UTC().Truncate(time.Second),
	}}
}

// bring makes the branch in a staging project and moves it to its own, where it is stopped with its memory. The staging
// project is gone then. The source is needed no more once it is copied.
func (s *staging) bring(ctx context.Context, member string, post api.InstancesPost, copied func()) error {
	project := api.ProjectsPost{Name: s.mark.stagingProject()}
	project.Description = fmt.Sprintf("Where branch %q of project %q is made. It goes at once.", s.name, s.mark.project)
	// Its own images and profiles would keep it from being deleted; the networks are the default project's.
	project.Config = map[string]string{"features.images": "false", "features.profiles": "false", "features.networks": "false", keyStaging: s.mark.String()}
	err := s.lab.daemon.CreateProject(ctx, project)
	if errors.Is(err, lxd.ErrRefused) {
		return argumentErrorf("memory", "a branch with memory is made in a project of its own, which goes at once, and the client must be allowed to make that: %w", err)
	}
	if err != nil {
		return err
	}
	daemon := s.lab.daemon.InProject(project.Name)
	if err := daemon.OnMember(member).CreateInstance(ctx, post); err != nil {
		return err
	}
	copied()
	if s.source != s.name {
		if err := daemon.RenameInstance(ctx, s.source, s.name); err != nil {
			return err
		}
	}
	if err := daemon.MoveInstance(ctx, s.name, s.mark.project); err != nil {
		return err
	}
	return s.lab.dropStaging(ctx, s.mark)
}

// abandon removes all of a branch with memory that failed, or that nobody waits for any more. What cannot be removed is
// said, and a branch that stays is given, so that it is not forgotten.
func (s *staging) abandon(ctx context.Context, spec *BranchSpec, cause error, timings BranchTimings) (*Machine, BranchTimings, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resumePatience)
	defer cancel()
	err := s.lab.dropStagingSurely(ctx, s.mark)
	if removed := s.lab.dropUnfinished(ctx, s.name, s.id); removed != nil {
		return s.lab.machineMadeAnyway(ctx, spec.MachineSpec, s.id), timings,
			fmt.Errorf("%w; the unfinished branch could not be removed: %w", cause, errors.Join(removed, err))
	}
	if err != nil {
		return nil, timings, fmt.Errorf("%w; the staging project %q could not be removed, and the next branch with memory tries again: %w",
			cause, s.mark.stagingProject(), err)
	}
	return nil, timings, cause
}

// handOver takes the mark of what is under way off a branch, also when we were interrupted: whoever gets it keeps it.
func (s *staging) handOver(ctx context.Context) error {
	return undo(ctx, fmt.Sprintf("branch %q is marked as finished", s.name), func(ctx context.Context) error {
		return s.lab.daemon.PatchInstance(ctx, s.name, map[string]any{"config": map[string]string{keyStaging: ""}})
	})
}

// clearWay removes what dead runs have left of branches with memory, and refuses a name that is taken. The caller holds
// the lock of the branch. Of other branches, what cannot be removed is left to their own runs.
func (l *Lab) clearWay(ctx context.Context, name string) error {
	projects, err := l.daemon.Projects(ctx)
	if err != nil {
		return err
	}
	for _, project := range projects {
		m, ok := parseStagingMark(project.Config[keyStaging])
		if !ok || project.Name != m.stagingProject() || m.mayLive() {
			continue
		}
		if m.project == l.daemon.Project() && m.name == name {
			if err := l.dropStaging(ctx, m); err != nil {
				return fmt.Errorf("remove what an earlier run has left: %w", err)
			}
			continue
		}
		l.dropStagingOfAnother(ctx, m)
	}
	return l.clearName(ctx, name)
}

// dropStagingOfAnother removes the staging project of another branch, if the run that made it has died.
func (l *Lab) dropStagingOfAnother(ctx context.Context, m stagingMark) {
	patient, cancel := context.WithTimeout(ctx, stagingPatience)
	defer cancel()
	unlock, err := l.daemon.InProject(m.project).Lock(patient, m.name)
	if err != nil {
		return // it lives
	}
	defer unlock()
	_ = l.dropStaging(ctx, m)
}

// clearName makes sure that a name is free. A branch of the name that was never finished is removed, if the run that made
// it has died; nothing else is.
func (l *Lab) clearName(ctx context.Context, name string) error {
	live, _, err := l.daemon.Instance(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	taken := func(why string) error {
		return &lxd.Error{Ask: fmt.Sprintf("create machine %q", name), Kind: lxd.ErrExists, Err: errors.New(why)}
	}
	m, ok := parseStagingMark(live.Config[keyStaging])
	id := live.Config[keyUUID]
	if !ok || id == "" || live.Config[keyID] != id || m.name != name || m.project != l.daemon.Project() {
		return taken("a machine of this name exists already")
	}
	if m.mayLive() {
		return taken(fmt.Sprintf("another host has been making a branch of this name since %s. If that run has died, delete the branch with `lxc delete --force %s`",
			m.started.Format(time.RFC3339), name))
	}
	if err := l.dropUnfinished(ctx, name, id); err != nil {
		return fmt.Errorf("remove what an earlier run has left: %w", err)
	}
	return nil
}

// dropUnfinished removes the very branch that was not finished, running or not, once the daemon is done with it. It is no
// error when it is gone, nor when it was finished after all.
func (l *Lab) dropUnfinished(ctx context.Context, name, id string) error {
	if err := l.daemon.Idle(ctx, name); err != nil {
		return err
	}
	live, _, err := l.daemon.Instance(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if live.Config[keyUUID] != id || live.Config[keyStaging] == "" {
		return nil
	}
	if live.StatusCode != api.Stopped {
		if err := l.power(ctx, name, false); err != nil {
			return err
		}
	}
	return l.deleteStopped(ctx, name)
}

// dropStaging removes a staging project with the branch in it, once the daemon is done with that. One that is gone is no
// error. What else somebody has put there stays, and so does the project then.
func (l *Lab) dropStaging(ctx context.Context, m stagingMark) error {
	name := m.stagingProject()
	in := l.InProject(name)
	// A branch may be made, renamed or moved there just now.
	if err := in.daemon.Quiet(ctx); err != nil {
		return err
	}
	instances, err := in.daemon.Instances(ctx)
	if err != nil && !errors.Is(err, lxd.ErrNotFound) {
		return err
	}
	for _, instance := range instances {
		if instance.Config[keyStaging] != m.String() {
			continue
		}
		if err := in.dropUnfinished(ctx, instance.Name, instance.Config[keyUUID]); err != nil {
			return err
		}
	}
	err = l.daemon.DeleteProject(ctx, name)
	if errors.Is(err, lxd.ErrNotFound) {
		return nil
	}
	return err
}

// dropStagingSurely is dropStaging after a failure, which is tried again.
func (l *Lab) dropStagingSurely(ctx context.Context, m stagingMark) error {
	return undo(ctx, fmt.Sprintf("project %q is gone", m.stagingProject()), func(ctx context.Context) error { return l.dropStaging(ctx, m) })
}
