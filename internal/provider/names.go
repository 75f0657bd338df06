// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// The forms of names. They are narrower than what LXD takes where a name that it takes breaks something later.
var (
	addressForm  = regexp.MustCompile(`^(unix:///|https://)`)
	httpsForm    = regexp.MustCompile(`^https://[^/]`)
	machineName  = regexp.MustCompile(`^[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)
	snapshotName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)
	poolName     = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)
	networkName  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{1,14}$`)
	domainName   = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	modeForm     = regexp.MustCompile(`^0?[0-7]{3}$`)
)

func machineNameValidator() validator.String {
	return stringvalidator.RegexMatches(machineName, "must be a host name: 1 to 63 letters, digits and dashes that starts with a letter and does not end in a dash")
}

func snapshotNameValidator() validator.String {
	return stringvalidator.RegexMatches(snapshotName, "must be 1 to 63 letters, digits, dots, dashes and underscores that starts with a letter or digit: "+
		"other names make a snapshot, and with it its machine, impossible to delete on some daemons")
}

func poolNameValidator() validator.String {
	return stringvalidator.RegexMatches(poolName, "must be 1 to 63 letters, digits, dots, dashes and underscores that starts with a letter or digit")
}

func networkNameValidator() validator.String {
	return stringvalidator.RegexMatches(networkName, "must be 2 to 15 letters, digits, dots, dashes and underscores that starts with a letter or digit: "+
		"it is also the name of the bridge's network interface on the host")
}
