// SPDX-License-Identifier: MPL-2.0

package provider_test

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
)

// positive expects a number greater than 0, as every measured duration is.
func positive() knownvalue.Check {
	return knownvalue.Int64Func(func(value int64) error {
		if value <= 0 {
			return fmt.Errorf("%d is not greater than 0", value)
		}
		return nil
	})
}
