// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

// TestImageOfSimplestreams has a real daemon fetch images from a server, and follow it.
func TestImageOfSimplestreams(t *testing.T) {
	t.Parallel()
	host, server := acctest.Shared(t), lxdtest.NewImageServer(t)
	alias, name := acctest.Name(t, "alias"), acctest.Name(t, "m")
	offer := func() string {
		files := acctest.TinyFiles(t)
		return server.Offer(t, alias, files.Metadata, files.Rootfs)
	}
	first, second := offer(), ""
	config := func(more string) string {
		return on(host, fill(`
resource "lab_image" "i" {
  remote = {
    server      = "SERVER"
    alias       = "ALIAS"
    certificate = <<-EOT
CERTIFICATE    EOT
    MORE
  }
}

resource "lab_machine" "m" {
  name  = "NAME"
  image = lab_image.i.fingerprint
  pool  = "POOL"
}
`, "SERVER", server.URL(), "ALIAS", alias, "CERTIFICATE", server.Certificate(), "MORE", more, "NAME", name, "POOL", host.Pool(t)))
	}
	const at = "lab_image.i"
	is := func(want *string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(at, tfjsonpath.New("fingerprint"), knownvalue.StringFunc(func(got string) error {
			if got != *want {
				return fmt.Errorf("it is %s, want %s", got, *want)
			}
			return nil
		}))
	}
	both := plan(map[string]plancheck.ResourceActionType{at: replaces, "lab_machine.m": replaces})
	apply(t, func(t *testing.T) { t.Helper(); gone(host, "images/"+first, "images/"+second)(t) },
		resource.TestStep{
			Config: config(""),
			ConfigStateChecks: []statecheck.StateCheck{
				is(&first), statecheck.ExpectKnownValue(at, tfjsonpath.New("owned"), knownvalue.Bool(true)),
			},
		},
		resource.TestStep{PreConfig: func() { second = offer() }, Config: config(""), ConfigPlanChecks: nothing()},
		// The daemon's list of the server's images is from before the second one.
		resource.TestStep{Config: config("follow = true"), ConfigPlanChecks: both, ConfigStateChecks: []statecheck.StateCheck{is(&second)}},
	)
	if times := server.Downloads(alias); times != 2 {
		t.Errorf("two images were downloaded %d times", times)
	}
}

const exportConfig = `
resource "lab_storage_pool" "p" {
  name = "lab"
  size = "2GiB"
}

resource "lab_machine" "golden" {
  count = COUNT
  name  = "golden"
  image = "IMAGE"
  pool  = lab_storage_pool.p.id
  setup = [{ command = ["sh", "-c", "echo prepared > /root/data; echo 0123456789abcdef0123456789abcdef > /etc/machine-id"] }]
  ready = { command = ["test", "-s", "/root/data"] }
}

resource "lab_image" "golden" {
  publish = { source = one(lab_machine.golden[*].id), stop = true }
  public  = true
  aliases = ["golden"]
}

resource "lab_machine" "here" {
  name  = "here"
  image = lab_image.golden.fingerprint
  pool  = lab_storage_pool.p.id
}

provider "lab" {
  alias   = "there"
  address = "ADDRESS"
  project = "PROJECT"
}

resource "lab_image" "there" {
  provider = lab.there
  remote = {
    server      = "SERVER"
    protocol    = "lxd"
    alias       = "golden"
    certificate = <<-EOT
CERTIFICATE    EOT
  }
  depends_on = [lab_image.golden]
}

resource "lab_machine" "there" {
  provider = lab.there
  name     = "NAME"
  image    = lab_image.there.fingerprint
  pool     = "POOL"
}
`

// TestImageOfMachine prepares a machine, publishes it, lets it go, and boots what it held, on its daemon and on another
// one. The test kit cannot serve two daemons at once.
func TestImageOfMachine(t *testing.T) {
	t.Parallel()
	there, here := acctest.Shared(t), acctest.Start(t, acctest.Options{HTTPS: true})
	info, _, err := here.Client(t).GetServer()
	if err != nil {
		t.Fatal(err)
	}
	name := acctest.Name(t, "m")
	config := func(count string) string {
		return on(here, fill(exportConfig, "COUNT", count, "IMAGE", here.Tiny(t).Fingerprint, "ADDRESS", there.Address(), "PROJECT", there.Project(),
			"SERVER", here.HTTPSAddress(), "CERTIFICATE", info.Environment.Certificate, "NAME", name, "POOL", there.Pool(t)))
	}
	holds := func(host *acctest.Host, machine string) {
		t.Helper()
		if got := host.In(t, machine, "cat /root/data; wc -c < /etc/machine-id"); got != "prepared\n0" {
			t.Errorf("machine %q of the image holds %q", machine, got)
		}
	}
	cli := acctest.NewCLI(t, config("1"))
	t.Cleanup(func() { cli.Destroy(t); gone(here, "images/aliases/golden", "instances/here")(t) })
	cli.Apply(t)
	if got := here.In(t, "golden", "cat /root/data /etc/machine-id"); got != "prepared\n0123456789abcdef0123456789abcdef" {
		t.Errorf("the source holds %q", got)
	}

	// The source is let go. What it held is not.
	cli.Write(t, config("0"))
	cli.Run(t, "apply", "-auto-approve", "-no-color")
	gone(here, "instances/golden")(t)
	here.LXC(t, "delete", "--force", "here")
	there.LXC(t, "delete", "--force", name)
	cli.Run(t, "apply", "-auto-approve", "-no-color")
	holds(here, "here")
	holds(there, name)
	cli.Run(t, "plan", "-detailed-exitcode", "-no-color")
}
