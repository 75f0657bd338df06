// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// hostPatience is how long an apply may take to get to the making of the host.
const hostPatience = 2 * time.Minute

// The example applies the host and the lab at once. Its daemon does not run when the plan is made, and comes up when the
// module asks for it.
func TestHostAndLabInOneApply(t *testing.T) {
	t.Parallel()
	host := acctest.Start(t, acctest.Options{})
	name := acctest.Name(t, "pool")
	example, err := filepath.Abs("../../examples/host-and-lab")
	if err != nil {
		t.Fatal(err)
	}
	wanted := filepath.Join(t.TempDir(), "wanted")
	terraform := acctest.NewCLI(t, fill(`
module "example" {
  source = "EXAMPLE"
  name   = "NAME"
  host = {
    command = "touch WANTED && LXD_DIR=ROOT lxd waitready --timeout=120"
    address = "ADDRESS"
  }
}
`, "EXAMPLE", example, "NAME", name, "WANTED", wanted, "ROOT", host.Dir, "ADDRESS", host.Address()))
	terraform.Run(t, "get")

	host.Stop(t)
	if plan := terraform.Run(t, "plan", "-no-color"); !strings.Contains(plan, "module.example.lab_storage_pool.cow will be created") {
		t.Errorf("the plan without a daemon is\n%s", plan)
	}
	var output bytes.Buffer
	apply := terraform.Command(t.Context(), "apply", "-auto-approve", "-no-color")
	apply.Stdout, apply.Stderr = &output, &output
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hostPatience)
	defer cancel()
	asked := lxd.Poll(ctx, "the module makes the host", func(context.Context) (bool, string, error) {
		_, err := os.Stat(wanted)
		return err == nil, fmt.Sprint(err), nil
	})
	host.Restart(t)
	if err := apply.Wait(); err != nil || asked != nil {
		t.Fatalf("the apply failed: %v, %v\n%s", err, asked, output.String())
	}
	host.LXC(t, "storage", "show", name)
	terraform.Run(t, "plan", "-detailed-exitcode") // it fails where there is anything to do
	terraform.Destroy(t)
	gone(host, "storage-pools/"+name)(t)
}
