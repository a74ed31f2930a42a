package tui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"infill/infill"
	"infill/tokenize"
)

// view is the number of a page.
type view int

const (
	fillsView view = iota
	slotsView
	chainsView
	runsView
	views
)

func (v view) String() string { return [...]string{"Fills", "Slots", "Chains", "Runs"}[v] }

// page is one of the screen's views. It owns what is chosen and scrolled on it.
type page interface {
	// render draws the page, which begins at the screen's line model.top.
	render(columns, rows int) string
	// move goes down, and turn to the right.
	move(by int)
	turn(by int)
	// key handles what is this page's own.
	key(k tea.KeyPressMsg) tea.Cmd
	// hints are the keys to tell of, and limits what the page leaves out.
	hints(k keyMap) []key.Binding
	limits() []string
}

// run is a sampler with what it finds.
type run struct {
	options  infill.Options
	stream   *stream // nil when no run is on
	snapshot *snapshot
	fault    string
	stopped  bool
	made     request // what the snapshot is of
}

// state says in words how far a run is.
func (s *run) state() string {
	p := s.snapshot
	switch {
	case s.stream != nil && p == nil:
		return "starting"
	case s.stream != nil && p.Answer:
		return fmt.Sprintf("computing %d %%", 100*p.Step/max(p.Steps, 1))
	case s.stream != nil && p.Several:
		return fmt.Sprintf("sampling %d/%d, each length by itself", p.Step, p.Steps)
	case s.stream != nil && p.WarmUp:
		return fmt.Sprintf("warm-up %d/%d", p.Step, p.Options.Steps)
	case s.stream != nil:
		return fmt.Sprintf("sampling %d/%d", p.Step, p.Options.Steps)
	case s.stopped && p != nil:
		return fmt.Sprintf("stopped at %d/%d", p.Step, max(p.Steps, p.Options.Steps))
	case p == nil || p.Result == nil:
		return ""
	}
	stats, lengths := p.Result.Stats, ""
	if len(stats.Lengths) > 1 {
		lengths = fmt.Sprintf("%d lengths, ", len(stats.Lengths))
	}
	if p.Answer {
		return fmt.Sprintf("%s%s, %.1f s", lengths, p.Result.Method, stats.Seconds)
	}
	return fmt.Sprintf("%s%d × %d steps, %.1f s", lengths, p.Chains, p.Options.Steps, stats.Seconds)
}

// model is the screen.
type model struct {
	config Config
	*styles
	keys keyMap
	jobs *jobs

	filler     Filler
	opening    bool
	modelFault string
	editor     editor
	writing    bool
	pins       map[int]pin
	run        run
	started    int // runs so far
	edits      int // of the template so far
	stale      bool
	waiting    bool // a run is wanted as soon as there is a model
	blank      int  // the chosen one
	given      conditionals
	asked      string // the fill whose conditionals are on their way

	view   view
	pages  [views]page
	fills  fillsPage
	slots  slotsPage
	chains chainsPage
	runs   runsPage

	// What is in front of the page, nil for nothing.
	panel  *panel
	prompt *prompt
	help   *help

	width, height int
	top           int // line of the page
	notice        string
	noticeFault   bool
	zones         []zone
	editorOrigin  [2]int
	frame         string // the last drawn, "" when something changed

	picked      *Picked
	interrupted bool
}

// The messages besides those of sampling and of the pages.
type (
	openedMsg struct {
		name   string
		filler Filler
		err    error
	}
	settledMsg      struct{ edits int }
	conditionalsMsg struct{ conditionals }
)

func newModel(ctx context.Context, c Config) *model {
	if c.Now == nil {
		c.Now = time.Now
	}
	m := &model{config: c, styles: newStyles(c.Profile, c.Theme == "light"), keys: newKeys(), jobs: newJobs(ctx),
		editor: newEditor(c.Template), writing: c.Template == "" && c.Folder == "", pins: map[int]pin{}, opening: true,
		waiting: c.Template != ""}
	m.fills.m, m.slots.m, m.chains.m, m.runs.m = m, m, m, m
	m.pages = [views]page{&m.fills, &m.slots, &m.chains, &m.runs}
	m.run.options = c.Options
	if c.Folder != "" {
		m.view = runsView
	}
	return m
}

