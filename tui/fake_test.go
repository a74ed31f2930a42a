package tui

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

func vocabulary() []string {
	return []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",",
		"the", "she", "opened", "and", "looked", "a", "night", "it", "was",
		"door", "window", "letter", "box", "book", "drawer", "curtain", "parcel",
		"up", "down", "out", "away", "inside", "back", "around", "closer",
		"##ly", "naïve", "日本", "cafe"}
}

// fakeModel has a known energy over the fills: the words of a slot differ in weight, and neighbouring slots prefer some
// pairs.
type fakeModel struct {
	// before, when not nil, runs at the start of every evaluation.
	before func(ctx context.Context) error
	calls  atomic.Int64
}

func weightOf(token int) float64 {
	if token < 16 {
		return -6
	}
	return 1.5*math.Sin(2.3*float64(token)) - 0.02*float64(token)
}

func bond(a, b int) float64 { return math.Cos(float64(a * b)) }

func (m *fakeModel) Description() lm.Description {
	return lm.Description{Name: "toy", SHA256: "0123456789abcdef0123456789abcdef", Runtime: "1.2.3", Device: "cpu"}
}

func (m *fakeModel) Positions() int { return 64 }

func (m *fakeModel) enter(ctx context.Context) error {
	m.calls.Add(1)
	if m.before != nil {
		return m.before(ctx)
	}
	return ctx.Err()
}

func (m *fakeModel) MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	masked := slices.Clone(ids)
	for _, position := range slots {
		masked[position] = mask
	}
	rows := make([][]float32, len(slots))
	for i, position := range slots {
		rows[i] = distribution(masked, position)
	}
	return rows, nil
}

func (m *fakeModel) LogProbabilities(ctx context.Context, rows []lm.Row) ([][]float32, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	logp := make([][]float32, len(rows))
	for i, r := range rows {
		logp[i] = distribution(r.IDs, r.Position)
	}
	return logp, nil
}

const mask = 4 // the id of [MASK]

// distribution is that of a position: a token is bonded to the nouns and adverbs beside it.
func distribution(ids []int, position int) []float32 {
	u := make([]float64, len(vocabulary()))
	total := 0.0
	for token := range u {
		u[token] = weightOf(token)
		if left := ids[position-1]; left >= 16 {
			u[token] += bond(left, token)
		}
		if right := ids[position+1]; right >= 16 {
			u[token] += bond(token, right)
		}
		total += math.Exp(u[token])
	}
	logp := make([]float32, len(u))
	for token := range u {
		logp[token] = float32(u[token] - math.Log(total))
	}
	return logp
}

func (m *fakeModel) Score(context.Context, []int, []lm.Query) ([]float64, error) {
	panic("the screen scores nothing")
}

func (m *fakeModel) NewTarget(_, _ []int, o lm.TargetOptions) (lm.Target, error) {
	t := &fakeTarget{model: m, support: o.Support}
	for _, s := range o.Support {
		t.categories = append(t.categories, len(s))
		t.width = max(t.width, len(s))
	}
	return t, nil
}

type fakeTarget struct {
	model      *fakeModel
	support    [][]int
	categories []int
	width      int
}

var (
	_ infill.LanguageModel       = (*fakeModel)(nil)
	_ samplers.GradientTarget    = (*fakeTarget)(nil)
	_ samplers.ConditionalTarget = (*fakeTarget)(nil)
)

func (t *fakeTarget) Categories() []int { return t.categories }
func (t *fakeTarget) Counts() lm.Counts { return lm.Counts{Rows: 7} }

func (t *fakeTarget) energyOf(state []int) float64 {
	u, last := -3.0, 0
	for slot, category := range state {
		token := t.support[slot][category]
		u += weightOf(token)
		if slot > 0 {
			u += bond(last, token)
		}
		last = token
	}
	return u
}

func (t *fakeTarget) Energy(ctx context.Context, states []int, energy []float64) error {
	n := len(t.support)
	for c := range energy {
		energy[c] = t.energyOf(states[c*n : (c+1)*n])
	}
	return t.model.enter(ctx)
}

func (t *fakeTarget) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	n := len(t.support)
	for c := range energy {
		state := append([]int(nil), states[c*n:(c+1)*n]...)
		for slot := range state {
			kept := state[slot]
			for category := range t.support[slot] {
				state[slot] = category
				gradient[(c*n+slot)*t.width+category] = t.energyOf(state)
			}
			state[slot] = kept
		}
	}
	return t.Energy(ctx, states, energy)
}

func (t *fakeTarget) LogConditionals(ctx context.Context, states, slots []int, logp []float64) error {
	n := len(t.support)
	for c, slot := range slots {
		state := append([]int(nil), states[c*n:(c+1)*n]...)
		total := 0.0
		for category := range t.support[slot] {
			state[slot] = category
			logp[c*t.width+category] = t.energyOf(state)
			total += math.Exp(logp[c*t.width+category])
		}
		for category := range t.support[slot] {
			logp[c*t.width+category] -= math.Log(total)
		}
	}
	return t.model.enter(ctx)
}

// fakeFiller is the real pipeline over the fake model, with a run that can be held at a step, and without the seconds
// that no two runs share.
type fakeFiller struct {
	*infill.Filler
	holdAt int // step, -1 for none
	held   chan struct{}
	gone   chan struct{} // closed when a held run was let go
	once   sync.Once
	clock  clock
	closed atomic.Int64
}

func newFakeFiller(t testing.TB, m *fakeModel) *fakeFiller {
	t.Helper()
	tokenizer, err := tokenize.New(vocabulary(), tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &fakeFiller{Filler: infill.New(m, tokenizer), holdAt: -1, held: make(chan struct{}),
		gone: make(chan struct{})}
}

func (f *fakeFiller) Fill(ctx context.Context, template string, o infill.Options,
	observe func(infill.Progress)) (*infill.Result, error) {
	result, err := f.Filler.Fill(ctx, template, o, func(p infill.Progress) {
		f.clock.minutes.Add(1)
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

// clock stands still but for the steps of runs, each of which takes a minute, so that every step makes a snapshot.
type clock struct{ minutes atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(60*c.minutes.Load(), 0) }

func testConfig(t testing.TB, template string) (Config, *fakeFiller) {
	filler := newFakeFiller(t, &fakeModel{})
	return Config{Template: template, Options: infill.DefaultOptions(), Model: "toy", Models: []string{"toy"},
		Now: filler.clock.now, Profile: colorprofile.ANSI256, Theme: "dark", Open: openerOf(filler)}, filler
}

// driver runs a screen without a terminal: commands run beside it, and their messages come back in the order they end.
type driver struct {
	t       *testing.T
	model   *model
	ready   chan tea.Msg
	pending int
	quit    bool
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
	d.model.screen()
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
	for d.model.panel.current().Name != name {
		d.keys("down")
	}
}

// chainOptions are those of chains that move by the papers' energy.
func chainOptions(sampler string) infill.Options {
	o := infill.DefaultOptions()
	c := infill.DefaultChains(sampler)
	c.Steps = 40
	o.Seed, o.Chains = 11, &c
	return o
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
