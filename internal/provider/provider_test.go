// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

func TestEnvironmentFillsInOnlyWhatNamesNoDaemon(t *testing.T) {
	t.Parallel()
	environment := map[string]string{
		"LAB_ADDRESS": "https://env:8443", "LAB_PROJECT": "env-project", "LAB_CLIENT_CERTIFICATE": "env-certificate",
		"LAB_CLIENT_KEY": "env-key", "LAB_SERVER_FINGERPRINT": "env-fingerprint", "LAB_TRUST_TOKEN": "env-token",
	}
	fromEnvironment := lxd.Config{
		Address: "https://env:8443", Project: "env-project", ClientCertificate: "env-certificate",
		ClientKey: "env-key", ServerFingerprint: "env-fingerprint", TrustToken: "env-token",
	}
	withProject := fromEnvironment
	withProject.Project = "mine"
	full := providerModel{
		Address: types.StringValue("https://mine:8443"), Project: types.StringValue("mine"), ClientCertificate: types.StringValue("certificate"),
		ClientKey: types.StringValue("key"), ServerFingerprint: types.StringValue("fingerprint"), TrustToken: types.StringValue("token"),
	}
	for name, test := range map[string]struct {
		model providerModel
		env   map[string]string
		want  lxd.Config
	}{
		"nothing at all":            {},
		"an empty block":            {env: environment, want: fromEnvironment},
		"a block without address":   {model: providerModel{Project: types.StringValue("mine")}, env: environment, want: withProject},
		"a block with only address": {model: providerModel{Address: types.StringValue("unix:///mine")}, env: environment, want: lxd.Config{Address: "unix:///mine"}},
		"a full block": {model: full, env: environment, want: lxd.Config{
			Address: "https://mine:8443", Project: "mine", ClientCertificate: "certificate", ClientKey: "key", ServerFingerprint: "fingerprint", TrustToken: "token",
		}},
		"an empty text is a value": {model: providerModel{Project: types.StringValue("")}, env: map[string]string{"LAB_PROJECT": "env"}},
	} {
		got := test.model.config(func(variable string) string { return test.env[variable] })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAnyUnknownPartOfTheBlockIsNoticed(t *testing.T) {
	t.Parallel()
	if known := (&providerModel{Address: types.StringValue("unix:///a")}); known.anyUnknown() {
		t.Error("a known block is taken for unknown")
	}
	models := map[string]providerModel{
		"address": {Address: types.StringUnknown()}, "project": {Project: types.StringUnknown()},
		"client_certificate": {ClientCertificate: types.StringUnknown()}, "client_key": {ClientKey: types.StringUnknown()},
		"server_fingerprint": {ServerFingerprint: types.StringUnknown()}, "trust_token": {TrustToken: types.StringUnknown()},
	}
	for name, model := range models {
		if !model.anyUnknown() {
			t.Errorf("unknown %s goes unnoticed", name)
		}
	}
}
