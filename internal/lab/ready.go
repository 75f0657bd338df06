// SPDX-License-Identifier: MPL-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// Ready is when a machine counts as usable. All conditions that are given must hold; with none, a machine is usable
// when any command runs on it.
type Ready struct {
	// Command must return 0.
	Command []string `json:"command,omitempty"`
	// Systemd waits until systemd has started what it was to start; units that failed do not count against it.
	Systemd bool `json:"systemd,omitempty"`
	// CloudInit waits until cloud-init is done; an error of cloud-init is an error.
	CloudInit bool `json:"cloud_init,omitempty"`
	// Address is "ipv4" or "ipv6": the machine has a global address of that family.
	Address string `json:"address,omitempty"`
	// TCPPort is a port that accepts connections from where Terraform runs.
	TCPPort int64 `json:"tcp_port,omitempty"`
}

// encode is the form that is recorded on the machine.
func (r Ready) encode() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a struct of plain fields always encodes
	}
	return string(text)
}

// decodeReady reads a recorded condition. None, or one that cannot be read, is the default.
func decodeReady(text string) Ready {
	ready := Ready{}
	if err := json.Unmarshal([]byte(text), &ready); err != nil {
		return Ready{}
	}
	return ready
}

// isZero says whether no condition is given.
func (r Ready) isZero() bool { return r.encode() == Ready{}.encode() }

// needsAgent says whether a condition is checked by running something in the machine.
func (r Ready) needsAgent() bool {
	return len(r.Command) > 0 || r.Systemd || r.CloudInit || (r.Address == "" && r.TCPPort == 0)
}

// waitUsable waits until the machine is usable. The context is the only deadline.
func waitUsable(ctx context.Context, daemon *lxd.Daemon, machine string, ready Ready) error {
	return waitConditions(ctx, daemon, machine, ready, answersWanted)
}

// waitResumed is waitUsable for a guest that goes on from its memory, in which no boot restarts the agent.
func waitResumed(ctx context.Context, daemon *lxd.Daemon, machine string, ready Ready) error {
	once := func(context.Context, *lxd.Daemon, string) (int, error) { return 1, nil }
	return waitConditions(ctx, daemon, machine, ready, once)
}

// waitConditions waits until commands run, as often in a row as wants says, where a condition needs that, and then for the
// conditions that are given.
func waitConditions(ctx context.Context, daemon *lxd.Daemon, machine string, ready Ready, wants func(context.Context, *lxd.Daemon, string) (int, error)) error {
	if ready.needsAgent() {
		if err := waitAnswers(ctx, daemon, machine, wants); err != nil {
			return err
		}
	}
	if ready.CloudInit {
		if err := waitCloudInit(ctx, daemon, machine); err != nil {
			return err
		}
	}
	if ready.Systemd {
		if err := waitSystemd(ctx, daemon, machine); err != nil {
			return err
		}
	}
	if ready.Address != "" {
		if err := waitAddress(ctx, daemon, machine, ready.Address); err != nil {
			return err
		}
	}
	if ready.TCPPort != 0 {
		if err := waitPort(ctx, daemon, machine, ready.TCPPort); err != nil {
			return err
		}
	}
	if len(ready.Command) > 0 {
		return waitCommand(ctx, daemon, machine, ready.Command)
	}
	return nil
}

// waitCommand waits until a command returns 0.
func waitCommand(ctx context.Context, daemon *lxd.Daemon, machine string, command []string) error {
	return lxd.Poll(ctx, fmt.Sprintf("%q returns 0 on machine %q", command, machine), func(ctx context.Context) (bool, string, error) {
		result, err := daemon.Exec(ctx, machine, lxd.Command{Args: command})
		if err != nil {
			return stopIfDown(ctx, daemon, machine, err)
		}
		return result.ExitCode == 0, describe(result), nil
	})
}

// settled are the states of systemd in which it has started what it was to start, whether or not all of that worked.
var settled = []string{"running", "degraded"}

// waitSystemd waits until systemd says that it has settled. One call blocks in the guest; it is repeated while the
// guest is too young to have a bus to ask on.
func waitSystemd(ctx context.Context, daemon *lxd.Daemon, machine string) error {
	return lxd.Poll(ctx, fmt.Sprintf("systemd has settled on machine %q", machine), func(ctx context.Context) (bool, string, error) {
		result, err := daemon.Exec(ctx, machine, lxd.Command{Args: []string{"systemctl", "is-system-running", "--wait"}})
		if err != nil {
			return stopIfDown(ctx, daemon, machine, err)
		}
		if result.ExitCode == notFoundCode {
			return false, "", fmt.Errorf("machine %q has no systemctl: its image does not use systemd", machine)
		}
		state := strings.TrimSpace(string(result.Stdout))
		return slices.Contains(settled, state), describe(result), nil
	})
}

