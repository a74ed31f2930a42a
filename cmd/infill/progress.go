package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
)

// patience is how long a run may take before it shows a bar: one that only
// flickers disturbs.
const patience = 700 * time.Millisecond

// progress shows a run's steps on a terminal.
type progress struct {
	out   io.Writer // nil: shows nothing
	start time.Time
	bar   *progressbar.ProgressBar
}

func newProgress(s *terminal.Streams, quiet bool) *progress {
	p := &progress{start: time.Now()}
	if s.ErrTerminal && !quiet {
		p.out = s.Err
	}
	return p
}

// observe hears every step of a run.
func (p *progress) observe(step infill.Progress) {
	if p.out == nil {
		return
	}
	if p.bar == nil {
		if time.Since(p.start) < patience {
			return
		}
		p.bar = progressbar.NewOptions(step.Steps,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription("sampling"),
			progressbar.OptionSetWidth(24),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(65*time.Millisecond))
	}
	// A bar that cannot be drawn is no reason to stop the run.
	_ = p.bar.Set(step.Step)
}

// clear takes the bar off the terminal; the next run begins a new one.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
	p.start = time.Now()
}
