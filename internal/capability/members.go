// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/canonical/lxd/shared/api"
	"golang.org/x/sync/errgroup"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// memberOnline is the daemon's word for a member that answers.
const memberOnline = "Online"

// MemberFacts are what is known of one member of a cluster.
type MemberFacts struct {
	// Name and Address are the member's.
	Name, Address string
	// Status is the daemon's word for its state, and Message says more.
	Status, Message string
	// Environment is what the member says of itself; nil when it does not answer.
	Environment *api.ServerEnvironment
}

// readMembers asks each member that should answer what it is: one request each.
func readMembers(ctx context.Context, d *lxd.Daemon, members []api.ClusterMember) []MemberFacts {
	read := make([]MemberFacts, len(members))
	group := errgroup.Group{}
	group.SetLimit(parallelReads)
	for i, member := range members {
		group.Go(func() error { read[i] = readMember(ctx, d, member); return nil })
	}
	_ = group.Wait() // none of them returns an error
	slices.SortFunc(read, func(a, b MemberFacts) int { return cmp.Compare(a.Name, b.Name) })
	return read
}

func readMember(ctx context.Context, d *lxd.Daemon, member api.ClusterMember) MemberFacts {
	read := MemberFacts{Name: member.ServerName, Address: member.URL, Status: member.Status, Message: member.Message}
	if member.Status != memberOnline {
		return read
	}
	server, err := d.OnMember(member.ServerName).Refresh(ctx)
	if err != nil {
		// The daemon lists a member as online for a while after it has gone.
		read.Message = err.Error()
		return read
	}
	read.Environment = &server.Environment
	return read
}

// offline names the members that do not answer, with the daemon's words.
func (f *Facts) offline() []string {
	var names []string
	for _, member := range f.Members {
		if member.Environment == nil {
			names = append(names, fmt.Sprintf("member %q (%s) does not answer: %s", member.Name, strings.ToLower(member.Status), member.Message))
		}
	}
	return names
}

// refuseMembers refuses a pool that some member of the cluster could not make its part of.
func (f *Facts) refuseMembers(ask PoolAsk) *Refusal {
	if offline := f.offline(); len(offline) > 0 {
		return &Refusal{
			Capability: Cluster, Asked: ask.String(), Evidence: offline,
			Found:  "a cluster makes a pool only when all of its members answer",
			Remedy: "Start the members that do not answer, or remove them from the cluster.",
		}
	}
	var lacking, evidence []string
	for _, member := range f.Members {
		offered := driversOf(member.Environment)
		evidence = append(evidence, fmt.Sprintf("member %q offers the storage drivers: %s", member.Name, strings.Join(offered, ", ")))
		// What a member lists may date from before its tools; of the one that runs here more can be seen.
		stale := f.host != nil && member.Name == f.Environment.ServerName && len(f.host.missing(ask.driver())) == 0
		if !slices.Contains(offered, ask.driver()) && !stale {
			lacking = append(lacking, fmt.Sprintf("%q", member.Name))
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	elsewhere := Facts{Environment: f.Environment}
	return &Refusal{
		Capability: Pools, Argument: "driver", Asked: ask.String(), Evidence: evidence,
		Found:  fmt.Sprintf("not every member of the cluster offers the driver %q: %s does not", ask.driver(), strings.Join(lacking, ", ")),
		Remedy: fmt.Sprintf("On %s: %s", strings.Join(lacking, ", "), elsewhere.driverRemedy(ask.driver())),
	}
}

// refuseParts refuses a pool that does not say what it has on each member: on a cluster the daemon makes it part by part.
func (f *Facts) refuseParts(ask PoolAsk) *Refusal {
	names := func(members map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(members)), ", ") }
	refusal := &Refusal{Capability: Cluster, Argument: "members", Asked: ask.String()}
	if !f.Environment.ServerClustered {
		if len(ask.Members) == 0 {
			return nil
		}
		refusal.Found = "the daemon stands alone, it is no member of a cluster"
		refusal.Remedy = "Remove members, and give size or source to the pool itself."
		return refusal
	}
	missing, present, unheardOf := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, member := range f.Members {
		present[member.Name] = true
		if _, named := ask.Members[member.Name]; !named {
			missing[member.Name] = true
		}
	}
	for name := range ask.Members {
		if !present[name] {
			unheardOf[name] = true
		}
	}
	switch {
	case len(f.Members) == 0, ask.Update:
		return nil // the daemon does not tell them to this client, or made the parts long ago
	case len(unheardOf) > 0:
		refusal.Found = "the cluster has no member " + names(unheardOf)
	case len(missing) > 0:
		refusal.Found = "a pool has a part on every member of the cluster, and none is asked for on " + names(missing)
	default:
		return nil
	}
	refusal.Evidence = []string{"members of the cluster: " + names(present)}
	refusal.Remedy = `Name each member in members, as in members = { "` + slices.Sorted(maps.Keys(present))[0] + `" = { size = "20GiB" } }; an empty {} leaves the size to the daemon.`
	return refusal
}

// hostOf gives the host that a member runs on, as far as it can be looked at: only the one that was connected to, and that
// only from the same machine.
func (f *Facts) hostOf(member string) *host {
	if member == "" || member == f.Environment.ServerName {
		return f.host
	}
	return nil
}

// site is a place where a pool is probed: the daemon, or one member of its cluster.
type site struct {
	// member is the member's name; empty for a daemon that stands alone.
	member      string
	environment *api.ServerEnvironment
	host        *host
}

// sites are the places where a pool must be probed. Members that do not answer cannot be.
func (f *Facts) sites() []site {
	if len(f.Members) == 0 {
		return []site{{environment: &f.Environment, host: f.host}}
	}
	var sites []site
	for _, member := range f.Members {
		if member.Environment == nil {
			continue
		}
		sites = append(sites, site{member: member.Name, environment: member.Environment, host: f.hostOf(member.Name)})
	}
	return sites
}

// clusterFinding judges whether the members agree. There is none for a daemon that stands alone.
func (f *Facts) clusterFinding() []Finding {
	if len(f.Members) == 0 {
		return nil
	}
	finding := Finding{Capability: Cluster, Verdict: Reported, Judged: byDaemon}
	kinds := map[string]bool{}
	for _, member := range f.Members {
		if member.Environment == nil {
			continue
		}
		what := fmt.Sprintf("%s, storage drivers %s, machine drivers %s",
			member.Environment.ServerVersion, strings.Join(driversOf(member.Environment), ", "), member.Environment.Driver)
		kinds[what] = true
		finding.Evidence = append(finding.Evidence, fmt.Sprintf("member %q: %s", member.Name, what))
	}
	offline := f.offline()
	finding.Evidence = append(finding.Evidence, offline...)
	switch {
	case len(offline) > 0:
		finding.Verdict, finding.Reason, finding.Remedy = Degraded, "some members do not answer", "Start them, or remove them from the cluster."
	case len(kinds) > 1:
		finding.Verdict, finding.Reason = Degraded, "the members are not alike, so what works depends on where a machine lands"
		finding.Remedy = "Install the same version and tools on every member."
	}
	return []Finding{finding}
}

// driversOf lists the storage drivers of an environment, in order.
func driversOf(environment *api.ServerEnvironment) []string {
	names := make([]string, 0, len(environment.StorageSupportedDrivers))
	for _, driver := range environment.StorageSupportedDrivers {
		names = append(names, driver.Name)
	}
	slices.Sort(names)
	return names
}
