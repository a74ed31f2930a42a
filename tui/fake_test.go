package tui

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/lmtest"
)

func vocabulary() []string {
	return []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",",
		"the", "she", "opened", "and", "looked", "a", "night", "it", "was",
		"door", "window", "letter", "box", "book", "drawer", "curtain", "parcel",
		"up", "down", "out", "away", "inside", "back", "around", "closer",
		"##ly", "naïve", "日本", "cafe"}
}

// newFake makes the fake model, which prefers the words from the nouns on.
func newFake() *lmtest.Model {
	const nouns = 16
	m := lmtest.New(len(vocabulary()), 64)
	m.Info.Name = "toy"
	m.Weight = func(token int) float64 {
		if token < nouns {
			return -6
		}
		return 1.5*math.Sin(2.3*float64(token)) - 0.02*float64(token)
	}
	m.Bonds = func(token int) bool { return token >= nouns }
	return m
}

var _ infill.LanguageModel = (*lmtest.Model)(nil)

// fakeFiller is the real pipeline over the fake model, with a run that can be
// held at a step, and without the seconds that no two runs share.
type fakeFiller struct {
	*infill.Filler
	holdAt int // step, -1 for none
	held   chan struct{}
	gone   chan struct{} // closed when a held run was let go
	once   sync.Once
	clock  clock
	closed atomic.Int64
}

func newFakeFiller(t testing.TB, m *lmtest.Model) *fakeFiller {
	t.Helper()
	tokenizer, err := lmtest.Tokenizer(vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return &fakeFiller{Filler: infill.New(m, tokenizer), holdAt: -1, held: make(chan struct{}),
		gone: make(chan struct{})}
}

func (f *fakeFiller) Fill(ctx context.Context, r infill.Request,
	observe func(infill.Progress)) (*infill.Result, error) {
	result, err := f.Filler.Fill(ctx, r, func(p infill.Progress) {
		if p.Step%5 == 0 || p.Step == f.holdAt {
			f.clock.minutes.Add(1)
		}
		observe(p)
		if p.Step == f.holdAt {
			f.once.Do(func() { close(f.held) })
			<-ctx.Done()
		}
	})
	if result != nil {
		result.Stats.Seconds = 1.25
	}
	return result, err
}

func (f *fakeFiller) Close() error {
	f.closed.Add(1)
	return f.Filler.Close()
}

// clock stands still but for every fifth step of runs and the held one, which
// take a minute, so that each of them makes a snapshot.
type clock struct{ minutes atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(60*c.minutes.Load(), 0) }

// waitless gives a test a clock that goes on when everything waits for it.
func waitless(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

func testConfig(t testing.TB, template string) (Config, *fakeFiller) {
	filler := newFakeFiller(t, newFake())
	return Config{Template: template, Model: "toy", Models: []string{"toy"},
		Now: filler.clock.now, Profile: colorprofile.ANSI256, Theme: "dark", Open: openerOf(filler)}, filler
}

// driver runs a screen without a terminal: commands run beside it, and their
// messages come back in the order they end.
type driver struct {
	t       *testing.T
	model   *model
	ready   chan tea.Msg
	pending int
	quit    bool
	drawn   string // what the screen showed last
}

func newDriver(t *testing.T, c Config, columns, rows int) *driver {
	t.Helper()
	d := &driver{t: t, model: newModel(t.Context(), c), ready: make(chan tea.Msg, 1000)}
	t.Cleanup(func() {
		if err := d.model.close(); err != nil {
			t.Error(err)
		}
	})
	d.send(tea.WindowSizeMsg{Width: columns, Height: rows})
	d.run(d.model.Init())
	return d
}

func (d *driver) run(command tea.Cmd) {
	if command == nil {
		return
	}
	d.pending++
	go func() { d.ready <- command() }()
}

func (d *driver) send(message tea.Msg) {
	switch message := message.(type) {
	case nil:
	case tea.BatchMsg:
		for _, command := range message {
			d.run(command)
		}
	case tea.QuitMsg:
		d.quit = true
	default:
		_, command := d.model.Update(message)
		d.run(command)
	}
	d.drawn = d.model.screen()
}

// until takes messages until the condition holds, and settle until all is quiet.
func (d *driver) until(what string, condition func() bool) {
	d.t.Helper()
	for !condition() {
		select {
		case message := <-d.ready:
			d.pending--
			d.send(message)
		case <-time.After(20 * time.Second):
			d.t.Fatalf("%s never came; the screen:\n%s", what, d.model.screen())
		}
	}
}

func (d *driver) settle() {
	d.t.Helper()
	d.until("quiet", func() bool { return d.pending == 0 })
}

// keys types keys by name; other names are typed letter by letter.
func (d *driver) keys(names ...string) {
	d.t.Helper()
	for _, name := range names {
		d.send(keyOf(name))
	}
}

func keyOf(name string) tea.KeyPressMsg {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp,
		"down": tea.KeyDown,
		"left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete,
		"home": tea.KeyHome, "end": tea.KeyEnd,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown}
	if name == "shift+tab" {
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	}
	letter, control := strings.CutPrefix(name, "ctrl+")
	switch code, ok := named[name]; {
	case ok:
		return tea.KeyPressMsg{Code: code}
	case control:
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	case utf8.RuneCountInString(name) > 1:
		return tea.KeyPressMsg{Code: tea.KeyExtended, Text: name}
	}
	r, _ := utf8.DecodeRuneInString(name)
	return tea.KeyPressMsg{Code: r, Text: name}
}

func (d *driver) typeText(text string) {
	d.t.Helper()
	for _, r := range text {
		d.keys(string(r))
	}
}

// option opens the panel at an option that is shown.
func (d *driver) option(name string) {
	d.t.Helper()
	d.keys("o")
	for range d.model.panel.shown() {
		if d.model.panel.current().Name == name {
			return
		}
		d.keys("down")
	}
	if d.model.panel.current().Name != name {
		d.t.Fatalf("the panel does not show %s", name)
	}
}

// chainOptions are those of chains that move by the papers' energy.
func chainOptions(sampler string) []string {
	return given("sampler="+sampler, "steps=40", "seed=11")
}

// given lists options as in "top=5".
func given(options ...string) []string { return options }

// requestBy returns the request of a template by options.
func requestBy(t testing.TB, template string, options []string) infill.Request {
	t.Helper()
	list, err := Config{Options: options}.given()
	if err != nil {
		t.Fatal(err)
	}
	r, err := ask.NewRequest(template, list)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// frame is what the screen shows, without colours.
func (d *driver) frame() string { return ansi.Strip(d.model.screen()) }

// shows reports texts that are not on the screen.
func (d *driver) shows(texts ...string) {
	d.t.Helper()
	for _, text := range texts {
		if !strings.Contains(d.frame(), text) {
			d.t.Errorf("%q is missing:\n%s", text, d.frame())
		}
	}
}

// set writes a value into the panel, and fills with it.
func (d *driver) set(option, value string) {
	d.t.Helper()
	d.option(option)
	for d.model.panel.current().value != "" && d.model.panel.current().Join != "" {
		d.keys("backspace")
	}
	d.typeText(value)
	d.keys("enter")
	d.settle()
}

func sizeOf(columns, rows int) tea.WindowSizeMsg {
	return tea.WindowSizeMsg{Width: columns, Height: rows}
}

// openerOf opens one filler, whatever the name.
func openerOf(f Filler) func(context.Context, string) (Filler, error) {
	return func(context.Context, string) (Filler, error) { return f, nil }
}
