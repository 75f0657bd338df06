// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

const imageConfig = `
resource "lab_image" "i" {
  file = { metadata = "METADATA" }
  ARGUMENTS
}
`

// copyFile copies a file, and makes its directory.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sumOf gives the SHA-256 of files, one after the other, in hex.
func sumOf(t *testing.T, files ...string) string {
	t.Helper()
	hash := sha256.New()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		hash.Write(content)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func TestImage(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	first, second := acctest.TinyFiles(t), acctest.TinyFiles(t)
	dir := t.TempDir()
	here, there := filepath.Join(dir, "here.tar"), filepath.Join(dir, "there.tar")
	copyFile(t, first.Unified, here)
	alias, other := acctest.Name(t, "alias"), acctest.Name(t, "alias")
	config := func(file, arguments string) string {
		return on(host, fill(imageConfig, "METADATA", file, "ARGUMENTS", arguments))
	}
	full := fill(`aliases    = ["ALIAS"]
  properties = { description = "of the lab", note = "a" }
  pools      = ["POOL"]`, "ALIAS", alias, "POOL", host.Pool(t))
	const at = "lab_image.i"
	fingerprint := func(want string) statecheck.StateCheck {
		return statecheck.ExpectKnownValue(at, tfjsonpath.New("fingerprint"), knownvalue.StringExact(want))
	}
	unpacked := func() {
		host.LXC(t, "storage", "volume", "show", host.Pool(t), "image/"+first.Fingerprint)
	}

	apply(t, gone(host, "images/"+first.Fingerprint, "images/"+second.Fingerprint, "images/aliases/"+alias, "images/aliases/"+other,
		"storage-pools/"+host.Pool(t)+"/volumes/image/"+first.Fingerprint),
		resource.TestStep{
			Config: config(here, full),
			ConfigStateChecks: []statecheck.StateCheck{
				fingerprint(first.Fingerprint),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("owned"), knownvalue.Bool(true)),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("size_bytes"), positive()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("obtain_ms"), positive()),
				statecheck.ExpectKnownValue(at, tfjsonpath.New("timings").AtMapKey("unpack_ms"), positive()),
			},
		},
		resource.TestStep{
			ResourceName: at, ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"file", "properties", "pools", "timings"},
		},
		// The same contents elsewhere are the same image.
		resource.TestStep{
			PreConfig:        func() { unpacked(); copyFile(t, here, there) },
			Config:           config(there, full),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates}),
		},
		// Files that were cleaned away are no reason to do anything.
		resource.TestStep{
			PreConfig: func() {
				if err := os.Remove(there); err != nil {
					t.Error(err)
				}
			},
			Config:           config(there, full),
			ConfigPlanChecks: nothing(),
		},
		// Changed behind our back.
		resource.TestStep{
			PreConfig: func() {
				host.LXC(t, "image", "alias", "delete", alias)
				host.LXC(t, "image", "set-property", first.Fingerprint, "note", "b")
				if err := host.Client(t).DeleteStoragePoolVolume(host.Pool(t), "image", first.Fingerprint); err != nil {
					t.Error(err)
				}
			},
			Config:           config(there, full),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: updates}),
		},
		resource.TestStep{
			PreConfig:         unpacked,
			Config:            config(there, fill(`aliases = ["ALIAS"]`, "ALIAS", other)),
			ConfigPlanChecks:  plan(map[string]plancheck.ResourceActionType{at: updates}),
			ConfigStateChecks: []statecheck.StateCheck{fingerprint(first.Fingerprint)},
		},
		// Other contents under the same path are another image.
		resource.TestStep{
			PreConfig:         func() { copyFile(t, second.Unified, there) },
			Config:            config(there, ""),
			ConfigPlanChecks:  plan(map[string]plancheck.ResourceActionType{at: replaces}),
			ConfigStateChecks: []statecheck.StateCheck{fingerprint(second.Fingerprint)},
		},
		resource.TestStep{
			PreConfig:        func() { host.LXC(t, "image", "delete", second.Fingerprint) },
			Config:           config(there, ""),
			ConfigPlanChecks: plan(map[string]plancheck.ResourceActionType{at: creates}),
		},
	)
}

func TestImageInTwoFiles(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	files := acctest.TinyFiles(t)
	config := func(sum string) string {
		return on(host, fill(`
resource "lab_image" "i" {
  file = { metadata = "METADATA", rootfs = "ROOTFS", sha256 = "SUM" }
}

resource "lab_machine" "m" {
  name  = "NAME"
  image = lab_image.i.fingerprint
  pool  = "POOL"
}
`, "METADATA", files.Metadata, "ROOTFS", files.Rootfs, "SUM", sum, "POOL", host.Pool(t), "NAME", acctest.Name(t, "m")))
	}
	sum := sumOf(t, files.Metadata, files.Rootfs)
	apply(t, gone(host, "images/"+sum),
		resource.TestStep{Config: config(strings.Repeat("0", 64)), PlanOnly: true, ExpectError: regexp.MustCompile(`files\s+hash\s+to\s+` + sum)},
		resource.TestStep{
			Config: config(sum),
			ConfigStateChecks: []statecheck.StateCheck{
				statecheck.ExpectKnownValue("lab_image.i", tfjsonpath.New("id"), knownvalue.StringExact(sum)),
				statecheck.ExpectKnownValue("lab_machine.m", tfjsonpath.New("image"), knownvalue.StringExact(sum)),
			},
		},
	)
}

func TestImageImport(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	files, alias := acctest.TinyFiles(t), acctest.Name(t, "alias")
	config := on(host, fill(`
import {
  to = lab_image.i
  id = "PROJECT/FINGERPRINT"
}
`, "PROJECT", host.Project(), "FINGERPRINT", files.Fingerprint)+
		fill(imageConfig, "METADATA", files.Unified, "ARGUMENTS", fill(`aliases = ["ALIAS"]`, "ALIAS", alias)))
	apply(t, gone(host, "images/"+files.Fingerprint),
		resource.TestStep{
			PreConfig: func() { host.LXC(t, "image", "import", files.Unified, "--alias", alias) },
			Config:    config,
			// The daemon does not know the file's path.
			ConfigPlanChecks:  plan(map[string]plancheck.ResourceActionType{"lab_image.i": updates}),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("lab_image.i", tfjsonpath.New("owned"), knownvalue.Bool(true))},
		},
	)
}

func TestImageThatWasThereStays(t *testing.T) {
	t.Parallel()
	host := acctest.Shared(t)
	files := acctest.TinyFiles(t)
	host.LXC(t, "image", "import", files.Unified)
	apply(t, gone(host, "images/aliases/ours"),
		resource.TestStep{
			Config:            on(host, fill(imageConfig, "METADATA", files.Unified, "ARGUMENTS", `aliases = ["ours"]`)),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue("lab_image.i", tfjsonpath.New("owned"), knownvalue.Bool(false))},
		},
	)
	host.LXC(t, "image", "delete", files.Fingerprint)
}
