package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"infill/cmd/infill/internal/terminal"
	"infill/models"
)

// transfer shows on a terminal how far a model has been fetched.
type transfer struct {
	out io.Writer // nil: shows nothing
	bar *progressbar.ProgressBar
}

var _ models.Progress = (*transfer)(nil)

func newTransfer(s *terminal.Streams, quiet bool) *transfer {
	if quiet || !s.ErrTerminal {
		return &transfer{}
	}
	return &transfer{out: s.Err}
}

// Begin implements models.Progress.
func (t *transfer) Begin(_ int, have, total int64) {
	if t.out == nil {
		return
	}
	t.clear()
	t.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(t.out),
		progressbar.OptionSetWidth(24),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowTotalBytes(true),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(65*time.Millisecond))
	// A bar that cannot be drawn is no reason to stop.
	_ = t.bar.Set64(have)
}

// File implements models.Progress.
func (t *transfer) File(name string) {
	if t.bar != nil {
		t.bar.Describe(name)
	}
}

// Advance implements models.Progress.
func (t *transfer) Advance(bytes int64) {
	if t.bar != nil {
		_ = t.bar.Add64(bytes)
	}
}

// Waiting implements models.Progress. A wait can come before there is a bar; one that there is comes back when it goes on.
func (t *transfer) Waiting(reason error, wait time.Duration) {
	if t.out == nil {
		return
	}
	if t.bar != nil {
		_ = t.bar.Clear()
	}
	fmt.Fprintf(t.out, "infill: %s; next try in %s\n", oneLine(reason.Error()), wait.Round(100*time.Millisecond))
}

// Converting implements models.Progress.
func (t *transfer) Converting() {
	if t.out == nil {
		return
	}
	t.clear()
	fmt.Fprintln(t.out, "infill: converting the weights of torch.save to safetensors")
}

// clear takes the bar off the terminal.
func (t *transfer) clear() {
	if t.bar != nil {
		_ = t.bar.Clear()
		t.bar = nil
	}
}