// bootScript waits in the guest until its systemd has settled, if systemd is what it boots with, and says how it went.
const bootScript = `case "$(readlink -f /sbin/init)" in */systemd) exec systemctl is-system-running --wait;; *) echo other;; esac`

// waitBooted waits until a machine can be prepared: commands run on it and, where its init is systemd, that has
// settled. Earlier, there would be no bus to enable a service through.
func waitBooted(ctx context.Context, daemon *lxd.Daemon, machine string) error {
	if err := waitExec(ctx, daemon, machine); err != nil {
		return err
	}
	booted := append([]string{"other"}, settled...)
	return lxd.Poll(ctx, fmt.Sprintf("machine %q has booted", machine), func(ctx context.Context) (bool, string, error) {
		result, err := daemon.Exec(ctx, machine, lxd.Command{Args: []string{"sh", "-c", bootScript}})
		if err != nil {
			return stopIfDown(ctx, daemon, machine, err)
		}
		state := strings.TrimSpace(string(result.Stdout))
		return result.ExitCode == notFoundCode || slices.Contains(booted, state), describe(result), nil
	})
}

// waitCloudInit waits until cloud-init is done.
func waitCloudInit(ctx context.Context, daemon *lxd.Daemon, machine string) error {
	return lxd.Poll(ctx, fmt.Sprintf("cloud-init is done on machine %q", machine), func(ctx context.Context) (bool, string, error) {
		result, err := daemon.Exec(ctx, machine, lxd.Command{Args: []string{"cloud-init", "status", "--wait", "--long"}})
		if err != nil {
			return stopIfDown(ctx, daemon, machine, err)
		}
		switch result.ExitCode {
		case 0, 2: // 2 is done, with errors that it recovered from
			return true, "", nil
		case notFoundCode:
			return false, "", fmt.Errorf("machine %q has no cloud-init: its image must bring it", machine)
		case 1:
			return false, "", fmt.Errorf("cloud-init failed on machine %q: %s", machine, describe(result))
		default:
			return false, describe(result), nil
		}
	})
}

// waitAddress waits until the machine has a global address of a family.
func waitAddress(ctx context.Context, daemon *lxd.Daemon, machine, family string) error {
	return lxd.Poll(ctx, fmt.Sprintf("machine %q has an %s address", machine, family), func(ctx context.Context) (bool, string, error) {
		state, err := daemon.InstanceState(ctx, machine)
		if err != nil {
			return false, "", err
		}
		found := addressesOf(state)
		have := (family == "ipv4" && found.IPv4 != "") || (family == "ipv6" && found.IPv6 != "")
		return have, fmt.Sprintf("machine is %s, addresses %v", state.Status, found.All), nil
	})
}

// portTimeout bounds one try to connect.
const portTimeout = 2 * time.Second

// waitPort waits until a TCP port of the machine accepts a connection from here.
func waitPort(ctx context.Context, daemon *lxd.Daemon, machine string, port int64) error {
	return lxd.Poll(ctx, fmt.Sprintf("TCP port %d of machine %q accepts connections from here", port, machine), func(ctx context.Context) (bool, string, error) {
		state, err := daemon.InstanceState(ctx, machine)
		if err != nil {
			return false, "", err
		}
		seen := fmt.Sprintf("machine is %s and has no address", state.Status)
		for _, address := range addressesOf(state).All {
			dialer := net.Dialer{Timeout: portTimeout}
			conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.FormatInt(port, 10)))
			if err == nil {
				return true, "", conn.Close()
			}
			seen = err.Error()
		}
		return false, seen, nil
	})
}

// describe says how a command ended, with the last of what it printed.
func describe(result *lxd.CommandResult) string {
	text := fmt.Sprintf("exit code %d", result.ExitCode)
	output := bytes.TrimSpace(result.Stderr)
	if len(output) == 0 {
		output = bytes.TrimSpace(result.Stdout)
	}
	if len(output) == 0 {
		return text
	}
	lines := strings.Split(string(output), "\n")
	return text + ", " + strings.TrimSpace(lines[len(lines)-1])
}
