// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
)

// proofPool is the pool that a host is proved on. Its file takes only what is written, which is a few hundred MiB.
const (
	proofDriver = capability.DefaultDriver
	proofSize   = "4GiB"
)

// prove proves that the daemon at an address copies on write. A proof that is recorded on one of its pools and still
// holds is one; else a throw-away pool is probed.
func (b *bootstrapping) prove(ctx context.Context, address string) (bootstrap.Verdict, error) {
	d, err := lxd.Connect(ctx, lxd.Config{Address: address, UserAgent: b.userAgent()})
	if err != nil {
		return bootstrap.Verdict{}, err
	}
	report, err := capability.New(d).Assess(ctx, capability.Request{})
	if err != nil {
		return bootstrap.Verdict{}, err
	}
	for _, pool := range report.Pools {
		if pool.Proof != nil && pool.CopyOnWrite == capability.Proven {
			return proved(fmt.Sprintf("storage pool %q", pool.Name), pool.Proof), nil
		}
	}
	var proof *capability.Proof
	err = bootstrap.WithThrowAwayPool(ctx, d, proofDriver, proofSize, func(ctx context.Context, name string) (err error) {
		proof, err = capability.New(d).ProvePool(ctx, name)
		return err
	})
	refusal, refused := errors.AsType[*capability.Refusal](err)
	switch {
	case refused:
		return bootstrap.Verdict{Summary: refusal.Summary() + ": " + refusal.Found, Evidence: refusal.Evidence, Remedy: refusal.Remedy}, nil
	case errors.Is(err, lxd.ErrUnsupported), errors.Is(err, lxd.ErrRefused):
		return bootstrap.Verdict{
			Summary:  "the daemon cannot make a pool that copies on write",
			Evidence: []string{err.Error()},
			Remedy:   "see that this host has loop devices, room on its disk, and a kernel with " + proofDriver,
		}, nil
	case err != nil:
		return bootstrap.Verdict{}, err
	}
	return proved("a throw-away pool", proof), nil
}

func proved(on string, proof *capability.Proof) bootstrap.Verdict {
	return bootstrap.Verdict{Adequate: true, Summary: "proved on " + on + ": this host copies on write", Evidence: proof.Evidence()}
}
