// SPDX-License-Identifier: MPL-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
)

// formatVersion is that of the JSON which Terraform prints, as terraform-json knows it.
const formatVersion = "1.0"

// convert turns what the provider's server answered into the document that Terraform would print.
func convert(
	schemas *tfprotov6.GetProviderSchemaResponse, identities *tfprotov6.GetResourceIdentitySchemasResponse,
) (*tfjson.ProviderSchemas, error) {
	config, err := convertSchema(schemas.Provider)
	if err != nil {
		return nil, fmt.Errorf("provider: %w", err)
	}

	resources, err := convertAll(schemas.ResourceSchemas, convertSchema)
	if err != nil {
		return nil, err
	}

	dataSources, err := convertAll(schemas.DataSourceSchemas, convertSchema)
	if err != nil {
		return nil, err
	}

	actions, err := convertAll(schemas.ActionSchemas, convertAction)
	if err != nil {
		return nil, err
	}

	identitySchemas, err := convertAll(identities.IdentitySchemas, convertIdentity)
	if err != nil {
		return nil, err
	}

	return &tfjson.ProviderSchemas{
		FormatVersion: formatVersion,
		Schemas: map[string]*tfjson.ProviderSchema{providerName: {
			ConfigSchema:            config,
			ResourceSchemas:         resources,
			DataSourceSchemas:       dataSources,
			ActionSchemas:           actions,
			ResourceIdentitySchemas: identitySchemas,
		}},
	}, nil
}

// convertAll converts every value of a map; its errors name the key.
func convertAll[From, To any](all map[string]From, convertOne func(From) (To, error)) (map[string]To, error) {
	converted := make(map[string]To, len(all))

	for name, one := range all {
		to, err := convertOne(one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		converted[name] = to
	}

	return converted, nil
}

func convertSchema(schema *tfprotov6.Schema) (*tfjson.Schema, error) {
	block, err := convertBlock(schema.Block)
	if err != nil {
		return nil, err
	}

	return &tfjson.Schema{Version: uint64(max(schema.Version, 0)), Block: block}, nil
}

func convertAction(action *tfprotov6.ActionSchema) (*tfjson.ActionSchema, error) {
	block, err := convertBlock(action.Schema.Block)
	if err != nil {
		return nil, err
	}

	return &tfjson.ActionSchema{Block: block}, nil
}

func convertIdentity(identity *tfprotov6.ResourceIdentitySchema) (*tfjson.IdentitySchema, error) {
	attributes := make(map[string]*tfjson.IdentityAttribute, len(identity.IdentityAttributes))

	for _, attribute := range identity.IdentityAttributes {
		attributeType, err := convertType(attribute.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", attribute.Name, err)
		}

		attributes[attribute.Name] = &tfjson.IdentityAttribute{
			IdentityType:      attributeType,
			Description:       attribute.Description,
			RequiredForImport: attribute.RequiredForImport,
			OptionalForImport: attribute.OptionalForImport,
		}
	}

	return &tfjson.IdentitySchema{Version: uint64(max(identity.Version, 0)), Attributes: attributes}, nil
}

func convertBlock(block *tfprotov6.SchemaBlock) (*tfjson.SchemaBlock, error) {
	attributes, err := convertAttributes(block.Attributes)
	if err != nil {
		return nil, err
	}

	nested := make(map[string]*tfjson.SchemaBlockType, len(block.BlockTypes))

	for _, blockType := range block.BlockTypes {
		inner, err := convertBlock(blockType.Block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", blockType.TypeName, err)
		}

		nested[blockType.TypeName] = &tfjson.SchemaBlockType{
			NestingMode: nestingMode(blockType.Nesting),
			Block:       inner,
			MinItems:    uint64(max(blockType.MinItems, 0)),
			MaxItems:    uint64(max(blockType.MaxItems, 0)),
		}
	}

	return &tfjson.SchemaBlock{
		Attributes:      attributes,
		NestedBlocks:    nested,
		Description:     block.Description,
		DescriptionKind: descriptionKind(block.DescriptionKind),
		Deprecated:      block.Deprecated,
	}, nil
}

func convertAttributes(attributes []*tfprotov6.SchemaAttribute) (map[string]*tfjson.SchemaAttribute, error) {
	converted := make(map[string]*tfjson.SchemaAttribute, len(attributes))

	for _, attribute := range attributes {
		to := &tfjson.SchemaAttribute{
			Description:     attribute.Description,
			DescriptionKind: descriptionKind(attribute.DescriptionKind),
			Deprecated:      attribute.Deprecated,
			Required:        attribute.Required,
			Optional:        attribute.Optional,
			Computed:        attribute.Computed,
			Sensitive:       attribute.Sensitive,
			WriteOnly:       attribute.WriteOnly,
		}

		var err error
		if attribute.NestedType != nil {
			to.AttributeNestedType, err = convertObject(attribute.NestedType)
		} else {
			to.AttributeType, err = convertType(attribute.Type)
		}

		if err != nil {
			return nil, fmt.Errorf("%s: %w", attribute.Name, err)
		}

		converted[attribute.Name] = to
	}

	return converted, nil
}

func convertObject(object *tfprotov6.SchemaObject) (*tfjson.SchemaNestedAttributeType, error) {
	attributes, err := convertAttributes(object.Attributes)
	if err != nil {
		return nil, err
	}

	return &tfjson.SchemaNestedAttributeType{Attributes: attributes, NestingMode: nestingMode(object.Nesting)}, nil
}

// convertType goes through JSON, which is the one form that both libraries share.
func convertType(from tftypes.Type) (cty.Type, error) {
	encoded, err := json.Marshal(from)
	if err != nil {
		return cty.NilType, fmt.Errorf("encoding type %s: %w", from, err)
	}

	var to cty.Type

	err = json.Unmarshal(encoded, &to)
	if err != nil {
		return cty.NilType, fmt.Errorf("decoding type %s: %w", encoded, err)
	}

	return to, nil
}

// nestingMode relies on both libraries having the same names for the modes, in different case.
func nestingMode(mode fmt.Stringer) tfjson.SchemaNestingMode {
	return tfjson.SchemaNestingMode(strings.ToLower(mode.String()))
}

func descriptionKind(kind tfprotov6.StringKind) tfjson.SchemaDescriptionKind {
	if kind == tfprotov6.StringKindMarkdown {
		return tfjson.SchemaDescriptionKindMarkdown
	}

	return tfjson.SchemaDescriptionKindPlain
}
