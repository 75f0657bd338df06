// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"os"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
)

// registryAddress is where Terraform finds the provider.
const registryAddress = "registry.terraform.io/cowlab/lab"

const (
	// sdkLogVariable is the level at which the plugin framework logs, in the environment.
	sdkLogVariable = "TF_LOG_SDK"
	// logVariables is how all variables start that ask Terraform or its plugins to log.
	logVariables = "TF_LOG"

	// collectPercent lets the heap grow fivefold between collections: it is small, and lives for one plan or apply.
	collectPercent = 400
)

// serve serves the provider to Terraform until Terraform ends it.
func serve(ctx context.Context, newProvider func() provider.Provider, underDebugger bool) error {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(collectPercent)
	}
	if !logs(os.Environ()) {
		// The framework writes several lines for each call, which Terraform reads and drops when nobody asked for logs:
		// a third of the time of a large plan.
		if err := os.Setenv(sdkLogVariable, "off"); err != nil {
			return err
		}
	}
	return providerserver.Serve(ctx, newProvider, providerserver.ServeOpts{Address: registryAddress, Debug: underDebugger, ProtocolVersion: 6})
}

// logs says whether an environment asks for logs of any kind.
func logs(environment []string) bool {
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, logVariables) && value != "" {
			return true
		}
	}
	return false
}
