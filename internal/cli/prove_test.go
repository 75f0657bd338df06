// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
	"github.com/cowlab/terraform-provider-lab/internal/capability"
	"github.com/cowlab/terraform-provider-lab/internal/lxd"
	"github.com/cowlab/terraform-provider-lab/internal/lxd/lxdtest"
)

func prove(ctx context.Context, t *testing.T, daemon *lxdtest.Server) bootstrap.Verdict {
	t.Helper()
	verdict, err := (&bootstrapping{}).prove(ctx, daemon.Address())
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

func TestProveOnAThrowAwayPool(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	verdict := prove(t.Context(), t, daemon)
	if !verdict.Adequate || !strings.Contains(verdict.Summary, "throw-away pool") || len(verdict.Evidence) == 0 {
		t.Errorf("got %+v", verdict)
	}
	if pools, err := daemon.Client(t).GetStoragePoolNames(); err != nil || len(pools) > 0 {
		t.Errorf("pools left: %v, %v", pools, err)
	}
}

func TestProveUsesAProofThatHolds(t *testing.T) {
	t.Parallel()
	daemon := lxdtest.New(t)
	d, err := lxd.Connect(t.Context(), lxd.Config{Address: daemon.Address()})
	if err != nil {
		t.Fatal(err)
	}
	err = bootstrap.WithThrowAwayPool(t.Context(), d, proofDriver, proofSize, func(ctx context.Context, pool string) error {
		if _, _, err := capability.New(d).EnsureProof(ctx, pool); err != nil {
			return err
		}
		before := len(daemon.Requests())
		verdict := prove(ctx, t, daemon)
		if !verdict.Adequate || !strings.Contains(verdict.Summary, pool) {
			t.Errorf("got %+v", verdict)
		}
		for _, request := range daemon.Requests()[before:] {
			if request.Method != http.MethodGet {
				t.Errorf("it changed something: %+v", request)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestProveTellsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	verdict := prove(t.Context(), t, lxdtest.New(t, lxdtest.WithUsableDrivers("dir")))
	if verdict.Adequate || verdict.Remedy == "" || !strings.Contains(strings.Join(verdict.Evidence, " "), "btrfs") {
		t.Errorf("got %+v", verdict)
	}
}
