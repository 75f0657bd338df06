// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// planAction is what a plan is going to do.
type planAction string

const (
	actionNone    planAction = "nothing"
	actionCreate  planAction = "create"
	actionUpdate  planAction = "update"
	actionReplace planAction = "replace"
	actionDelete  planAction = "delete"
)

// planned is a plan for one resource.
type planned struct {
	action  planAction
	value   tftypes.Value
	private []byte
}

// plan validates a configuration and plans it; nil plans the destruction.
func (m *managed) plan(config args) (planned, diagnostics) {
	m.t.Helper()
	if config == nil {
		p, d := m.planFrom(m.state, m.private, nil)
		p.action = actionDelete
		return p, d
	}
	validated, err := m.server.ValidateResourceConfig(m.t.Context(), &tfprotov6.ValidateResourceConfigRequest{
		TypeName: m.typeName, Config: wire(m.t, m.encode(config)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	must(m.t, err)
	if diagnostics(validated.Diagnostics).failed() {
		return planned{}, validated.Diagnostics
	}
	p, d := m.planFrom(m.state, m.private, config)
	if !m.tainted && p.action != actionReplace || d.failed() {
		return p, d
	}
	// What is replaced is planned anew as if there were nothing.
	p, d = m.planFrom(tftypes.NewValue(m.state.Type(), nil), p.private, config)
	p.action = actionReplace
	return p, d
}

func (m *managed) encode(config args) tftypes.Value {
	m.t.Helper()
	if config == nil {
		return tftypes.NewValue(m.schema().ValueType(), nil)
	}
	return encode(m.t, m.schema().ValueType(), config)
}

// planFrom asks for one plan.
func (m *managed) planFrom(prior tftypes.Value, private []byte, config args) (planned, diagnostics) {
	m.t.Helper()
	declared := m.encode(config)
	req := &tfprotov6.PlanResourceChangeRequest{
		TypeName: m.typeName, PriorState: wire(m.t, prior), PriorPrivate: private, Config: wire(m.t, declared),
		ProposedNewState: wire(m.t, propose(m.t, m.schema().Block.Attributes, prior, declared)),
	}
	if !prior.IsNull() {
		req.PriorIdentity = m.identity
	}
	resp, err := m.server.PlanResourceChange(m.t.Context(), req)
	must(m.t, err)
	if diagnostics(resp.Diagnostics).failed() {
		return planned{}, resp.Diagnostics
	}
	p := planned{value: unwire(m.t, m.schema().ValueType(), resp.PlannedState), private: resp.PlannedPrivate}
	switch {
	case prior.IsNull():
		p.action = actionCreate
	case p.value.Equal(prior):
		p.action = actionNone
	case replaces(m.t, resp.RequiresReplace, prior, p.value):
		p.action = actionReplace
	default:
		p.action = actionUpdate
	}
	return p, resp.Diagnostics
}

// replaces says whether a value that forces a replacement differs; Terraform ignores the paths of those that do not.
func replaces(t *testing.T, paths []*tftypes.AttributePath, prior, now tftypes.Value) bool {
	t.Helper()
	for _, path := range paths {
		before, _, err := tftypes.WalkAttributePath(prior, path)
		if err != nil && !errors.Is(err, tftypes.ErrInvalidStep) {
			t.Fatal(err)
		}
		after, _, err := tftypes.WalkAttributePath(now, path)
		if err != nil && !errors.Is(err, tftypes.ErrInvalidStep) {
			t.Fatal(err)
		}
		was, isValue := before.(tftypes.Value)
		is, alsoValue := after.(tftypes.Value)
		if isValue != alsoValue || isValue && !was.Equal(is) {
			return true
		}
	}
	return false
}

// apply plans a configuration and does what was planned; nil destroys. It fails the test where Terraform would call the
// outcome a bug in the provider.
func (m *managed) apply(config args) (planAction, diagnostics) {
	m.t.Helper()
	p, d := m.plan(config)
	if d.failed() || p.action == actionNone {
		return p.action, d
	}
	return p.action, m.carryOut(p, config)
}

// carryOut does what was planned.
func (m *managed) carryOut(p planned, config args) diagnostics {
	m.t.Helper()
	if p.action == actionReplace || p.action == actionDelete {
		gone := planned{action: actionDelete, value: tftypes.NewValue(m.state.Type(), nil), private: p.private}
		if d := m.applyPlanned(gone, nil); d.failed() || p.action == actionDelete {
			return d
		}
	}
	// Terraform asks for the plan again now that more is known, and holds it against the first one.
	again, d := m.planFrom(m.state, m.private, config)
	if d.failed() {
		return d
	}
	if found := contradiction(m.t, m.typeName, p.value, again.value); found != "" {
		m.t.Fatalf("inconsistent final plan: %s", found)
	}
	return m.applyPlanned(again, config)
}

func (m *managed) applyPlanned(p planned, config args) diagnostics {
	m.t.Helper()
	resp, err := m.server.ApplyResourceChange(m.t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: m.typeName, PriorState: wire(m.t, m.state), PlannedState: wire(m.t, p.value), Config: wire(m.t, m.encode(config)),
		PlannedPrivate: p.private, PlannedIdentity: m.identity,
	})
	must(m.t, err)
	d := diagnostics(resp.Diagnostics)
	created := m.state.IsNull()
	m.state, m.private, m.identity = unwire(m.t, m.schema().ValueType(), resp.NewState), resp.Private, resp.NewIdentity
	if m.state.IsNull() {
		m.private, m.identity = nil, nil // Terraform keeps nothing of what is gone
	}
	m.tainted = d.failed() && (created || m.tainted) && !m.state.IsNull()
	if !m.state.IsFullyKnown() {
		m.t.Fatalf("the state holds unknown values after apply: %s", m.state)
	}
	if d.failed() {
		return d
	}
	if found := contradiction(m.t, m.typeName, p.value, m.state); found != "" {
		m.t.Fatalf("inconsistent result after apply: %s", found)
	}
	return d
}

// mustApply applies a configuration, which must go well, do what is wanted, and leave nothing to do.
func (m *managed) mustApply(want planAction, config args) {
	m.t.Helper()
	done, d := m.apply(config)
	noErrors(m.t, d)
	if done != want {
		m.t.Fatalf("apply of %s did %s, want %s", m.typeName, done, want)
	}
	noErrors(m.t, m.refresh())
	m.mustPlan(actionNone, config)
}

// mustPlan plans a configuration, which must go well and come to what is wanted.
func (m *managed) mustPlan(want planAction, config args) planned {
	m.t.Helper()
	p, d := m.plan(config)
	noErrors(m.t, d)
	if p.action != want {
		m.t.Fatalf("the plan of %s is to %s, want %s: %s", m.typeName, p.action, want, cmp.Diff(decode(m.t, m.state), decode(m.t, p.value)))
	}
	return p
}

// mustDestroy destroys the resource, which must go well.
func (m *managed) mustDestroy() {
	m.t.Helper()
	_, d := m.apply(nil)
	noErrors(m.t, d)
	if !m.gone() {
		m.t.Fatalf("%s is still in the state", m.typeName)
	}
}
