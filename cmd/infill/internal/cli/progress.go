package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"infill/cmd/infill/internal/terminal"
	"infill/infill"
	"infill/internal/eval"
	"infill/models"
)

// patience is how long a run may take before it shows a bar: one that only
// flickers disturbs.
const patience = 700 * time.Millisecond

// Bar is a progress bar on the terminal behind standard error; where there is
// none, or silence was asked for, it shows nothing.
type Bar struct {
	out   io.Writer // nil: shows nothing
	start time.Time
	drawn *progressbar.ProgressBar
}

// NewBar makes a bar that shows on a terminal alone.
func NewBar(s *terminal.Streams, quiet bool) Bar {
	b := Bar{start: time.Now()}
	if s.ErrTerminal && !quiet {
		b.out = s.Err
	}
	return b
}

// Due reports whether there is a bar, or it is time for one.
func (b *Bar) Due() bool {
	return b.out != nil && (b.drawn != nil || time.Since(b.start) >= patience)
}

// begin makes a bar, with the options beside those of all.
func (b *Bar) begin(total int64, options ...progressbar.Option) {
	b.drawn = progressbar.NewOptions64(total, append([]progressbar.Option{
		progressbar.OptionSetWriter(b.out),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(65 * time.Millisecond),
	}, options...)...)
}

// Draw shows done of total after a description, with a bar made with the options
// if there is none yet.
func (b *Bar) Draw(description string, done, total int, options ...progressbar.Option) {
	if b.drawn == nil {
		b.begin(int64(total), options...)
	}
	b.drawn.Describe(description)
	// A bar that cannot be drawn is no reason to stop the run.
	_ = b.drawn.Set(done)
}

// Clear takes the bar off the terminal; the next one begins again.
func (b *Bar) Clear() {
	if b.drawn != nil {
		_ = b.drawn.Clear()
		b.drawn = nil
	}
	b.start = time.Now()
}

// progress shows a run's steps. Several texts may be at work.
type progress struct {
	lock sync.Mutex
	bar  Bar
}

// NewProgress makes the bar of a fill.
func NewProgress(s *terminal.Streams, quiet bool) *progress { return &progress{bar: NewBar(s, quiet)} }

// Observe is called with every step of a run.
func (p *progress) Observe(step infill.Progress) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.bar.Due() {
		p.bar.Draw("sampling", step.Step, step.Steps, progressbar.OptionSetWidth(24),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))
	}
}

// Clear takes the bar off the terminal.
func (p *progress) Clear() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.bar.Clear()
}

// transfer shows how far a model has been fetched.
type transfer struct {
	Bar
	announced bool // its size is reported beforehand, also in a pipe
	err       io.Writer
}

var _ models.Progress = (*transfer)(nil)

// NewTransfer makes the bar of a transfer.
func NewTransfer(s *terminal.Streams, quiet bool) *transfer {
	return &transfer{Bar: NewBar(s, quiet), err: s.Err}
}

// Begin implements models.Progress.
func (t *transfer) Begin(_ int, have, total int64) {
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

// File implements models.Progress.
func (t *transfer) File(name string) {
	if t.drawn != nil {
		t.drawn.Describe(name)
	}
}

// Advance implements models.Progress.
func (t *transfer) Advance(bytes int64) {
	if t.drawn != nil {
		_ = t.drawn.Add64(bytes)
	}
}

// Waiting implements models.Progress. A wait can come before there is a bar; one
// that there is comes back when it goes on.
func (t *transfer) Waiting(reason error, wait time.Duration) {
	if t.drawn != nil {
		_ = t.drawn.Clear()
	}
	t.tell("%s; next try in %s", reason, wait.Round(100*time.Millisecond))
}

// Converting implements models.Progress.
func (t *transfer) Converting() {
	t.Clear()
	t.tell("converting the weights of torch.save to safetensors")
}

// tell prints a line where a bar would stand.
func (t *transfer) tell(format string, args ...any) {
	if t.out != nil {
		fmt.Fprintf(t.out, "infill: %s\n", OneLine(fmt.Sprintf(format, args...)))
	}
}

// evalProgress shows how far an evaluation is: on a terminal as a bar, and else,
// in the log of a batch system, as a line now and then.
type evalProgress struct {
	Bar
	log    io.Writer // nil: no lines
	pause  time.Duration
	models int
	told   time.Time
}

// NewEvalProgress makes the bar of an evaluation.
func NewEvalProgress(s *terminal.Streams, quiet bool, models int) *evalProgress {
	p := &evalProgress{Bar: NewBar(s, quiet), pause: time.Minute, models: models, told: time.Now()}
	if !s.ErrTerminal && !quiet {
		p.log = s.Err
	}
	return p
}

// Observe is called with every step.
func (p *evalProgress) Observe(step eval.Progress) {
	if p.log != nil && time.Since(p.told) >= p.pause {
		p.told = time.Now()
		fmt.Fprintf(p.log, "infill: %s\n", p.describe(step))
	}
	if !p.Due() {
		return
	}
	// A fill counts a thousand, so that the bar moves within one.
	const unit = 1000
	done := step.Done*unit + unit*step.Step/max(1, step.Steps)
	// A line that is too long would be drawn below itself again and again.
	description := ansi.Truncate(p.describe(step), max(0, p.columns()-BarWidth-len(" 100% ||  ")), "…")
	p.Draw(description, done, step.Total*unit, progressbar.OptionSetWidth(BarWidth),
		progressbar.OptionSetPredictTime(false))
}

// BarWidth is that of the bar alone.
const BarWidth = 10

// columns are those of the terminal that is drawn on, which may have been resized.
func (p *evalProgress) columns() int {
	const usual = 80
	if f, ok := p.out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return usual
}

// describe says in one line where a run is.
func (p *evalProgress) describe(step eval.Progress) string {
	if step.Scoring {
		return fmt.Sprintf("all %d chains of %d sentences are done: scoring", step.Total*step.Chains, step.Sentences)
	}
	text := fmt.Sprintf("sentence %d of %d, %d of %d chains", step.Sentence+1, step.Sentences, step.Done*step.Chains,
		step.Total*step.Chains)
	if step.ChainsPerSecond > 0 {
		digits := 0
		if step.ChainsPerSecond < 10 {
			digits = 1
		}
		text += " (" + strconv.FormatFloat(step.ChainsPerSecond, 'f', digits, 64) + "/s)"
	}
	if step.SecondsLeft != nil {
		text += ", " + RoundDuration(time.Duration(*step.SecondsLeft*float64(time.Second))) + " left"
	}
	text += ", " + OneLine(step.Method)
	if p.models > 1 {
		text += " " + OneLine(step.Model)
	}
	return text
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

// AddMaxTime adds the flag that bounds a fetch.
func AddMaxTime(cmd *cobra.Command, maxTime *time.Duration) {
	cmd.Flags().DurationVar(maxTime, "max-time", *maxTime, "how long one fetch may take in all; 0: as long as it likes")
}

// FetchOptions say where from to fetch, with progress on the terminal.
func FetchOptions(bar *transfer, maxTime time.Duration) models.HubOptions {
	o := models.HubOptionsFromEnvironment()
	o.Progress, o.Total = bar, maxTime
	if maxTime <= 0 {
		o.Total = -1
	}
	return o
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