var _ tea.Model = (*model)(nil)

// close ends what the screen started.
func (m *model) close() error {
	m.jobs.close()
	if m.filler == nil {
		return nil
	}
	return m.filler.Close()
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	var ask tea.Cmd
	if m.config.Theme == "auto" && m.config.Profile > colorprofile.Ascii {
		// The answer comes among the keys, if the terminal has one.
		ask = tea.RequestBackgroundColor
	}
	return tea.Batch(ask, m.open(m.config.Model), m.runs.load())
}

// open loads a model. The one before it is closed when nothing uses it any more.
func (m *model) open(name string) tea.Cmd {
	m.opening = true
	return m.jobs.command(func(ctx context.Context) tea.Msg {
		filler, err := m.config.Open(ctx, name)
		if err == nil && ctx.Err() != nil {
			// The screen was left meanwhile, and nobody takes the message.
			filler.Close()
			return nil
		}
		return openedMsg{name, filler, err}
	})
}

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	m.frame = ""
	command := m.update(message)
	return m, tea.Batch(command, m.ask())
}

func (m *model) update(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tea.BackgroundColorMsg:
		*m.styles = *newStyles(m.config.Profile, !message.IsDark())
	case tea.KeyPressMsg:
		m.notice = ""
		return m.key(message)
	case tea.PasteMsg:
		m.notice = ""
		return m.paste(message)
	case tea.MouseMsg:
		return m.mouse(message)
	case openedMsg:
		return m.opened(message)
	case settledMsg:
		if message.edits == m.edits {
			return m.start()
		}
	case snapshotMsg:
		if s := &m.run; s.stream != nil && s.stream.number == message.number {
			s.snapshot, m.stale = message.snapshot, false
			m.list()
			return m.jobs.listen(s.stream)
		}
	case finishedMsg:
		return m.finished(message)
	case conditionalsMsg:
		// After an error there are no rows, and they are not asked for again.
		m.asked, m.given = "", message.conditionals
	case savedMsg:
		m.saved(message)
	case runMsg:
		return m.runs.take(message.state)
	case watchMsg:
		return m.runs.load()
	}
	return nil
}

func (m *model) say(text string)  { m.notice, m.noticeFault = text, false }
func (m *model) fail(text string) { m.notice, m.noticeFault = text, true }

func (m *model) opened(message openedMsg) tea.Cmd {
	m.opening = false
	switch {
	case message.err != nil && m.filler != nil:
		// The model before still serves.
		m.fail(explain(message.err))
		return nil
	case message.err != nil:
		m.modelFault = explain(message.err)
		return nil
	}
	old, wanted := m.filler, m.waiting
	m.filler, m.modelFault, m.config.Model, m.waiting, m.given = message.filler, "", message.name, false, conditionals{}
	if old == nil {
		if wanted {
			return m.start()
		}
		return nil
	}
	return tea.Batch(m.start(), m.jobs.command(func(context.Context) tea.Msg {
		// A call that still runs is waited for, or fails and is not listened to.
		old.Close()
		return nil
	}))
}

// start begins the run again.
func (m *model) start() tea.Cmd {
	m.stop()
	s := &m.run
	s.fault, s.stopped = "", false
	if m.filler == nil {
		m.waiting = true
		return nil
	}
	m.editor.readBlanks(m.config.Blank)
	// A text that is too long may have lost its blanks: its length gives the error.
	if text := m.editor.text(); len(tokenize.BlankSpans(text)) == 0 || len(text) > mostTyped {
		s.snapshot = nil
		switch {
		case len(text) > mostTyped:
			s.fault = fmt.Sprintf("text too long: %d bytes, the screen takes %d; infill itself takes longer ones",
				len(text), mostTyped)
		case strings.TrimSpace(text) != "":
			s.fault = "no blank yet: type _ where a word is wanted"
		}
		m.list()
		return nil
	}
	m.started++
	s.made = request{filler: m.filler, template: m.editor.text(), pins: maps.Clone(m.pins), options: s.options}
	stream, command := m.jobs.sample(m.started, s.made, m.config.Now)
	s.stream = stream
	return command
}

