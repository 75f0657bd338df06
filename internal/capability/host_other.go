// SPDX-License-Identifier: MPL-2.0

//go:build !linux

package capability

import "github.com/canonical/lxd/shared/api"

// lookAtHost gives nothing: the daemon runs on Linux only, so it is not here.
func lookAtHost(string, api.ServerEnvironment) *host { return nil }
