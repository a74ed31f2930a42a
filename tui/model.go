package tui

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"infill/infill"
	"infill/internal/ask"
	"infill/tokenize"
)

type view int

const (
	fillsView view = iota
	blanksView
	chainsView
	runsView
	views
)

func (v view) String() string { return [...]string{"Fills", "Blanks", "Chains", "Runs"}[v] }

type page interface {
	render(columns, rows int) string
	// move handles the keys up and down, leaf the page keys, and turn left and
	// right; by > 0 is down or right.
	move(by int)
	leaf(by int)
	turn(by int)
	// key handles the keys that only this page knows.
	key(k string) tea.Cmd
	// hints returns the keys to show at the foot, with what they do.
	hints() []hint
}

// run is a run of the model: its options, and the last snapshot of its results.
type run struct {
	given   []ask.Given
	request infill.Request // of given, without a template
	stream  *stream        // nil if nothing runs
	shown   *snapshot
	fault   string
	stopped bool // whether the user stopped the run
	stale   bool // whether shown belongs to a template that was changed since
}

// seeded reports whether the seed changes the fills: a search has no random numbers.
func (r *run) seeded() bool {
	_, search := r.request.Settled().Method.(infill.Search)
	return !search
}

type model struct {
	config Config
	*styles
	jobs *jobs

	filler     Filler
	opening    bool
	modelFault string
	editor     editor
	writing    bool
	pins       map[int]string // the pinned word of each pinned blank
	run        run
	started    int  // number of runs begun so far
	edits      int  // number of edits so far
	waiting    bool // whether a run begins as soon as the model is open
	blank      int  // index of the chosen blank

	view   view
	pages  [views]page
	fills  fillsPage
	blanks blanksPage
	chains chainsPage
	runs   runsPage

	// These are windows in front of the page, each nil while closed.
	panel  *panel
	filter *textinput.Model
	help   *help

	width, height int
	notice        string
	noticeFault   bool

	picked      string
	interrupted bool
}

// These are the messages, apart from those of runs and pages.
type (
	openedMsg struct {
		name   string
		filler Filler
		err    error
	}
	settledMsg struct{ edits int }
)

func newModel(ctx context.Context, c Config) *model {
	if c.Now == nil {
		c.Now = time.Now
	}
	m := &model{config: c, styles: newStyles(c.Profile, c.Theme == "light"), jobs: newJobs(ctx),
		editor: newEditor(c.Template), writing: c.Template == "" && c.Folder == "", opening: true,
		waiting: c.Template != "", pins: map[int]string{}}
	m.fills.m = m
	m.blanks.m = m
	m.chains.m = m
	m.runs.m = m
	m.pages = [views]page{&m.fills, &m.blanks, &m.chains, &m.runs}
	m.run.given, _ = c.given() // Config.Validate tells what is wrong
	m.run.request, _ = requestOf("", m.run.given)
	if c.Folder != "" {
		m.view = runsView
	}
	return m
}

var _ tea.Model = (*model)(nil)

func (m *model) close() error {
	m.jobs.close()
	if m.filler == nil {
		return nil
	}
	return m.filler.Close()
}

func (m *model) Init() tea.Cmd {
	var ask tea.Cmd
	if m.config.Theme == "auto" && m.config.Profile > colorprofile.Ascii {
		// The terminal's answer, if it sends one, arrives like a key.
		ask = tea.RequestBackgroundColor
	}
	return tea.Batch(ask, m.open(m.config.Model), m.runs.load())
}

// open loads a model. The earlier one is closed once nothing uses it.
func (m *model) open(name string) tea.Cmd {
	m.opening = true
	return m.jobs.command(func(ctx context.Context) tea.Msg {
		filler, err := m.config.Open(ctx, name)
		if err == nil && ctx.Err() != nil {
			// The user has left the screen, so nobody would close the filler.
			filler.Close()
			return nil
		}
		return openedMsg{name, filler, err}
	})
}

func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) { return m, m.update(message) }

func (m *model) update(message tea.Msg) tea.Cmd {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width = message.Width
		m.height = message.Height
	case tea.BackgroundColorMsg:
		*m.styles = *newStyles(m.config.Profile, !message.IsDark())
	case tea.KeyPressMsg:
		m.notice = ""
		return m.key(message)
	case tea.PasteMsg:
		m.notice = ""
		return m.paste(message)
	case openedMsg:
		return m.opened(message)
	case settledMsg:
		if message.edits == m.edits {
			return m.start()
		}
	case snapshotMsg:
		r := &m.run
		if r.stream != nil && r.stream.number == message.number {
			if message.snapshot.result != nil {
				m.show(message.snapshot)
			}
			return m.jobs.listen(r.stream)
		}
	case finishedMsg:
		m.finished(message)
	case runMsg:
		return m.runs.take(message.state)
	case watchMsg:
		return m.runs.load()
	}
	return nil
}

func (m *model) idle(key, why string) tea.Cmd {
	m.fail(fmt.Sprintf("%s: %s", harmless(key), why))
	return nil
}

func (m *model) fail(text string) {
	m.notice = text
	m.noticeFault = true
}

