package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// watched sends the last frame that its screen shows.
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
// fill, pin, draw again, filter, copy, pick.
func TestSession(t *testing.T) {
	c, filler := testConfig(t, "")
	c.Options = chainOptions("dmala")
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
	const first = "she opened the window and looked window ."
	tm.Type("y")
	see("copied, if the terminal allows it")
	tm.Type("/inside")
	see("filter", "found")
	tm.Send(keyOf("enter"))
	see("/inside")
	tm.Send(keyOf("enter"))
	m := tm.FinalModel(t, teatest.WithFinalTimeout(20*time.Second)).(*watched).model
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if m.picked != "she opened the window and looked inside ." {
		t.Errorf("picked %+v", m.picked)
	}
	if out, err := io.ReadAll(tm.FinalOutput(t)); err != nil ||
		!bytes.Contains(out, []byte(ansi.SetSystemClipboard(first))) {
		t.Errorf("the terminal was not told to copy: %v", err)
	}
	if r := m.run.shown.result; !strings.Contains(r.Signature, "|slot:1=window") || *r.Seed != 12 {
		t.Errorf("the picked fill's run is %q, seed %d", r.Signature, *r.Seed)
	}
	if n := filler.closed.Load(); n != 1 {
		t.Errorf("the model was closed %d times", n)
	}
}

// TestLeavingStopsTheModel quits while the model computes: its call is
// cancelled at once, and neither a goroutine nor the model stays behind.
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
			model := newFake()
			model.Before = func(ctx context.Context) error {
				entered <- struct{}{}
				<-ctx.Done()
				left <- struct{}{}
				return ctx.Err()
			}
			filler := newFakeFiller(t, model)
			c, _ := testConfig(t, two)
			c.Open = openerOf(filler)
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
			if begun, over := model.Calls.Load(), int64(len(left)); begun != over {
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
	c.Input, c.Output, c.Theme, c.Options = in, &out, "auto", chainOptions("dmala")
	filler.holdAt = 30
	go func() {
		<-filler.held
		_, _ = type_.Write([]byte("q"))
		type_.Close()
	}()
	picked, err := Run(t.Context(), c)
	if err != nil || picked != "" {
		t.Errorf("got %q, %v: nothing was picked", picked, err)
	}
	for _, sequence := range []string{"\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l", "\x1b[?25h",
		ansi.RequestBackgroundColor} {
		if !strings.Contains(out.String(), sequence) {
			t.Errorf("%q was not written", sequence)
		}
	}
}

// TestPick hands back the picked fill, also of a run that is not over.
func TestPick(t *testing.T) {
	c, _ := testConfig(t, two)
	d := newDriver(t, c, 80, 24)
	d.settle()
	d.keys("down", "enter")
	d.settle()
	if want := d.model.run.shown.result.Fills[1].Text; !d.quit || d.model.picked != want {
		t.Errorf("picked %q, want %q", d.model.picked, want)
	}
	c, filler := testConfig(t, two)
	c.Options = chainOptions("dmala")
	filler.holdAt = 30
	d = newDriver(t, c, 80, 24)
	d.until("fills", func() bool { return d.model.run.shown != nil && len(d.model.fills.listed) > 3 })
	d.keys("enter")
	if p := d.model.picked; p == "" || d.model.run.shown.over {
		t.Errorf("picked %q of a run that is over: %t", p, d.model.run.shown.over)
	}
}

// TestAnotherModel changes the model, which closes the one before, and says so
// where there is none of a name.
func TestAnotherModel(t *testing.T) {
	c, first := testConfig(t, two)
	second := newFakeFiller(t, newFake())
	c.Models = []string{"toy", "other"}
	c.Open = func(_ context.Context, name string) (Filler, error) {
		switch name {
		case "toy":
			return first, nil
		case "other":
			return second, nil
		}
		return nil, &infill.OptionError{Option: "model", Reason: "there is no \x1b[31m" + name}
	}
	d := newDriver(t, c, 100, 30)
	d.settle()
	d.keys("o", "up", "right", "enter")
	d.settle()
	if first.closed.Load() != 1 || d.model.filler != Filler(second) || len(d.model.fills.listed) == 0 {
		t.Error("the model did not change")
	}
	d.set("model", "nowhere")
	d.shows("there is no ␛[31mnowhere")
	if strings.Contains(d.model.screen(), "\x1b[31m") || second.closed.Load() != 0 {
		t.Error("a model that is not there left its mark")
	}
}

func TestNoModel(t *testing.T) {
	c, _ := testConfig(t, two)
	c.Open = func(context.Context, string) (Filler, error) {
		return nil, &infill.OptionError{Option: "model", Reason: "model.safetensors is damaged"}
	}
	d := newDriver(t, c, 80, 24)
	d.settle()
	d.shows("model.safetensors is damaged", "no model", "press o for another model")
	d.keys("3", "r", "2", "p", "1", "enter", "y", "q")
	d.settle()
	if !d.quit {
		t.Error("q does not quit")
	}
}

// TestFaults: what is wrong with a template is said, and goes when it is
// mended; the fills go, too.
func TestFaults(t *testing.T) {
	c, _ := testConfig(t, "she opened the door .")
	d := newDriver(t, c, 100, 24)
	d.settle()
	d.shows("no blank yet: i writes, then _ inserts a blank", "waiting for a template")
	for text, want := range map[string]string{"a [MASK:99] .": "[MASK:99]", "a [MASK= b": "no blank yet",
		"a [MASK~door|window] .": "✓", "she unfathomed the [MASK] .": "words outside the model's vocabulary"} {
		d.model.editor = newEditor(text)
		d.run(d.model.edited())
		d.settle()
		d.shows(want)
	}
	d.set("sampler", "dmala")
	d.model.editor = newEditor("a [MASK:1-2] .")
	d.run(d.model.edited())
	d.settle()
	d.shows("chains move blanks of one length")
}
