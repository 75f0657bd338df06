// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/cowlab/terraform-provider-lab/internal/lab"
)

var (
	_ basetypes.StringTypable                    = sizeType{}
	_ basetypes.StringValuableWithSemanticEquals = sizeValue{}
	_ xattr.ValidateableAttribute                = sizeValue{}
)

// sizeType is a number of bytes with its unit, such as "512MiB". Two spellings of one size are equal.
type sizeType struct {
	basetypes.StringType
	// orKept says that a branch's memory may be declared to be kept in the place of a size.
	orKept bool
}

func (t sizeType) Equal(other attr.Type) bool {
	o, ok := other.(sizeType)
	return ok && t.StringType.Equal(o.StringType)
}

func (t sizeType) String() string { return "size" }

func (t sizeType) ValueType(context.Context) attr.Value { return sizeValue{orKept: t.orKept} }

func (t sizeType) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return sizeValue{StringValue: in, orKept: t.orKept}, nil
}

func (t sizeType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	text, ok := value.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("a size came as %T", value)
	}
	return sizeValue{StringValue: text, orKept: t.orKept}, nil
}

// sizeValue is a value of [sizeType].
type sizeValue struct {
	basetypes.StringValue
	orKept bool
}

// newSize is the value of a size that the daemon gave; empty is null.
func newSize(text string) sizeValue {
	if text == "" {
		return sizeValue{StringValue: basetypes.NewStringNull()}
	}
	return sizeValue{StringValue: basetypes.NewStringValue(text)}
}

func (v sizeValue) Type(context.Context) attr.Type { return sizeType{orKept: v.orKept} }

func (v sizeValue) Equal(other attr.Value) bool {
	o, ok := other.(sizeValue)
	return ok && v.StringValue.Equal(o.StringValue)
}

// StringSemanticEquals says that "1GiB" and "1024MiB" are the same.
func (v sizeValue) StringSemanticEquals(_ context.Context, other basetypes.StringValuable) (bool, diag.Diagnostics) {
	o, ok := other.(sizeValue)
	if !ok {
		return false, nil
	}
	mine, err := lab.ParseSize(v.ValueString())
	if err != nil {
		return false, nil // what is no size equals nothing; validation tells of it
	}
	theirs, err := lab.ParseSize(o.ValueString())
	return err == nil && mine == theirs, nil
}

// ValidateAttribute refuses what is not a size before anything is planned.
func (v sizeValue) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() || v.orKept && v.ValueString() == withMemory {
		return
	}
	if _, err := lab.ParseSize(v.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid size", sentence(err))
	}
}

// keepSize keeps the size of the state where the configuration now spells the same size in another way.
type keepSize struct{}

func (keepSize) Description(context.Context) string {
	return "another spelling of the same size is no change"
}

func (m keepSize) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

func (keepSize) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}
	same, diags := sizeValue{StringValue: req.PlanValue}.StringSemanticEquals(ctx, sizeValue{StringValue: req.StateValue})
	resp.Diagnostics.Append(diags...)
	if same {
		resp.PlanValue = req.StateValue
	}
}
