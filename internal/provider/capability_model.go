// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/cowlab/terraform-provider-lab/internal/capability"
)

type capabilityModel struct {
	Pool         types.String                     `tfsdk:"pool"`
	Prove        types.Set                        `tfsdk:"prove"`
	Timeouts     timeouts.Value                   `tfsdk:"timeouts"`
	Adequate     types.Bool                       `tfsdk:"adequate"`
	Summary      types.String                     `tfsdk:"summary"`
	Capabilities []findingModel                   `tfsdk:"capabilities"`
	Pools        map[string]capabilityPoolModel   `tfsdk:"pools"`
	Server       *capabilityServerModel           `tfsdk:"server"`
	Members      map[string]capabilityMemberModel `tfsdk:"members"`
}

type findingModel struct {
	Capability types.String `tfsdk:"capability"`
	Subject    types.String `tfsdk:"subject"`
	Verdict    types.String `tfsdk:"verdict"`
	Evidence   []string     `tfsdk:"evidence"`
	Reason     types.String `tfsdk:"reason"`
	Remedy     types.String `tfsdk:"remedy"`
	Judged     types.String `tfsdk:"judged"`
}

type capabilityPoolModel struct {
	Driver      types.String `tfsdk:"driver"`
	CopyOnWrite types.String `tfsdk:"copy_on_write"`
	TotalBytes  types.Int64  `tfsdk:"total_bytes"`
	FreeBytes   types.Int64  `tfsdk:"free_bytes"`
	ProvedAt    types.String `tfsdk:"proved_at"`
}

type capabilityServerModel struct {
	Product        types.String `tfsdk:"product"`
	Version        types.String `tfsdk:"version"`
	Address        types.String `tfsdk:"address"`
	Project        types.String `tfsdk:"project"`
	Fingerprint    types.String `tfsdk:"fingerprint"`
	Kernel         types.String `tfsdk:"kernel"`
	OS             types.String `tfsdk:"os"`
	StorageDrivers []string     `tfsdk:"storage_drivers"`
	Clustered      types.Bool   `tfsdk:"clustered"`
}

type capabilityMemberModel struct {
	Address types.String `tfsdk:"address"`
	Status  types.String `tfsdk:"status"`
}

// request is what to assess.
func (m *capabilityModel) request() capability.Request {
	return capability.Request{Pool: m.Pool.ValueString(), Prove: elementsOf(m.Prove)}
}

// show takes over a report.
func (m *capabilityModel) show(report *capability.Report) {
	m.Adequate = types.BoolValue(report.Adequate)
	m.Summary = types.StringValue(report.Summary)
	m.Capabilities = []findingModel{}
	for _, finding := range report.Findings {
		m.Capabilities = append(m.Capabilities, findingModel{
			Capability: types.StringValue(string(finding.Capability)), Subject: textOrNull(finding.Subject),
			Verdict: types.StringValue(string(finding.Verdict)), Evidence: append([]string{}, finding.Evidence...),
			Reason: textOrNull(finding.Reason), Remedy: textOrNull(finding.Remedy), Judged: types.StringValue(finding.Judged),
		})
	}
	m.Pools = map[string]capabilityPoolModel{}
	for _, pool := range report.Pools {
		m.Pools[pool.Name] = capabilityPoolOf(pool)
	}
	m.Members = map[string]capabilityMemberModel{}
	for _, member := range report.Members {
		m.Members[member.Name] = capabilityMemberModel{Address: types.StringValue(member.Address), Status: types.StringValue(member.Status)}
	}
	if server := report.Server; server.Fingerprint != "" {
		m.Server = &capabilityServerModel{
			Product: types.StringValue(server.Product), Version: types.StringValue(server.Version), Address: types.StringValue(server.Address),
			Project: types.StringValue(server.Project), Fingerprint: types.StringValue(server.Fingerprint), Kernel: types.StringValue(server.Kernel),
			OS: types.StringValue(server.OS), StorageDrivers: append([]string{}, server.Drivers...), Clustered: types.BoolValue(server.Clustered),
		}
	}
}

func capabilityPoolOf(pool capability.PoolReport) capabilityPoolModel {
	model := capabilityPoolModel{Driver: types.StringValue(pool.Driver), CopyOnWrite: types.StringValue(string(pool.CopyOnWrite))}
	if pool.TotalBytes > 0 {
		model.TotalBytes, model.FreeBytes = types.Int64Value(pool.TotalBytes), types.Int64Value(pool.FreeBytes)
	}
	if pool.Proof != nil {
		model.ProvedAt = types.StringValue(pool.Proof.Date.UTC().Format(time.RFC3339))
	}
	return model
}
