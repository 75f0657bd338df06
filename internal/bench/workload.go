// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// The workload: readings of stations, made by a formula, are written as compressed CSV, aggregated into a table in
// memory, and the table is saved on disk. It needs a shell, awk and gzip, which most images have.
const (
	stations = 1000
	// asked is the station whose line every trial must give.
	asked = 42

	dataDir     = "/var/lib/lab-bench"
	diskTable   = dataDir + "/stations.tsv"
	memoryTable = "/dev/shm/stations.tsv"
)

// workload is how much there is to do.
type workload struct {
	// readings is how many there are of each station; a thousand in a campaign, fewer in tests.
	readings int
}

// answer is the line of the asked station: its number, the count of its readings and their sum.
func (w workload) answer() string {
	sum := 0
	for reading := range w.readings {
		sum += 10*reading + asked + 17
	}
	return fmt.Sprint(asked, w.readings, sum)
}

// memoryScript makes sure that what should be memory is: some images have no /dev/shm by themselves, and a disk in its
// place would be no measure of it.
const memoryScript = `grep -q ' /dev/shm tmpfs ' /proc/mounts || { mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm; }`

// prepareScript makes the readings and the table.
func (w workload) prepareScript() string {
	return fmt.Sprintf(`set -e
%[6]s
mkdir -p %[1]s
awk 'BEGIN { for (r = 0; r < %[2]d; r++) for (s = 0; s < %[3]d; s++) print s "," r "," 10 * r + s + 17 }' |
  gzip >%[1]s/readings.csv.gz
gzip -dc %[1]s/readings.csv.gz |
  awk -F , '{ count[$1]++; sum[$1] += $3 } END { for (s in count) print s "\t" count[s] "\t" sum[s] }' >%[4]s
cp %[4]s %[5]s`, dataDir, w.readings, stations, memoryTable, diskTable, memoryScript)
}

// loadScript brings the saved table into the memory of a machine that has the disk only.
func (workload) loadScript() string {
	return fmt.Sprintf(`set -e
%[3]s
[ ! -e %[1]s ] || { echo "the table is in memory already" >&2; exit 1; }
cp %[2]s %[1]s`, memoryTable, diskTable, memoryScript)
}

// queryScript checks the answer of a table in the machine itself: some daemons lose what a command prints.
func (w workload) queryScript(table string) string {
	return fmt.Sprintf(`got=$(awk '$1 == %d { print $1, $2, $3 }' %s)
[ "$got" = %q ] || { echo "the answer is '$got'" >&2; exit 1; }`, asked, table, w.answer())
}

// spoilScript overwrites both tables of a child; its source must not see that.
func (workload) spoilScript() string {
	return fmt.Sprintf(`echo spoilt >%s && echo spoilt >%s`, diskTable, memoryTable)
}

// flushScript writes what the machine's file system holds back, so that the pool's space can be read.
const flushScript = "sync -f / 2>/dev/null || sync"

// in runs a script in a machine; that it fails is an error, with the last that it said.
func in(ctx context.Context, daemon *lxd.Daemon, machine, what, script string) error {
	result, err := daemon.Exec(ctx, machine, lxd.Command{Args: []string{"sh", "-c", script}})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("%s in machine %q: exit code %d: %s", what, machine, result.ExitCode, strings.TrimSpace(string(result.Stderr)))
	}
	return nil
}
