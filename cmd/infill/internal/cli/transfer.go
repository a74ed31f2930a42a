package cli

import (
	"fmt"
	"io"
	"time"

	"infill/cmd/infill/internal/terminal"
	"infill/lm"
	"infill/models/hub"
)

// Transfer shows the progress of a download.
type Transfer struct {
	bar         *Bar
	lines       io.Writer // where Say writes
	file        string
	have, total int64 // bytes; total is negative if it is not known
}

var (
	_ hub.Progress     = (*Transfer)(nil)
	_ lm.FetchProgress = (*Transfer)(nil)
)

// NewTransfer returns a Transfer that shows the progress on bar, and writes
// lines.
func NewTransfer(bar *Bar, lines io.Writer) *Transfer { return &Transfer{bar: bar, lines: lines} }

// Begin implements hub.Progress.
func (t *Transfer) Begin(file string, have, total int64) {
	t.file = file
	t.have = have
	t.total = total
}

// Advance implements hub.Progress.
func (t *Transfer) Advance(bytes int64) {
	t.have += bytes
	t.bar.Tell(t.have, t.total, func() string {
		if t.total < 0 {
			return fmt.Sprintf("%s, %s", t.file, BytesText(t.have))
		}
		return fmt.Sprintf("%s, %s of %s", t.file, BytesText(t.have), BytesText(t.total))
	})
}

// Waiting implements hub.Progress.
func (t *Transfer) Waiting(reason error, wait time.Duration) {
	t.bar.Say("%s; next try in %s", reason, wait.Round(100*time.Millisecond))
}

// Say implements lm.FetchProgress.
func (t *Transfer) Say(line string) {
	t.bar.Clear()
	fmt.Fprintln(t.lines, OneLine(line))
}

// FetchProgress shows on standard error how the onnxruntime library is fetched.
// It returns nil if quiet is true.
func FetchProgress(s *terminal.Streams, quiet bool) lm.FetchProgress {
	if quiet {
		return nil
	}
	return NewTransfer(NewBar(s, false, false), s.Err)
}

// BytesText returns a size in words.
func BytesText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
