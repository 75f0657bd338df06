// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/acctest"
)

func TestMain(m *testing.M) { acctest.Main(m) }
