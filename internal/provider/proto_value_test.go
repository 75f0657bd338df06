// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// args are arguments as a configuration has them: text, bool, int, list and args, nil for null, and unknown.
type args map[string]any

// list is a list or set of a configuration.
type list []any

// unknown is a value that is not known before apply.
var unknown = unknownValue{}

type unknownValue struct{}

// encode makes a value of a type. Attributes that are not given are null.
func encode(t *testing.T, typ tftypes.Type, value any) tftypes.Value {
	t.Helper()
	switch v := value.(type) {
	case nil:
		return tftypes.NewValue(typ, nil)
	case unknownValue:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case args:
		return encodeArgs(t, typ, v)
	case list:
		elements := make([]tftypes.Value, 0, len(v))
		for _, element := range v {
			elements = append(elements, encode(t, elementType(t, typ), element))
		}
		return tftypes.NewValue(typ, elements)
	case int:
		return tftypes.NewValue(typ, int64(v))
	default:
		return tftypes.NewValue(typ, v)
	}
}

func encodeArgs(t *testing.T, typ tftypes.Type, given args) tftypes.Value {
	t.Helper()
	values := map[string]tftypes.Value{}
	object, isObject := typ.(tftypes.Object)
	if !isObject {
		for key, value := range given {
			values[key] = encode(t, elementType(t, typ), value)
		}
		return tftypes.NewValue(typ, values)
	}
	for name, attribute := range object.AttributeTypes {
		values[name] = encode(t, attribute, given[name])
	}
	for name := range given {
		if _, ok := values[name]; !ok {
			t.Fatalf("there is no attribute %q in %s", name, typ)
		}
	}
	return tftypes.NewValue(typ, values)
}

func elementType(t *testing.T, typ tftypes.Type) tftypes.Type {
	t.Helper()
	switch v := typ.(type) {
	case tftypes.List:
		return v.ElementType
	case tftypes.Set:
		return v.ElementType
	case tftypes.Map:
		return v.ElementType
	default:
		t.Fatalf("%s has no elements", typ)
		return nil
	}
}

// decode is what encode does, backwards: numbers become int, or float64 where they are not whole.
func decode(t *testing.T, value tftypes.Value) any {
	t.Helper()
	switch {
	case value.IsNull():
		return nil
	case !value.IsKnown():
		return unknown
	}
	switch value.Type().(type) {
	case tftypes.Object, tftypes.Map:
		out := args{}
		for name, element := range fieldsOf(t, value) {
			out[name] = decode(t, element)
		}
		return out
	case tftypes.List, tftypes.Set:
		var elements []tftypes.Value
		must(t, value.As(&elements))
		out := list{}
		for _, element := range elements {
			out = append(out, decode(t, element))
		}
		return out
	}
	switch {
	case value.Type().Is(tftypes.Number):
		number := new(big.Float)
		must(t, value.As(&number))
		if whole, accuracy := number.Int64(); accuracy == big.Exact {
			return int(whole)
		}
		fraction, _ := number.Float64()
		return fraction
	case value.Type().Is(tftypes.Bool):
		var truth bool
		must(t, value.As(&truth))
		return truth
	default:
		var text string
		must(t, value.As(&text))
		return text
	}
}

// fieldsOf gives the attributes or elements of an object or map; none of one that is null or unknown.
func fieldsOf(t *testing.T, value tftypes.Value) map[string]tftypes.Value {
	t.Helper()
	fields := map[string]tftypes.Value{}
	if !value.IsNull() && value.IsKnown() {
		must(t, value.As(&fields))
	}
	return fields
}

func wire(t *testing.T, value tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(value.Type(), value)
	must(t, err)
	return &encoded
}

func unwire(t *testing.T, typ tftypes.Type, value *tfprotov6.DynamicValue) tftypes.Value {
	t.Helper()
	if value == nil {
		return tftypes.NewValue(typ, nil)
	}
	decoded, err := value.Unmarshal(typ)
	must(t, err)
	return decoded
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// propose merges a configuration with the state before it, as Terraform does before it asks for a plan: what is
// computed and not configured stays as it was.
func propose(t *testing.T, attributes []*tfprotov6.SchemaAttribute, prior, config tftypes.Value) tftypes.Value {
	t.Helper()
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	before, declared := fieldsOf(t, prior), fieldsOf(t, config)
	for _, attribute := range attributes {
		value, was := declared[attribute.Name], before[attribute.Name]
		switch {
		case value.IsNull() && attribute.Computed && was.Type() != nil:
			declared[attribute.Name] = was
		case attribute.NestedType == nil || value.IsNull() || !value.IsKnown():
		case attribute.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle:
			declared[attribute.Name] = propose(t, attribute.NestedType.Attributes, was, value)
		case attribute.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeMap:
			elements, had := fieldsOf(t, value), fieldsOf(t, was)
			for key, element := range elements {
				elements[key] = propose(t, attribute.NestedType.Attributes, had[key], element)
			}
			declared[attribute.Name] = tftypes.NewValue(value.Type(), elements)
		}
	}
	return tftypes.NewValue(config.Type(), declared)
}

// contradiction finds a value that was known in one state and is another one in the next; empty when there is none.
func contradiction(t *testing.T, at string, first, then tftypes.Value) string {
	t.Helper()
	if !first.IsKnown() || first.Equal(then) {
		return ""
	}
	before, after := fieldsOrNil(t, first), fieldsOrNil(t, then)
	if before == nil && !first.IsFullyKnown() {
		return "" // what a list or set will hold is not known yet
	}
	if before == nil || after == nil {
		return at + " is " + then.String() + " and not " + first.String()
	}
	for name, value := range before {
		other, ok := after[name]
		if !ok {
			return at + "." + name + " is gone"
		}
		if found := contradiction(t, at+"."+name, value, other); found != "" {
			return found
		}
	}
	return ""
}

// fieldsOrNil gives the attributes of an object or the elements of a map, and nil for anything else.
func fieldsOrNil(t *testing.T, value tftypes.Value) map[string]tftypes.Value {
	t.Helper()
	if value.IsNull() || !value.IsKnown() || (!value.Type().Is(tftypes.Object{}) && !value.Type().Is(tftypes.Map{})) {
		return nil
	}
	return fieldsOf(t, value)
}
