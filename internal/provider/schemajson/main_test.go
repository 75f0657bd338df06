// SPDX-License-Identifier: MPL-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// fakeServer answers the two calls that write makes.
type fakeServer struct {
	tfprotov6.ProviderServer

	schemas    *tfprotov6.GetProviderSchemaResponse
	identities *tfprotov6.GetResourceIdentitySchemasResponse
	err        error
}

func (s fakeServer) GetProviderSchema(
	context.Context, *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	return s.schemas, s.err
}

func (s fakeServer) GetResourceIdentitySchemas(
	context.Context, *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return s.identities, nil
}

func block(attributes ...*tfprotov6.SchemaAttribute) *tfprotov6.SchemaBlock {
	return &tfprotov6.SchemaBlock{Attributes: attributes, Description: "A thing.", DescriptionKind: tfprotov6.StringKindMarkdown}
}

func TestWriteIsReadByTerraformJSON(t *testing.T) {
	t.Parallel()

	name := &tfprotov6.SchemaAttribute{Name: "name", Type: tftypes.String, Required: true}
	labels := &tfprotov6.SchemaAttribute{Name: "labels", Type: tftypes.Map{ElementType: tftypes.String}, Optional: true}
	timings := &tfprotov6.SchemaAttribute{Name: "timings", Computed: true, NestedType: &tfprotov6.SchemaObject{
		Nesting:    tfprotov6.SchemaObjectNestingModeSingle,
		Attributes: []*tfprotov6.SchemaAttribute{{Name: "create_ms", Type: tftypes.Number, Computed: true}},
	}}
	withBlock := block(name, labels, timings)
	withBlock.BlockTypes = []*tfprotov6.SchemaNestedBlock{
		{TypeName: "disk", Nesting: tfprotov6.SchemaNestedBlockNestingModeList, MaxItems: 2, Block: block(name)},
	}

	server := fakeServer{
		schemas: &tfprotov6.GetProviderSchemaResponse{
			Provider:          &tfprotov6.Schema{Block: block()},
			ResourceSchemas:   map[string]*tfprotov6.Schema{"lab_thing": {Version: 3, Block: withBlock}},
			DataSourceSchemas: map[string]*tfprotov6.Schema{"lab_fact": {Block: block(name)}},
			ActionSchemas:     map[string]*tfprotov6.ActionSchema{"lab_act": {Schema: &tfprotov6.Schema{Block: block(name)}}},
		},
		identities: &tfprotov6.GetResourceIdentitySchemasResponse{
			IdentitySchemas: map[string]*tfprotov6.ResourceIdentitySchema{"lab_thing": {
				IdentityAttributes: []*tfprotov6.ResourceIdentitySchemaAttribute{
					{Name: "name", Type: tftypes.String, RequiredForImport: true},
				},
			}},
		},
	}

	var out bytes.Buffer

	err := write(t.Context(), &out, server)
	if err != nil {
		t.Fatal(err)
	}

	var document tfjson.ProviderSchemas

	err = json.Unmarshal(out.Bytes(), &document)
	if err != nil {
		t.Fatalf("terraform-json cannot read what was written: %v\n%s", err, &out)
	}

	got := document.Schemas["lab"]
	thing := got.ResourceSchemas["lab_thing"]

	type summary struct {
		Version                       uint64
		Required, Optional            bool
		Labels, Timing, Nesting, Disk string
		DiskMax                       uint64
		Action, Data                  bool
		Identity                      string
		IdentityRequired              bool
		Kind                          tfjson.SchemaDescriptionKind
	}

	want := summary{
		Version: 3, Required: true, Optional: true,
		Labels: "map of string", Timing: "number", Nesting: "single", Disk: "list", DiskMax: 2,
		Action: true, Data: true, Identity: "string", IdentityRequired: true,
		Kind: tfjson.SchemaDescriptionKindMarkdown,
	}
	have := summary{
		Version:          thing.Version,
		Required:         thing.Block.Attributes["name"].Required,
		Optional:         thing.Block.Attributes["labels"].Optional,
		Labels:           thing.Block.Attributes["labels"].AttributeType.FriendlyName(),
		Timing:           thing.Block.Attributes["timings"].AttributeNestedType.Attributes["create_ms"].AttributeType.FriendlyName(),
		Nesting:          string(thing.Block.Attributes["timings"].AttributeNestedType.NestingMode),
		Disk:             string(thing.Block.NestedBlocks["disk"].NestingMode),
		DiskMax:          thing.Block.NestedBlocks["disk"].MaxItems,
		Action:           got.ActionSchemas["lab_act"].Block.Attributes["name"].Required,
		Data:             got.DataSourceSchemas["lab_fact"].Block.Attributes["name"].Required,
		Identity:         got.ResourceIdentitySchemas["lab_thing"].Attributes["name"].IdentityType.FriendlyName(),
		IdentityRequired: got.ResourceIdentitySchemas["lab_thing"].Attributes["name"].RequiredForImport,
		Kind:             thing.Block.DescriptionKind,
	}

	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("schemas changed on their way through JSON (-want +got):\n%s", diff)
	}
}

func TestWriteReportsFailure(t *testing.T) {
	t.Parallel()

	broken := &tfprotov6.GetProviderSchemaResponse{Diagnostics: []*tfprotov6.Diagnostic{
		{Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "Odd"},
		{Severity: tfprotov6.DiagnosticSeverityError, Summary: "Invalid schema", Detail: "lab_thing has no id"},
	}}

	tests := map[string]struct {
		server fakeServer
		want   string
	}{
		"call fails":       {fakeServer{err: errors.New("no server")}, "no server"},
		"schema is broken": {fakeServer{schemas: broken}, "Invalid schema: lab_thing has no id"},
	}

	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var out bytes.Buffer

			err := write(t.Context(), &out, test.server)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that contains %q", err, test.want)
			}

			if out.Len() > 0 {
				t.Errorf("wrote in spite of the error: %s", &out)
			}
		})
	}
}
