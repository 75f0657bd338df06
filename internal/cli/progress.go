// SPDX-License-Identifier: MPL-2.0

package cli

import (
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/cowlab/terraform-provider-lab/internal/bootstrap"
)

// newProgress shows bars on a terminal, and lines elsewhere.
func newProgress(out io.Writer) bootstrap.Progress {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return bars{out}
	}
	return bootstrap.Lines{Out: out}
}

// barSteps is the resolution of a bar.
const barSteps = 1000

// bars shows each task as a bar.
type bars struct{ out io.Writer }

func (b bars) Begin(title string) bootstrap.Task {
	container := mpb.New(mpb.WithOutput(b.out), mpb.WithWidth(40), mpb.WithAutoRefresh())
	t := &barTask{container: container}
	t.bar = container.AddBar(barSteps,
		mpb.PrependDecorators(decor.Name(title+" ")),
		mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO), decor.Any(func(decor.Statistics) string { return "  " + t.doingNow() })),
	)
	return t
}

type barTask struct {
	container *mpb.Progress
	bar       *mpb.Bar

	mu    sync.Mutex
	doing string
}

func (t *barTask) doingNow() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.doing
}

func (t *barTask) At(fraction float64, doing string) {
	t.mu.Lock()
	t.doing = doing
	t.mu.Unlock()
	// A full bar is final, and only the end is.
	t.bar.SetCurrent(min(int64(fraction*barSteps), barSteps-1))
}

func (t *barTask) End(err error) {
	t.mu.Lock()
	t.doing = "done"
	if err != nil {
		t.doing = "failed"
	}
	t.mu.Unlock()
	if err != nil {
		t.bar.Abort(false)
	} else {
		t.bar.SetCurrent(barSteps)
	}
	t.container.Wait()
}
