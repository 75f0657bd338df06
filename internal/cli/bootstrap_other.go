// SPDX-License-Identifier: MPL-2.0

//go:build !linux

package cli

import (
	"context"
	"errors"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
)

var errNotLinux = errors.New("bootstrap prepares a Linux host; run it on the one that the daemon is to be on, and name that by LAB_ADDRESS here")

func (*bootstrapping) prepare(context.Context) (*bootstrap.Outcome, error) { return nil, errNotLinux }

func (*bootstrapping) elevate(context.Context, *bootstrap.NeedsRootError) error { return errNotLinux }

func (*bootstrapping) enterGroup(*bootstrap.NeedsGroupError) error { return errNotLinux }

func replaceProcess([]string) error { return errNotLinux }