// stop ends the run; what it found stays.
func (m *model) stop() {
	if s := &m.run; s.stream != nil {
		s.stream.cancel()
		s.stream, s.stopped = nil, true
	}
}

func (m *model) finished(message finishedMsg) tea.Cmd {
	s := &m.run
	if s.stream == nil || s.stream.number != message.number {
		return nil
	}
	s.stream = nil
	if message.snapshot != nil || message.err != nil {
		s.snapshot = message.snapshot
	}
	m.stale = false
	if message.err != nil {
		s.fault = explain(message.err)
	}
	m.list()
	return nil
}

// edited follows a change of the template: the run is stopped at once, and the
// next begins when the typing pauses.
func (m *model) edited() tea.Cmd {
	m.stop()
	m.run.stopped = false
	m.edits++
	m.stale, m.pins, m.fills.chosen, m.blank, m.slots.row = true, map[int]pin{}, "", 0, 0
	const pause = 250 * time.Millisecond
	return m.jobs.after(pause, settledMsg{m.edits})
}

// list shows the fills as they are now.
func (m *model) list() {
	m.fills.list()
	m.turnTo(m.blank)
}

// turnTo chooses a blank, the nearest that there is.
func (m *model) turnTo(blank int) {
	m.blank = 0
	if s := m.run.snapshot; s != nil {
		m.blank = max(min(blank, len(s.Values)-1), 0)
	}
}

func (m *model) turnBlank(by int) {
	m.turnTo(m.blank + by)
	m.slots.row = 0
}

// ask fetches the model's conditionals where they are on the screen and not known.
func (m *model) ask() tea.Cmd {
	s, f := &m.run, m.fills.current()
	shown := m.view == slotsView || m.view == fillsView && m.wide() && s.stream == nil
	if f == nil || f.Kept || !shown || s.snapshot != nil && s.snapshot.Several || m.stale || m.filler == nil ||
		m.opening || m.asked != "" ||
		m.given.fill == f.key() && m.given.template == s.made.template {
		return nil
	}
	key, template, ids, filler, before := f.key(), s.made.template, f.TokenIDs, s.made.filler, s.made.options.Context
	m.asked = key
	return m.jobs.command(func(ctx context.Context) tea.Msg {
		var rows [][]float32
		read, err := filler.Template(template)
		if err == nil && before != "" {
			var context []int
			context, err = filler.Tokenizer().Context(before)
			read.After(context)
		}
		if err == nil {
			rows, err = filler.LogConditionals(ctx, read, ids)
		}
		if err != nil {
			rows = nil
		}
		return conditionalsMsg{conditionals{template, key, rows}}
	})
}

// key gives a key to what is in front.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(k, m.keys.Interrupt):
		m.interrupted = true
		return tea.Quit
	case k.String() == "ctrl+z":
		return tea.Suspend
	case m.tooSmall():
		if key.Matches(k, m.keys.Quit) && !m.writing {
			return tea.Quit
		}
	case m.help != nil:
		if !m.help.key(k, m.keys) {
			m.help = nil
		}
	case m.panel != nil && k.String() == "esc":
		m.panel = nil
	case m.panel != nil && k.String() == "enter":
		return m.apply()
	case m.panel != nil:
		m.panel.key(k)
	case m.prompt != nil:
		return m.promptKey(k)
	case m.editor.marking != nil:
		return m.markKey(k)
	case m.writing:
		return m.writeKey(k)
	default:
		return m.browseKey(k)
	}
	return nil
}

