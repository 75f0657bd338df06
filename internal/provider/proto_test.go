// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// terraform drives the provider over the plugin protocol as Terraform does, without Terraform.
type terraform struct {
	t       *testing.T
	server  tfprotov6.ProviderServer
	schemas *tfprotov6.GetProviderSchemaResponse
}

// newTerraform starts a provider process, so to speak, with a provider block.
func newTerraform(t *testing.T, config args) *terraform {
	t.Helper()
	server := providerserver.NewProtocol6(New("test")())()
	schemas, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	must(t, err)
	noErrors(t, schemas.Diagnostics)
	tf := &terraform{t: t, server: server, schemas: schemas}
	block := wire(t, encode(t, schemas.Provider.ValueType(), config))
	validated, err := server.ValidateProviderConfig(t.Context(), &tfprotov6.ValidateProviderConfigRequest{Config: block})
	must(t, err)
	noErrors(t, validated.Diagnostics)
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: block})
	must(t, err)
	noErrors(t, configured.Diagnostics)
	return tf
}

// diagnostics are what the provider has to say.
type diagnostics []*tfprotov6.Diagnostic

func (d diagnostics) failed() bool {
	return slices.ContainsFunc(d, func(one *tfprotov6.Diagnostic) bool { return one.Severity == tfprotov6.DiagnosticSeverityError })
}

func (d diagnostics) String() string {
	var text strings.Builder
	for _, one := range d {
		text.WriteString("\n" + one.Severity.String() + ": " + one.Summary)
		if one.Attribute != nil {
			text.WriteString(" (at " + one.Attribute.String() + ")")
		}
		text.WriteString("\n" + one.Detail)
	}
	return text.String()
}

func noErrors(t *testing.T, d diagnostics) {
	t.Helper()
	if d.failed() {
		t.Fatal("unexpected errors:", d)
	}
}

// wantError makes sure that there is one error that holds all of the texts.
func wantError(t *testing.T, d diagnostics, texts ...string) {
	t.Helper()
	if !d.failed() {
		t.Fatalf("no error, want one with %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(d.String(), text) {
			t.Errorf("the error lacks %q:%s", text, d)
		}
	}
}

// wantErrorAt also makes sure of the attribute that an error is at, as in AttributeName("file").
func wantErrorAt(t *testing.T, d diagnostics, attribute string, texts ...string) {
	t.Helper()
	wantError(t, d, texts...)
	if !slices.ContainsFunc(d, func(one *tfprotov6.Diagnostic) bool {
		return one.Attribute != nil && one.Attribute.String() == attribute
	}) {
		t.Errorf("no error is at %s:%s", attribute, d)
	}
}

// managed is one resource in the state, or not yet.
type managed struct {
	*terraform
	typeName string
	state    tftypes.Value // null when there is none
	private  []byte
	identity *tfprotov6.ResourceIdentityData
	tainted  bool
}

// resource gives a resource that is not in the state yet.
func (tf *terraform) resource(typeName string) *managed {
	tf.t.Helper()
	schema, ok := tf.schemas.ResourceSchemas[typeName]
	if !ok {
		tf.t.Fatalf("there is no resource %q", typeName)
	}
	return &managed{terraform: tf, typeName: typeName, state: tftypes.NewValue(schema.ValueType(), nil)}
}

// in gives the same resource as another provider process, or another provider block, sees it.
func (m *managed) in(tf *terraform) *managed {
	other := *m
	other.terraform = tf
	return &other
}

func (m *managed) schema() *tfprotov6.Schema { return m.schemas.ResourceSchemas[m.typeName] }

// get reads the state: the value at attributes within each other.
func (m *managed) get(names ...string) any {
	m.t.Helper()
	return at(m.t, m.state, names...)
}

func at(t *testing.T, value tftypes.Value, names ...string) any {
	t.Helper()
	for _, name := range names {
		field, ok := fieldsOf(t, value)[name]
		if !ok {
			t.Fatalf("there is no %q in %s", name, value)
		}
		value = field
	}
	return decode(t, value)
}

// text is get where a text is expected.
func (m *managed) text(names ...string) string {
	m.t.Helper()
	text, ok := m.get(names...).(string)
	if !ok {
		m.t.Fatalf("%s of %s is no text: %v", strings.Join(names, "."), m.typeName, m.get(names...))
	}
	return text
}

// gone says that the resource is not in the state.
func (m *managed) gone() bool { return m.state.IsNull() }

// refresh reads the resource. One that is gone leaves the state.
func (m *managed) refresh() diagnostics {
	m.t.Helper()
	resp, err := m.server.ReadResource(m.t.Context(), &tfprotov6.ReadResourceRequest{
		TypeName: m.typeName, CurrentState: wire(m.t, m.state), Private: m.private, CurrentIdentity: m.identity,
	})
	must(m.t, err)
	if diagnostics(resp.Diagnostics).failed() {
		return resp.Diagnostics
	}
	m.state, m.private, m.identity = unwire(m.t, m.schema().ValueType(), resp.NewState), resp.Private, resp.NewIdentity
	return resp.Diagnostics
}

// importID puts what an id names into the state.
func (m *managed) importID(id string) diagnostics {
	m.t.Helper()
	return m.imported(&tfprotov6.ImportResourceStateRequest{TypeName: m.typeName, ID: id})
}

// importIdentity puts what an identity names into the state.
func (m *managed) importIdentity(identity args) diagnostics {
	m.t.Helper()
	schemas, err := m.server.GetResourceIdentitySchemas(m.t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	must(m.t, err)
	value := encode(m.t, schemas.IdentitySchemas[m.typeName].ValueType(), identity)
	return m.imported(&tfprotov6.ImportResourceStateRequest{
		TypeName: m.typeName, Identity: &tfprotov6.ResourceIdentityData{IdentityData: wire(m.t, value)},
	})
}

func (m *managed) imported(req *tfprotov6.ImportResourceStateRequest) diagnostics {
	m.t.Helper()
	resp, err := m.server.ImportResourceState(m.t.Context(), req)
	must(m.t, err)
	if diagnostics(resp.Diagnostics).failed() {
		return resp.Diagnostics
	}
	found := resp.ImportedResources[0]
	m.state, m.private, m.identity = unwire(m.t, m.schema().ValueType(), found.State), found.Private, found.Identity
	return m.refresh()
}

// readCapability reads the data source.
func (tf *terraform) readCapability(config args) (tftypes.Value, diagnostics) {
	tf.t.Helper()
	const typeName = "lab_capability"
	typ := tf.schemas.DataSourceSchemas[typeName].ValueType()
	value := wire(tf.t, encode(tf.t, typ, config))
	validated, err := tf.server.ValidateDataResourceConfig(tf.t.Context(), &tfprotov6.ValidateDataResourceConfigRequest{TypeName: typeName, Config: value})
	must(tf.t, err)
	if diagnostics(validated.Diagnostics).failed() {
		return tftypes.NewValue(typ, nil), validated.Diagnostics
	}
	resp, err := tf.server.ReadDataSource(tf.t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: typeName, Config: value})
	must(tf.t, err)
	return unwire(tf.t, typ, resp.State), resp.Diagnostics
}
