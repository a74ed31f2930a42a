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
	"infill/internal/hub"
	"infill/lm"
)

const (
	// patience is the time before a bar shows: one that only flickers disturbs.
	patience = 700 * time.Millisecond
	// Pause is the usual time between two lines about a run without a terminal.
	Pause = time.Minute

	barWidth = 10 // columns of the bar itself
)

// Bar shows the progress of a command as a bar if standard error is a terminal.
// Otherwise, as in a batch system's log, it prints a line each pause, if there is
// one. A quiet Bar shows nothing. Several goroutines may use it.
type Bar struct {
	lock  sync.Mutex
	out   io.Writer     // the terminal, or nil if there is none
	log   io.Writer     // where lines go, or nil for no lines
	pause time.Duration // between two lines
	start time.Time
	told  time.Time // when the last line was printed
	drawn *progressbar.ProgressBar
}

// NewBar returns a bar that shows nothing until Tell has run for a while.
func NewBar(s *terminal.Streams, quiet bool, pause time.Duration) *Bar {
	now := time.Now()
	b := &Bar{pause: pause, start: now, told: now}
	switch {
	case quiet:
	case s.ErrTerminal:
		b.out = s.Err
	case pause > 0:
		b.log = s.Err
	}
	return b
}

// Tell shows that done of total is done; describe says more about it.
func (b *Bar) Tell(done, total int64, describe func() string) {
	b.lock.Lock()
	defer b.lock.Unlock()
	last := done == total && b.told.After(b.start) // of lines before
	if b.log != nil && (last || time.Since(b.told) >= b.pause) {
		b.told = time.Now()
		fmt.Fprintf(b.log, "infill: %s\n", describe())
	}
	if b.out == nil || b.drawn == nil && time.Since(b.start) < patience {
		return
	}
	if b.drawn == nil {
		b.drawn = progressbar.NewOptions64(total, progressbar.OptionSetWriter(b.out),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionSetWidth(barWidth), progressbar.OptionSetPredictTime(false))
	}
	columns := 80
	f, ok := b.out.(*os.File)
	if ok { // the user may have resized it
		width, _, err := term.GetSize(int(f.Fd()))
		if err == nil && width > 0 {
			columns = width
		}
	}
	// The terminal would break a longer line, and updates would stack up.
	b.drawn.Describe(ansi.Truncate(describe(), max(0, columns-barWidth-len(" 100% ||  ")), "…"))
	// If the bar cannot be drawn, the run continues.
	_ = b.drawn.Set64(done)
}

// Say prints a line in place of the bar, if there is a terminal.
func (b *Bar) Say(format string, args ...any) {
	b.Clear()
	if b.out != nil {
		fmt.Fprintf(b.out, "infill: %s\n", OneLine(fmt.Sprintf(format, args...)))
	}
}

// Clear removes the bar from the terminal; the next Tell draws a new one.
func (b *Bar) Clear() {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.drawn != nil {
		_ = b.drawn.Clear()
		b.drawn = nil
	}
	b.start = time.Now()
}

// RoundDuration formats d in at most two parts: 8s, 2m10s, 3h20m.
func RoundDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

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

// NewTransfer returns a Transfer with its progress on bar.
func NewTransfer(bar *Bar, lines io.Writer) *Transfer { return &Transfer{bar: bar, lines: lines} }

func (t *Transfer) Begin(file string, have, total int64) {
	t.file = file
	t.have = have
	t.total = total
}

func (t *Transfer) Advance(bytes int64) {
	t.have += bytes
	t.bar.Tell(t.have, t.total, func() string {
		if t.total < 0 {
			return fmt.Sprintf("%s, %s", t.file, BytesText(t.have))
		}
		return fmt.Sprintf("%s, %s of %s", t.file, BytesText(t.have), BytesText(t.total))
	})
}

func (t *Transfer) Waiting(reason error, wait time.Duration) {
	t.bar.Say("%s; next try in %s", reason, wait.Round(100*time.Millisecond))
}

func (t *Transfer) Say(line string) {
	t.bar.Clear()
	fmt.Fprintln(t.lines, OneLine(line))
}

// FetchProgress shows how onnxruntime is fetched; it is nil if quiet is true.
func FetchProgress(s *terminal.Streams, quiet bool) lm.FetchProgress {
	if quiet {
		return nil
	}
	return NewTransfer(NewBar(s, false, 0), s.Err)
}

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
