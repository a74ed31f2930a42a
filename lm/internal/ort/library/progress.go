package library

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress tells the user of a fetch: a moving line on a terminal, erased at the end; elsewhere only lines that stay.
type progress struct {
	w        io.Writer
	terminal bool
	bar      *progressbar.ProgressBar // its methods lock
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w}
	if file, ok := w.(*os.File); ok {
		p.terminal = term.IsTerminal(int(file.Fd()))
	}
	return p
}

// line writes a line that stays.
func (p *progress) line(format string, arguments ...any) {
	if p.w != nil {
		fmt.Fprintf(p.w, format+"\n", arguments...)
	}
}

// begin starts a moving line for a source; size in bytes, or -1 when only time can be told.
func (p *progress) begin(source string, size int64) {
	p.end()
	if p.w == nil || !p.terminal {
		return
	}
	p.bar = progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(p.w),
		progressbar.OptionSetDescription("onnxruntime from "+source),
		progressbar.OptionShowBytes(size >= 0),
		progressbar.OptionSetWidth(24),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0), // else a goroutine of the bar's draws on after its end
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionSetPredictTime(size > 0),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	_ = p.bar.RenderBlank() // a progress line that cannot be written is no reason to stop
}

// Write counts bytes that have come.
func (p *progress) Write(b []byte) (int, error) {
	if p.bar != nil {
		_ = p.bar.Add(len(b))
	}
	return len(b), nil
}

// at says how many bytes have come in all. Clients leave more than the file itself, so a bar stops before its end.
func (p *progress) at(bytes int64) {
	switch {
	case p.bar == nil:
	case p.bar.GetMax64() > 0:
		_ = p.bar.Set64(min(bytes, p.bar.GetMax64()-1))
	default:
		_ = p.bar.Add(0) // turns the spinner
	}
}

// end erases the moving line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
		p.bar = nil
	}
}