func (m *model) opened(message openedMsg) tea.Cmd {
	m.opening = false
	switch {
	case message.err != nil && m.filler != nil:
		// Keep the earlier model, which still works.
		m.fail(explain(message.err))
		return nil
	case message.err != nil:
		m.modelFault = explain(message.err)
		return nil
	}
	old := m.filler
	wanted := m.waiting
	m.filler = message.filler
	m.modelFault = ""
	m.config.Model = message.name
	m.waiting = false
	if old == nil {
		if wanted {
			return m.start()
		}
		return nil
	}
	return tea.Batch(m.start(), m.jobs.command(func(context.Context) tea.Msg {
		// Close waits for a call that still runs, so it runs as a command of its own.
		old.Close()
		return nil
	}))
}

func (m *model) spelling() string { return string(m.run.request.Blank) }

// start abandons the present run, and begins a new run with the present text and options.
func (m *model) start() tea.Cmd {
	m.abandon()
	r := &m.run
	r.fault = ""
	r.stopped = false
	if m.filler == nil {
		m.waiting = true
		return nil
	}
	text := m.editor.text()
	switch {
	case len(text) > mostTyped: // checked before blanks, as the end of the text may be cut
		r.fault = fmt.Sprintf("text too long: %d bytes, the screen takes %d; infill itself takes longer ones",
			len(text), mostTyped)
	case len(tokenize.BlankSpans(text, string(r.request.Blank))) > 0:
		m.started++
		var command tea.Cmd
		r.stream, command = m.jobs.start(m.started, &recorder{filler: m.filler, asked: m.pinned(text)}, m.config.Now)
		return command
	case strings.TrimSpace(text) != "":
		r.fault = "no blank yet: i writes, then _ inserts a blank, and ctrl+t makes one of the word at the cursor"
	}
	m.show(nil)
	return nil
}

// pinned returns the request of a run, with each pin as a list of one word.
func (m *model) pinned(template string) infill.Request {
	r := m.run.request
	r.Template = template
	if len(m.pins) == 0 {
		return r
	}
	slots := infill.Lists{}
	maps.Copy(slots, r.Fit.Slots)
	for blank, word := range m.pins {
		slots[blank+1] = []string{word}
	}
	r.Fit.Slots = slots
	return r
}

// abandon ends the present run, because nobody needs the result any more.
func (m *model) abandon() {
	r := &m.run
	if r.stream != nil {
		r.stream.cancel(infill.ErrUnwanted)
		r.stream = nil
	}
}

func (m *model) finished(message finishedMsg) {
	r := &m.run
	if r.stream == nil || r.stream.number != message.number {
		return
	}
	r.stream = nil
	if message.err != nil {
		r.fault = explain(message.err)
	}
	if message.snapshot != nil || !r.stopped {
		m.show(message.snapshot)
	}
}

// edited stops the run, and begins another after a pause in the typing.
func (m *model) edited() tea.Cmd {
	m.abandon()
	m.edits++
	m.run.stopped = false
	m.run.stale = true
	m.pins = map[int]string{}
	m.fills.chosen = ""
	m.turnTo(0)
	const pause = 250 * time.Millisecond
	return m.jobs.after(pause, settledMsg{m.edits})
}

// show shows a snapshot, which must have a result. If s is nil, it shows nothing.
func (m *model) show(s *snapshot) {
	m.run.shown = s
	m.run.stale = false
	m.fills.list()
	m.turnTo(m.blank)
}

// turnTo chooses the given blank, or, if it does not exist, the nearest blank.
func (m *model) turnTo(blank int) {
	before := m.blank
	s := m.run.shown
	if s != nil {
		blank = min(blank, len(s.result.Alone)-1)
	}
	m.blank = max(blank, 0)
	if m.blank != before {
		m.blanks.row = 0
	}
}

// pin fixes a word in the chosen blank, or frees it, and fills again.
func (m *model) pin(word string) tea.Cmd {
	switch old, pinned := m.pins[m.blank]; {
	case m.run.stale:
		m.fail("the template has changed: wait for its fills")
		return nil
	case pinned && old == word:
		delete(m.pins, m.blank)
	default:
		m.pins[m.blank] = word
	}
	m.fills.chosen = ""
	return m.start()
}

// key passes a key to the window in front, the editor or the page.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case k.String() == "ctrl+c":
		m.interrupted = true
		return tea.Quit
	case k.String() == "ctrl+z":
		return tea.Suspend
	case m.tooSmall():
		if k.String() == "q" && !m.writing {
			return tea.Quit
		}
	case m.help != nil:
		if !m.help.key(k.String()) {
			m.help = nil
		}
	case m.panel != nil && k.String() == "esc":
		m.panel = nil
	case m.panel != nil && k.String() == "enter":
		return m.apply()
	case m.panel != nil:
		m.panel.key(k)
	case m.filter != nil:
		m.filterKey(k)
	case m.writing:
		return m.writeKey(k)
	default:
		return m.browseKey(k.String())
	}
	return nil
}

func (m *model) paste(message tea.PasteMsg) tea.Cmd {
	switch {
	case m.tooSmall() || m.help != nil:
	case m.panel != nil:
		m.panel.typeText(message.Content)
	case m.filter != nil:
		m.filterEdit(message)
	case m.writing && m.editor.edit(message, m.spelling()):
		return m.edited()
	}
	return nil
}

func (m *model) apply() tea.Cmd {
	given, request, name, ok := m.panel.options()
	if !ok {
		return nil
	}
	m.panel = nil
	m.run.given = given
	m.run.request = request
	if name != m.config.Model {
		return m.open(name)
	}
	return m.start()
}
