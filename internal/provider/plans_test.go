// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
)

// The actions of a plan.
const (
	leaves   = plancheck.ResourceActionNoop
	creates  = plancheck.ResourceActionCreate
	updates  = plancheck.ResourceActionUpdate
	replaces = plancheck.ResourceActionDestroyBeforeCreate
)

// plan expects what is to happen to each object, by its address.
func plan(actions map[string]plancheck.ResourceActionType) resource.ConfigPlanChecks {
	checks := resource.ConfigPlanChecks{}
	for address, action := range actions {
		checks.PreApply = append(checks.PreApply, plancheck.ExpectResourceAction(address, action))
	}
	return checks
}

// nothing expects that nothing is to happen.
func nothing() resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}}
}
