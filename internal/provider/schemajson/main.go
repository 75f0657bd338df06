// SPDX-License-Identifier: MPL-2.0

// Command schemajson writes the provider's schemas to standard output, in the form of
// `terraform providers schema -json`.
//
// The documentation is generated from it. Asking the provider's server itself needs no Terraform, and leaves
// out nothing: resource identities and actions are missing from what older releases of Terraform print.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/cowlab/terraform-provider-lab/internal/provider"
)

// providerName is the key under which tfplugindocs looks for the schemas.
const providerName = "lab"

func main() {
	server := providerserver.NewProtocol6(provider.New("docs")())()

	err := write(context.Background(), os.Stdout, server)
	if err != nil {
		fmt.Fprintln(os.Stderr, "schemajson:", err)
		os.Exit(1)
	}
}

// write asks server for all of its schemas and writes them to w as JSON.
func write(ctx context.Context, w io.Writer, server tfprotov6.ProviderServer) error {
	schemas, err := server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return fmt.Errorf("reading the provider's schemas: %w", err)
	}

	err = diagnosticsError(schemas.Diagnostics)
	if err != nil {
		return fmt.Errorf("reading the provider's schemas: %w", err)
	}

	identities, err := server.GetResourceIdentitySchemas(ctx, &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		return fmt.Errorf("reading the resource identities: %w", err)
	}

	err = diagnosticsError(identities.Diagnostics)
	if err != nil {
		return fmt.Errorf("reading the resource identities: %w", err)
	}

	document, err := convert(schemas, identities)
	if err != nil {
		return err
	}

	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")

	return encoder.Encode(document)
}

// diagnosticsError returns the first diagnostic of severity error, as an error.
func diagnosticsError(diagnostics []*tfprotov6.Diagnostic) error {
	for _, d := range diagnostics {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}

	return nil
}
