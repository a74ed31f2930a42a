package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"infill/infill"
)

// watched tells what its screen shows, the last frame alone.
type watched struct {
	*model
	shows chan string
}

func (w *watched) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	_, command := w.model.Update(message)
	return w, command
}

func (w *watched) View() tea.View {
	v := w.model.View()
	select {
	case <-w.shows:
	default:
	}
	w.shows <- ansi.Strip(v.Content)
	return v
}

// TestSession is a whole session in a program with a real event loop: type,
// sample, pin, resample, filter, save, pick.
func TestSession(t *testing.T) {
	c, filler := testConfig(t, "")
	path := filepath.Join(t.TempDir(), "kept.txt")
	w := &watched{model: newModel(t.Context(), c), shows: make(chan string, 1)}
	tm := teatest.NewTestModel(t, w, teatest.WithInitialTermSize(100, 30))
	see := func(what ...string) {
		t.Helper()
		last, deadline := "", time.After(20*time.Second)
		for {
			select {
			case last = <-w.shows:
				if !slices.ContainsFunc(what, func(text string) bool { return !strings.Contains(last, text) }) {
					return
				}
			case <-deadline:
				t.Fatalf("%q never came:\n%s", what, last)
			}
		}
	}
	see("write a sentence, with _ where a word is wanted")
	tm.Type("she opened the _ and looked _ .")
	see("she opened the [MASK] and looked [MASK] .", "✓")
	tm.Send(keyOf("tab"))
	tm.Type("p")
	see("▎ she opened the window and looked [MASK] .", "✓")
	tm.Type("r")
	see("seed 12", "✓")
	tm.Type("/inside")
	see("filter", "found")
	tm.Send(keyOf("enter"))
	tm.Type("y")
	see("copied, if the terminal allows it")
	tm.Type("fw")
	see("save 1 to")
	tm.Type(path)
	tm.Send(keyOf("enter"))
	see("1 fill saved to")
	tm.Send(keyOf("enter"))
	m := tm.FinalModel(t, teatest.WithFinalTimeout(20*time.Second)).(*watched).model
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if m.picked == nil || m.picked.Text != "she opened the window and looked inside ." {
		t.Errorf("picked %+v", m.picked)
	}
	if out, err := io.ReadAll(tm.FinalOutput(t)); err != nil ||
		!bytes.Contains(out, []byte(ansi.SetSystemClipboard(m.picked.Text))) {
		t.Errorf("the terminal was not told to copy: %v", err)
	}
	saved, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := m.picked.Text + "\n"; string(saved) != want {
		t.Errorf("saved %q, want %q", saved, want)
	}
	if !strings.Contains(m.picked.Result.Signature, "|pins:") || *m.picked.Result.Seed != 12 {
		t.Errorf("the picked fill's run is %q, seed %d", m.picked.Result.Signature, *m.picked.Result.Seed)
	}
	if n := filler.closed.Load(); n != 1 {
		t.Errorf("the model was closed %d times", n)
	}
}

// TestLeavingStopsTheModel quits while the model computes: its call is cancelled
// at once, and neither a goroutine nor the model stays behind.
func TestLeavingStopsTheModel(t *testing.T) {
	leave := map[string]func(p *tea.Program, cancel context.CancelFunc){
		"quit":    func(p *tea.Program, _ context.CancelFunc) { p.Send(keyOf("ctrl+c")) },
		"hang-up": func(_ *tea.Program, cancel context.CancelFunc) { cancel() },
		"edit and go": func(p *tea.Program, _ context.CancelFunc) {
			p.Send(keyOf("i"))
			p.Send(keyOf("x"))
			p.Send(keyOf("ctrl+c"))
		},
		"stop and go":  func(p *tea.Program, _ context.CancelFunc) { p.Send(keyOf("x")); p.Send(keyOf("ctrl+c")) },
		"other option": func(p *tea.Program, _ context.CancelFunc) { p.Send(keyOf("r")); p.Send(keyOf("ctrl+c")) },
	}
	for name, act := range leave {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			entered, left := make(chan struct{}, 100), make(chan struct{}, 100)
			model := &fakeModel{before: func(ctx context.Context) error {
				entered <- struct{}{}
				<-ctx.Done()
				left <- struct{}{}
				return ctx.Err()
			}}
			filler := newFakeFiller(t, model)
			c, _ := testConfig(t, two)
			c.Open = func(context.Context, string) (Filler, error) { return filler, nil }
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := newModel(ctx, c)
			p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(nil), tea.WithOutput(io.Discard),
				tea.WithoutSignalHandler())
			ended := make(chan error, 1)
			go func() {
				_, err := p.Run()
				ended <- errors.Join(tidy(ctx, err), m.close())
			}()
			p.Send(tea.WindowSizeMsg{Width: 80, Height: 24})
			<-entered
			act(p, cancel)
			if err := <-ended; err != nil && (name != "hang-up" || !errors.Is(err, context.Canceled)) {
				t.Errorf("the screen ended with %v", err)
			}
			// close waits for all commands, so every call that began has ended.
			if begun, over := model.calls.Load(), int64(len(left)); begun != over {
				t.Errorf("%d calls of the model began and %d ended", begun, over)
			}
			if n := filler.closed.Load(); n != 1 {
				t.Errorf("the model was closed %d times", n)
			}
			// bubbletea's own goroutines end in their own time.
			deadline := time.Now().Add(10 * time.Second)
			for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
				time.Sleep(5 * time.Millisecond)
			}
			if after := runtime.NumGoroutine(); after > before {
				stacks := make([]byte, 1<<16)
				t.Errorf("%d goroutines before, %d after:\n%s", before, after, stacks[:runtime.Stack(stacks, true)])
			}
		})
	}
}