// paste gives pasted text to what is being written.
func (m *model) paste(message tea.PasteMsg) tea.Cmd {
	switch {
	case m.tooSmall() || m.help != nil:
	case m.panel != nil:
		m.panel.typeText(message.Content)
	case m.prompt != nil:
		m.promptEdit(message)
	case m.writing && m.editor.edit(message):
		return m.edited()
	}
	return nil
}

func (m *model) writeKey(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(k, m.keys.Blank) && !(k.String() == "_" && m.editor.insideBlank()):
		m.editor.insertBlank()
		return m.edited()
	case key.Matches(k, m.keys.MarkWhileWriting):
		m.mark()
	case key.Matches(k, m.keys.Leave):
		m.writing = false
	case m.editor.edit(k):
		return m.edited()
	}
	return nil
}

// mark begins to choose words, if there are any.
func (m *model) mark() {
	if m.editor.mark() {
		m.writing = false
	} else {
		m.fail("no words to mark: write or paste a sentence first")
	}
}

func (m *model) markKey(k tea.KeyPressMsg) tea.Cmd {
	marking, keys := m.editor.marking, m.keys
	last := len(marking.words) - 1
	switch {
	case key.Matches(k, keys.Left):
		marking.at = max(marking.at-1, 0)
	case key.Matches(k, keys.Right):
		marking.at = min(marking.at+1, last)
	case key.Matches(k, keys.First):
		marking.at = 0
	case key.Matches(k, keys.Last):
		marking.at = last
	case key.Matches(k, keys.Toggle):
		m.editor.toggle(marking.at)
		return m.edited()
	case key.Matches(k, keys.Apply, keys.Dismiss, keys.NextView, keys.Mark, keys.Quit):
		m.editor.marking = nil
	}
	return nil
}

// apply takes the panel's options over.
func (m *model) apply() tea.Cmd {
	options, name, ok := m.panel.options(m.run.options)
	if !ok {
		return nil
	}
	m.panel = nil
	m.run.options = options
	if name != m.config.Model {
		return m.open(name)
	}
	return m.start()
}

func (m *model) browseKey(k tea.KeyPressMsg) tea.Cmd {
	keys, page := m.keys, m.pages[m.view]
	if at := slices.IndexFunc(keys.Views, func(b key.Binding) bool { return key.Matches(k, b) }); at >= 0 {
		m.view = view(at)
		return nil
	}
	leaf := max(m.height-9, 1)
	switch {
	case key.Matches(k, keys.Quit):
		return tea.Quit
	case key.Matches(k, keys.Help):
		m.help = &help{}
	case key.Matches(k, keys.Write):
		m.writing = true
	case key.Matches(k, keys.Mark):
		m.mark()
	case key.Matches(k, keys.NextView):
		m.view = (m.view + 1) % views
	case key.Matches(k, keys.PreviousView):
		m.view = (m.view + views - 1) % views
	case key.Matches(k, keys.Up):
		page.move(-1)
	case key.Matches(k, keys.Down):
		page.move(1)
	case key.Matches(k, keys.PageUp) && m.view != runsView:
		page.move(-leaf)
	case key.Matches(k, keys.PageDown) && m.view != runsView:
		page.move(leaf)
	case key.Matches(k, keys.First):
		page.move(-1 << 30)
	case key.Matches(k, keys.Last):
		page.move(1 << 30)
	case key.Matches(k, keys.Left):
		page.turn(-1)
	case key.Matches(k, keys.Right):
		page.turn(1)
	case key.Matches(k, keys.Settings):
		m.panel = newPanel(m.styles, m.run.options, m.config.Model, m.config.Models)
	case key.Matches(k, keys.Resample):
		m.run.options.Seed++
		return m.start()
	case key.Matches(k, keys.Stop):
		m.stop()
	case key.Matches(k, keys.Unpin):
		if len(m.pins) > 0 {
			m.pins = map[int]pin{}
			return m.start()
		}
	default:
		return page.key(k)
	}
	return nil
}
