// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// daemonFlags say which daemon, and as whom. A trust token is a secret, and so comes from the environment only.
type daemonFlags struct{ address, project, certificate, key, fingerprint string }

func (f *daemonFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "address", "", "daemon: unix:///path/to/unix.socket or https://host:8443 (default: the local one)")
	flags.StringVar(&f.project, "project", "", "project to work in")
	flags.StringVar(&f.certificate, "client-certificate", "", "file with the client's certificate for an https daemon, in PEM")
	flags.StringVar(&f.key, "client-key", "", "file with the client's key for an https daemon, in PEM")
	flags.StringVar(&f.fingerprint, "server-fingerprint", "", "SHA-256 fingerprint, in hex, of an https daemon's certificate")
}

// config turns the flags into a connection. As with the provider's block, the environment fills in what they leave open
// only when they name no address: a variable that is about one daemon must not reach into what is said of another.
func (f *daemonFlags) config(getenv func(string) string) (lxd.Config, error) {
	config := lxd.Config{Address: f.address, Project: f.project, ServerFingerprint: f.fingerprint}
	var err error
	if config.ClientCertificate, err = content(f.certificate); err != nil {
		return lxd.Config{}, fmt.Errorf("read the client's certificate: %w", err)
	}
	if config.ClientKey, err = content(f.key); err != nil {
		return lxd.Config{}, fmt.Errorf("read the client's key: %w", err)
	}
	if f.address != "" {
		return config, nil
	}
	for variable, value := range map[string]*string{
		"LAB_ADDRESS": &config.Address, "LAB_PROJECT": &config.Project, "LAB_CLIENT_CERTIFICATE": &config.ClientCertificate,
		"LAB_CLIENT_KEY": &config.ClientKey, "LAB_SERVER_FINGERPRINT": &config.ServerFingerprint, "LAB_TRUST_TOKEN": &config.TrustToken,
	} {
		if *value == "" {
			*value = getenv(variable)
		}
	}
	return config, nil
}

// content reads a file; no name is no content.
func content(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	return string(data), err
}
