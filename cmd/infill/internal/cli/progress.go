package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/models/hub"
)

const (
	// patience is how long a run may take before it shows a bar: one that only
	// flickers disturbs.
	patience = 700 * time.Millisecond
	// pause is how often a long run prints a line where no terminal shows a bar.
	pause = time.Minute

	barWidth = 10 // of the bar alone
)

// Bar tells how far a command is: on the terminal behind standard error as a bar, else, in the log of a batch system,
// as a line a minute if lines are wanted. It shows nothing where silence was asked for.
type Bar struct {
	out   io.Writer // the terminal; nil: none
	log   io.Writer // nil: no lines
	start time.Time
	told  time.Time // the last line
	drawn *progressbar.ProgressBar
}

// NewBar makes a bar.
func NewBar(s *terminal.Streams, quiet, lines bool) *Bar {
	b := &Bar{start: time.Now(), told: time.Now()}
	switch {
	case quiet:
	case s.ErrTerminal:
		b.out = s.Err
	case lines:
		b.log = s.Err
	}
	return b
}

// due reports whether there is a bar, or it is time for one.
func (b *Bar) due() bool { return b.out != nil && (b.drawn != nil || time.Since(b.start) >= patience) }

// begin makes a bar, with further options.
func (b *Bar) begin(total int64, options ...progressbar.Option) {
	b.drawn = progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(b.out),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(65 * time.Millisecond),
	}, options...)...)
}

// Tell shows done of total, where describe says in one line where the run is.
func (b *Bar) Tell(done, total int, describe func() string) {
	if b.log != nil && time.Since(b.told) >= pause {
		b.told = time.Now()
		fmt.Fprintf(b.log, "infill: %s\n", describe())
	}
	if !b.due() {
		return
	}
	if b.drawn == nil {
		b.begin(int64(total), progressbar.OptionSetWidth(barWidth), progressbar.OptionSetPredictTime(false))
	}
	// A line that is too long would be drawn below itself again and again.
	b.drawn.Describe(ansi.Truncate(describe(), max(0, b.columns()-barWidth-len(" 100% ||  ")), "…"))
	// A bar that cannot be drawn is no reason to stop the run.
	_ = b.drawn.Set(done)
}

// columns returns the width of the terminal, which the user may have resized.
func (b *Bar) columns() int {
	const usual = 80
	if f, ok := b.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return usual
}

// Clear takes the bar off the terminal; the next one begins again.
func (b *Bar) Clear() {
	if b.drawn != nil {
		_ = b.drawn.Clear()
		b.drawn = nil
	}
	b.start = time.Now()
}

// Steps shows a fill's steps. Several texts may be at work.
type Steps struct {
	lock sync.Mutex
	bar  *Bar
}

// NewSteps makes the bar of a fill.
func NewSteps(s *terminal.Streams, quiet bool) *Steps { return &Steps{bar: NewBar(s, quiet, false)} }

// Observe is called with every step of a run.
func (p *Steps) Observe(step infill.Progress) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.bar.due() {
		return
	}
	if p.bar.drawn == nil {
		p.bar.begin(int64(step.Steps), progressbar.OptionSetDescription("sampling"), progressbar.OptionSetWidth(24),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))
	}
	_ = p.bar.drawn.Set(step.Step)
}

// Clear takes the bar off the terminal.
func (p *Steps) Clear() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.bar.Clear()
}

// Transfer shows how far a model has been fetched.
type Transfer struct {
	*Bar
	announced bool // its size is reported beforehand, also in a pipe
	err       io.Writer
}

var _ hub.Progress = (*Transfer)(nil)

// NewTransfer makes the bar of a transfer.
func NewTransfer(s *terminal.Streams, quiet bool) *Transfer {
	return &Transfer{Bar: NewBar(s, quiet, false), err: s.Err}
}

// Begin implements hub.Progress.
func (t *Transfer) Begin(_ int, have, total int64) {
	if t.announced {
		here := ""
		if have > 0 {
			here = ", of which " + BytesText(have) + " are here"
		}
		fmt.Fprintf(t.err, "infill: fetching %s%s\n", BytesText(total), here)
	}
	if t.out != nil {
		t.Clear()
		t.begin(total, progressbar.OptionSetWidth(24), progressbar.OptionShowBytes(true),
			progressbar.OptionShowTotalBytes(true), progressbar.OptionSetPredictTime(true))
		_ = t.drawn.Set64(have)
	}
}

// File implements hub.Progress.
func (t *Transfer) File(name string) {
	if t.drawn != nil {
		t.drawn.Describe(name)
	}
}

// Advance implements hub.Progress.
func (t *Transfer) Advance(bytes int64) {
	if t.drawn != nil {
		_ = t.drawn.Add64(bytes)
	}
}

// Waiting implements hub.Progress. A wait can come before there is a bar; one
// that there is comes back when it goes on.
func (t *Transfer) Waiting(reason error, wait time.Duration) {
	if t.drawn != nil {
		_ = t.drawn.Clear()
	}
	t.tell("%s; next try in %s", reason, wait.Round(100*time.Millisecond))
}

// Converting implements hub.Progress.
func (t *Transfer) Converting() {
	t.Clear()
	t.tell("converting the weights of torch.save to safetensors")
}

// tell prints a line where a bar would stand.
func (t *Transfer) tell(format string, args ...any) {
	if t.out != nil {
		fmt.Fprintf(t.out, "infill: %s\n", OneLine(fmt.Sprintf(format, args...)))
	}
}

// RoundDuration is a duration to two parts at most: 8s, 2m10s, 3h20m.
func RoundDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// BytesText is a size for people.
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
