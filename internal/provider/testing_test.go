// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/canonical/lxd/shared/api"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
	"github.com/cowlab/terraform-provider-lab/internal/provider"
)

// TestMain runs the acceptance tests with the terraform (or tofu) on PATH and none of the person's own settings.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"TF_CLI_CONFIG_FILE": os.DevNull, "CHECKPOINT_DISABLE": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if os.Getenv("TF_ACC_TERRAFORM_PATH") == "" {
		for _, tool := range []string{"terraform", "tofu"} {
			if path, err := exec.LookPath(tool); err == nil {
				_ = os.Setenv("TF_ACC_TERRAFORM_PATH", path)
				break
			}
		}
	}
	acctest.Main(m)
}

var factories = map[string]func() (tfprotov6.ProviderServer, error){
	"lab": providerserver.NewProtocol6WithError(provider.New("test")()),
}

// apply runs the steps against the package's daemon. After each step the plan must be empty, and so must the drift.
func apply(t *testing.T, check func(*testing.T), steps ...resource.TestStep) {
	t.Helper()
	for index := range steps {
		step := &steps[index]
		if step.Config != "" && step.ExpectError == nil && !step.ExpectNonEmptyPlan && !step.ImportState {
			step.ConfigPlanChecks.PostApplyPostRefresh = append(step.ConfigPlanChecks.PostApplyPostRefresh, noDrift{})
		}
	}
	// The kit's own destroy and CheckDestroy read the state in a form that knows no for_each; so the last step empties it.
	if last := steps[len(steps)-1]; last.ExpectError == nil && last.Config != "" {
		steps = append(steps, resource.TestStep{Config: last.Config, Destroy: true})
	}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: steps})
	if check != nil {
		check(t)
	}
}

// noDrift fails when a refresh found anything other than what the state says, which an empty plan may still hide.
type noDrift struct{}

func (noDrift) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	for _, drift := range req.Plan.ResourceDrift {
		resp.Error = errors.Join(resp.Error, fmt.Errorf("%s drifted from %v to %v", drift.Address, drift.Change.Before, drift.Change.After))
	}
}

// on is a configuration with a provider block for a host.
func on(host *acctest.Host, config string) string {
	return fmt.Sprintf("provider \"lab\" {\n  address = %q\n  project = %q\n}\n%s", host.Address(), host.Project(), config)
}

// fill replaces the words of a configuration, given in pairs, so that it can be read as a person would write it.
func fill(config string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(config)
}

// gone asks the daemon, not the state, that objects are no longer there, each named as the path of its API ("instances/a").
func gone(host *acctest.Host, paths ...string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, path := range paths {
			_, _, err := host.Client(t).RawQuery("GET", "/1.0/"+path+"?project="+host.Project(), nil, "")
			if !api.StatusErrorCheck(err, http.StatusNotFound) {
				t.Errorf("%s is still there (%v)", path, err)
			}
		}
	}
}
