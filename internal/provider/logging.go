// SPDX-License-Identifier: MPL-2.0

package provider

import (
	"context"
	"log/slog"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// tflogHandler passes the log lines of the layers below, which know no Terraform, on to Terraform's log.
type tflogHandler struct{}

func (tflogHandler) Enabled(context.Context, slog.Level) bool { return true }

func (tflogHandler) Handle(ctx context.Context, record slog.Record) error {
	fields := map[string]any{}
	record.Attrs(func(attr slog.Attr) bool {
		fields[attr.Key] = attr.Value.Any()
		return true
	})
	switch {
	case record.Level >= slog.LevelWarn:
		tflog.Warn(ctx, record.Message, fields)
	case record.Level >= slog.LevelInfo:
		tflog.Info(ctx, record.Message, fields)
	default:
		tflog.Debug(ctx, record.Message, fields)
	}
	return nil
}

// The layers below use neither groups nor fixed attributes.
func (h tflogHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h tflogHandler) WithGroup(string) slog.Handler      { return h }