// TestRun checks what the screen hands back, and that the terminal is left clean.
func TestRun(t *testing.T) {
	c, filler := testConfig(t, two)
	in, type_ := io.Pipe()
	var out bytes.Buffer
	c.Input, c.Output, c.Theme = in, &out, "auto"
	filler.holdAt = 30
	go func() {
		<-filler.held
		_, _ = type_.Write([]byte("q"))
		type_.Close()
	}()
	picked, err := Run(t.Context(), c)
	if err != nil || picked != nil {
		t.Errorf("got %v, %v: nothing was picked", picked, err)
	}
	for _, sequence := range []string{"\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h",
		ansi.RequestBackgroundColor} {
		if !strings.Contains(out.String(), sequence) {
			t.Errorf("%q was not written", sequence)
		}
	}
}

func TestPick(t *testing.T) {
	t.Run("over", func(t *testing.T) {
		c, _ := testConfig(t, two)
		d := newDriver(t, c, 80, 24)
		d.settle()
		d.keys("down", "enter")
		d.settle()
		p := d.model.picked
		if !d.quit || p == nil || len(p.Result.Fills) != 1 || p.Result.Fills[0].Text != p.Text ||
			p.Result.Fills[0].Rank != 2 || p.Result.Signature == "" {
			t.Errorf("picked %+v", p)
		}
	})
	t.Run("not over", func(t *testing.T) {
		c, filler := testConfig(t, two)
		filler.holdAt = 30
		d := newDriver(t, c, 80, 24)
		d.until("fills", func() bool { return d.model.run.snapshot != nil && len(d.model.fills.listed) > 3 })
		d.keys("enter")
		p := d.model.picked
		if p == nil || p.Result.Signature != "" || len(p.Result.Warnings) != 1 {
			t.Errorf("picked %+v", p)
		}
	})
	t.Run("gibbs not over", func(t *testing.T) {
		c, filler := testConfig(t, two)
		filler.holdAt = 30
		c.Options.Sampler = "gibbs"
		d := newDriver(t, c, 80, 24)
		d.until("fills",
			func() bool { return d.model.run.snapshot != nil && d.model.run.snapshot.Step == 30 })
		if frame := ansi.Strip(d.model.screen()); !strings.Contains(frame, "?") {
			t.Errorf("an unknown log-likelihood is not shown as such:\n%s", frame)
		}
	})
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 80, 24)
	d.settle()
	save := func(name string) string {
		t.Helper()
		d.keys("w")
		d.model.prompt.input.SetValue(filepath.Join(dir, name))
		d.keys("enter")
		d.settle()
		return ansi.Strip(d.model.screen())
	}
	d.keys("f", "down", "down", "f")
	if frame := save("a.txt"); !strings.Contains(frame, "2 fills saved") {
		t.Errorf("no word of the saved file:\n%s", frame)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if want := d.model.fills.favourites[0].Text + "\n" + d.model.fills.favourites[1].Text + "\n"; string(text) != want {
		t.Errorf("saved %q, want %q", text, want)
	}
	save("b.jsonl")
	line, err := os.ReadFile(filepath.Join(dir, "b.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var result infill.Result
	if err := json.Unmarshal(line, &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Fills) != 2 || result.Fills[1].Rank != 3 || result.Template != two || result.Signature == "" ||
		bytes.Count(line, []byte("\n")) != 1 {
		t.Errorf("saved %s", line)
	}
	// A file that is there is replaced only when told twice.
	if err := os.WriteFile(filepath.Join(dir, "c.txt"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if frame := save("c.txt"); !strings.Contains(frame, "is there already") {
		t.Errorf("no question:\n%s", frame)
	}
	if kept, _ := os.ReadFile(filepath.Join(dir, "c.txt")); string(kept) != "mine\n" {
		t.Errorf("the file became %q unasked", kept)
	}
	d.keys("enter")
	d.settle()
	if kept, _ := os.ReadFile(filepath.Join(dir, "c.txt")); string(kept) != string(text) {
		t.Errorf("the file is %q, want %q", kept, text)
	}
	if frame := save("no/such/folder.txt"); !strings.Contains(frame, "no such file") {
		t.Errorf("no word of the failure:\n%s", frame)
	}
	d.keys("esc")
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%d files are left, want 3: %v", len(entries), entries)
	}
}
