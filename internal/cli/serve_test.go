// SPDX-License-Identifier: MPL-2.0

package cli

import "testing"

func TestLogsAreAskedFor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		environment []string
		want        bool
	}{
		{nil, false},
		{[]string{"HOME=/root", "TF_CLI_CONFIG_FILE=x", "TF_LOG="}, false},
		{[]string{"TF_LOG=debug"}, true},
		{[]string{"HOME=/root", "TF_LOG_PROVIDER_LAB=trace"}, true},
		{[]string{"TF_LOG_SDK=info"}, true},
		{[]string{"TF_LOG_PATH=/tmp/log"}, true},
	} {
		if got := logs(test.environment); got != test.want {
			t.Errorf("%q: got %v", test.environment, got)
		}
	}
}
