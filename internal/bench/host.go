// SPDX-License-Identifier: MPL-2.0

package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// Facts are what figures were taken on. A text that the daemon does not tell is empty, a number 0.
type Facts struct {
	// Daemon is its name and version.
	Daemon string `json:"daemon"`
	// Fingerprint is that of its certificate.
	Fingerprint string `json:"fingerprint"`
	OS          string `json:"os"`
	Kernel      string `json:"kernel"`
	// Kind is what sort of system it is: "physical", "virtual-machine", "container".
	Kind        string `json:"kind"`
	CPU         string `json:"cpu"`
	CPUs        uint64 `json:"cpus"`
	MemoryBytes uint64 `json:"memory_bytes"`
	// Local says that the daemon is on the host that this program runs on, so that host columns can be read.
	Local bool `json:"local"`
}

// emulated says that the processors are QEMU's, which translates every instruction: many times slower, and not evenly.
func (f *Facts) emulated() bool { return strings.Contains(f.CPU, "QEMU TCG") }

// ReadFacts asks a daemon what its host is.
func ReadFacts(ctx context.Context, daemon *lxd.Daemon) (Facts, error) {
	environment := daemon.Server().Environment
	facts := Facts{
		Daemon: environment.Server + " " + environment.ServerVersion, Fingerprint: daemon.Fingerprint(),
		OS:     strings.TrimSpace(environment.OSName + " " + environment.OSVersion),
		Kernel: environment.Kernel + " " + environment.KernelVersion, Local: daemon.Local(),
	}
	resources, err := daemon.Resources(ctx)
	if err != nil {
		return facts, err
	}
	for _, socket := range resources.CPU.Sockets {
		facts.CPU = socket.Name
	}
	facts.CPUs, facts.MemoryBytes, facts.Kind = resources.CPU.Total, resources.Memory.Total, resources.System.Type
	return facts, nil
}

// Measures of the host, which are there only where the daemon is local and the kernel tells.
const (
	hostCPUMS  = "host_cpu_ms"
	hostMemory = "host_memory_bytes"
	// hostLoad is the load average of the last minute when the trial began, in hundredths.
	hostLoad = "host_load_centi"
)

// hostReading is what the kernel of this host says at one moment.
type hostReading struct{ cpuMS, memoryBytes, loadCenti int64 }

// readHost reads it. There is none of a daemon elsewhere, nor where this is not Linux.
func readHost(daemon *lxd.Daemon) *hostReading {
	if !daemon.Local() {
		return nil
	}
	stat, statErr := os.ReadFile("/proc/stat")
	memory, memoryErr := os.ReadFile("/proc/meminfo")
	load, loadErr := os.ReadFile("/proc/loadavg")
	if statErr != nil || memoryErr != nil || loadErr != nil {
		return nil
	}
	reading, err := parseHost(string(stat), string(memory), string(load))
	if err != nil {
		return nil
	}
	return reading
}

// tickMS is the unit in which Linux counts processor time towards programs: a hundredth of a second, on all hosts.
const tickMS = 10

// parseHost reads the texts of the kernel: processor time that was not idle, memory that is not available, and load.
func parseHost(stat, memory, load string) (*hostReading, error) {
	var reading hostReading
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal guest guest_nice
	if len(fields) < 9 || fields[0] != "cpu" {
		return nil, fmt.Errorf("/proc/stat begins with %q", line)
	}
	for _, at := range []int{1, 2, 3, 6, 7} {
		ticks, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			return nil, err
		}
		reading.cpuMS += ticks * tickMS
	}
	var total, available int64
	for line := range strings.Lines(memory) {
		// Neither fits most lines; then nothing is read.
		_, _ = fmt.Sscanf(line, "MemTotal: %d kB", &total)
		_, _ = fmt.Sscanf(line, "MemAvailable: %d kB", &available)
	}
	if total == 0 || available == 0 {
		return nil, fmt.Errorf("/proc/meminfo tells neither MemTotal nor MemAvailable")
	}
	reading.memoryBytes = (total - available) << 10
	first, _, _ := strings.Cut(load, " ")
	average, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil, err
	}
	reading.loadCenti = int64(math.Round(average * 100))
	return &reading, nil
}

// since adds what the host did since an earlier reading, if both are there.
func (r *hostReading) since(before *hostReading, values Values) {
	if r == nil || before == nil {
		return
	}
	values[hostCPUMS] = r.cpuMS - before.cpuMS
	values[hostMemory] = r.memoryBytes - before.memoryBytes
	values[hostLoad] = before.loadCenti
}
