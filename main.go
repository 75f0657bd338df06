// SPDX-License-Identifier: MPL-2.0

// Terraform-provider-lab declares throw-away laboratories of several machines on LXD.
package main

import (
	"os"

	"github.com/cowlab/terraform-provider-lab/internal/cli"
	"github.com/cowlab/terraform-provider-lab/internal/provider"
)

// version is set when a release is linked.
var version = "dev"

func main() { os.Exit(cli.Execute(version, provider.New(version))) }
