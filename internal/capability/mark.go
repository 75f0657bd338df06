// SPDX-License-Identifier: MPL-2.0

package capability

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
)

// What a probe makes is marked, so that a later run can tell a dead run's leftovers from everything else. The mark
// says which run, since when, from which host and on which pool. On a machine it only holds together with its uuid: the
// daemon gives a copy a uuid of its own, while the mark is copied along.
const (
	probePrefix = "lab-probe-"
	markProbe   = "user.lab.probe"
	markID      = "user.lab.id"
	daemonUUID  = "volatile.uuid"
)

// abandonedAfter is how old what was begun on another host must be to count as dead.
const abandonedAfter = time.Hour

// Abandoned says whether what was begun on another host at a time counts as dead; its lock cannot be seen from here.
func Abandoned(started time.Time) bool { return time.Since(started) >= abandonedAfter }

// mark identifies a run of the probe.
type mark struct {
	run     string
	started time.Time
	host    string
	pool    string
}

func newMark(pool string) mark {
	return mark{run: strings.ReplaceAll(uuid.NewString(), "-", "")[:12], started: time.Now().UTC().Truncate(time.Second), host: ThisHost(), pool: pool}
}

func (m mark) String() string {
	return fmt.Sprintf("%s %s %s %s", m.run, m.started.Format(time.RFC3339), m.host, m.pool)
}

// parseMark reads a mark; ok is false for anything that this program did not write.
func parseMark(text string) (m mark, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return mark{}, false
	}
	started, err := time.Parse(time.RFC3339, fields[1])
	m = mark{run: fields[0], started: started, host: fields[2], pool: fields[3]}
	return m, err == nil && m.String() == text
}

// name is the name of the run's machine; its branches' names begin with it.
func (m mark) name() string { return probePrefix + m.run }

// config marks a new machine as the run's, and as no copy.
func (m mark) config() map[string]string {
	id := uuid.NewString()
	return map[string]string{markProbe: m.String(), markID: id, daemonUUID: id}
}

// markOf gives the run that a machine belongs to, by name, mark and uuid.
func markOf(name string, config map[string]string) (m mark, ok bool) {
	m, ok = parseMark(config[markProbe])
	ours := name == m.name() || strings.HasPrefix(name, m.name()+"-")
	return m, ok && ours && config[markID] != "" && config[markID] == config[daemonUUID]
}

// ThisHost names the host whose lock files this process sees: what was begun on another one may still be under way there.
func ThisHost() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	machine, _ := os.ReadFile("/etc/machine-id") // absent on some hosts; the name must do there
	sum := sha256.Sum256(append([]byte(name+"\n"), machine...))
	return hex.EncodeToString(sum[:6])
}
