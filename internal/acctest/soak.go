// SPDX-License-Identifier: MPL-2.0

package acctest

import (
	"os"
	"strconv"
	"testing"
)

// soakVariable says how often a soak repeats what it does.
const soakVariable = "LAB_ACC_SOAK"

// Soak is how often a soak is to repeat what it does. It skips the test when nobody says: a soak takes minutes.
func Soak(t testing.TB) int {
	t.Helper()
	runs, err := strconv.Atoi(os.Getenv(soakVariable))
	if err != nil {
		t.Skipf("set %s to a number of runs", soakVariable)
	}
	return runs
}
