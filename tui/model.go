package tui

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"infill/infill"
	"infill/tokenize"
)

// view is one of the screen's pages.
type view int

const (
	fillsView view = iota
	slotsView
	chainsView
	compareView
	runsView
)

// order is how fills are sorted.
type order int

const (
	byLikelihood order = iota
	byFrequency
	byNovelty
	orders
)

func (o order) String() string {
	return [...]string{"likelihood", "frequency", "novelty"}[o]
}

// side is one sampler with its run; the second is for comparing.
type side struct {
	options  infill.Options
	stream   *stream // nil when no run is on
	snapshot *Snapshot
	fault    string
	stopped  bool
	made     request // what the snapshot is of
}

// state says in words how far a run is.
func (s *side) state() string {
	p := s.snapshot
	switch {
	case s.stream != nil && p == nil:
		return "starting"
	case s.stream != nil && p.Several:
		return fmt.Sprintf("sampling %d/%d, each length by itself", p.Step, p.Steps)
	case s.stream != nil && p.WarmUp:
		return fmt.Sprintf("warm-up %d/%d", p.Step, p.Options.Steps)
	case s.stream != nil:
		return fmt.Sprintf("sampling %d/%d", p.Step, p.Options.Steps)
	case s.stopped && p != nil:
		return fmt.Sprintf("stopped at %d/%d", p.Step, max(p.Steps, p.Options.Steps))
	case p != nil && p.Result != nil && len(p.Result.Stats.Lengths) > 1:
		return fmt.Sprintf("%d lengths, %d × %d steps, %.1f s", len(p.Result.Stats.Lengths), p.Chains, p.Options.Steps, p.Result.Stats.Seconds)
	case p != nil && p.Result != nil:
		return fmt.Sprintf("%d × %d steps, %.1f s", p.Chains, p.Options.Steps, p.Result.Stats.Seconds)
	}
	return ""
}

// prompt asks for a line of text at the foot of the screen.
type prompt struct {
	saving  bool // or filtering
	input   textinput.Model
	note    string
	replace bool // the file is there, and enter was pressed before
}

// Model is the screen.
type Model struct {
	config Config
	styles *styles
	keys   keyMap
	jobs   *jobs

	width, height int
	filler        Filler
	opening       bool
	modelFault    string
	editor        editor
	writing       bool
	view          view
	pins          map[int]pin
	sides         [2]side
	runs          int // started so far
	edits         int // of the template so far
	stale         bool
	waiting       bool // a run is wanted as soon as there is a model

	// The fills as listed.
	listed         []Fill
	selected       int
	chosen         string // key of the selected fill, "" to stay at the top
	offset         int
	sort           order
	byModel        bool
	filter         string
	onlyFavourites bool
	favourites     []Fill

	slot         int // the chosen blank
	slotRow      int
	given        conditionals
	asked        string
	rows         []slotRow // of the chosen blank
	chainOffset  int
	compared     int // the chosen side
	compareAt    int
	runView      runBrowser
	panel        *panel
	prompt       *prompt
	help         bool
	helpOffset   int
	notice       string
	noticeFault  bool
	picked       *Picked
	interrupted  bool
	zones        []zone
	editorOrigin [2]int
	frame        string // the last drawn, "" when something changed
}

// zone is a part of the screen that the mouse works on.
type zone struct {
	x, y, width, height int
	click               func(x, y int) tea.Cmd
}

// The messages besides those of sampling.
type (
	openedMsg struct {
		name   string
		filler Filler
		err    error
	}
	settledMsg      struct{ edits int }
	conditionalsMsg struct {
		conditionals
	}
	savedMsg struct {
		path   string
		fills  int
		exists bool
		err    error
	}
)

func newModel(ctx context.Context, c Config) *Model {
	if c.Now == nil {
		c.Now = time.Now
	}
	m := &Model{config: c, styles: newStyles(c.Profile, c.Theme == "light"), keys: newKeys(), jobs: newJobs(ctx),
		editor: newEditor(c.Template), writing: c.Template == "" && c.Folder == "", pins: map[int]pin{}, opening: true, waiting: c.Template != ""}
	m.sides[0].options, m.sides[1].options = c.Options, c.Options
	m.sides[1].options.Sampler = other(c.Options.Sampler)
	m.sides[1].options.StepSize, m.sides[1].options.Balance, m.sides[1].options.Gradient = 0, "", ""
	if c.Folder != "" {
		m.view = runsView
	}
	return m
}

var _ tea.Model = (*Model)(nil)

// close ends what the screen started.
func (m *Model) close() error {
	m.jobs.close()
	if m.filler == nil {
		return nil
	}
	return m.filler.Close()
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd {
	var ask tea.Cmd
	if m.config.Theme == "auto" && m.config.Profile > colorprofile.Ascii {
		// The answer comes among the keys, if the terminal has one.
		ask = tea.RequestBackgroundColor
	}
	return tea.Batch(ask, m.open(m.config.Model), m.loadRun())
}

// open loads a model. The one before it is closed when nothing uses it any more.
func (m *Model) open(name string) tea.Cmd {
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
func (m *Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	m.frame = ""
	command := m.update(message)
	return m, tea.Batch(command, m.ask())
}

func (m *Model) update(message tea.Msg) tea.Cmd {
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
			return m.start(0)
		}
	case snapshotMsg:
		for i := range m.sides {
			if s := &m.sides[i]; s.stream != nil && s.stream.number == message.number {
				s.snapshot, m.stale = message.snapshot, m.stale && i != 0
				m.list()
				return m.jobs.listen(s.stream)
			}
		}
	case finishedMsg:
		return m.finished(message)
	case conditionalsMsg:
		// After an error there are no rows, and they are not asked for again.
		m.asked, m.given = "", message.conditionals
		m.list()
	case savedMsg:
		m.saved(message)
	case runMsg:
		m.runView.take(message)
		return m.watchRun()
	case watchMsg:
		return m.loadRun()
	}
	return nil
}

func (m *Model) say(text string)  { m.notice, m.noticeFault = text, false }
func (m *Model) fail(text string) { m.notice, m.noticeFault = text, true }

func (m *Model) opened(message openedMsg) tea.Cmd {
	m.opening = false
	if message.err != nil {
		m.modelFault = explain(message.err)
		if m.filler != nil {
			// The model before still serves.
			m.fail(m.modelFault)
			m.modelFault = ""
		}
		return nil
	}
	old := m.filler
	m.filler, m.modelFault, m.config.Model = message.filler, "", message.name
	m.given = conditionals{}
	var closing tea.Cmd
	if old != nil {
		m.stop(0)
		m.stop(1)
		closing = m.jobs.command(func(context.Context) tea.Msg {
			// A call that still runs is waited for, or fails and is not listened to.
			old.Close()
			return nil
		})
	}
	if m.waiting || old != nil {
		m.waiting = false
		return tea.Batch(closing, m.start(0))
	}
	return closing
}

// start begins the run of a side anew.
func (m *Model) start(i int) tea.Cmd {
	m.stop(i)
	s := &m.sides[i]
	s.fault, s.stopped = "", false
	if m.filler == nil {
		m.waiting = true
		return nil
	}
	// What is too long may have lost its blanks, and is told by its length.
	if text := m.editor.text(); !m.editor.pattern.MatchString(text) && len(text) <= tokenize.MaxText {
		s.snapshot, s.fault = nil, "no blank yet: type _ where a word is wanted"
		if strings.TrimSpace(m.editor.text()) == "" {
			s.fault = ""
		}
		m.list()
		return nil
	}
	m.runs++
	pins := map[int]pin{}
	for blank, p := range m.pins {
		pins[blank] = p
	}
	s.made = request{filler: m.filler, template: m.editor.text(), pins: pins, options: s.options}
	if i == 1 {
		s.snapshot = nil
	}
	stream, command := m.jobs.sample(m.runs, s.made, m.config.Now)
	s.stream = stream
	return command
}

// stop ends the run of a side; what it found stays.
func (m *Model) stop(i int) {
	s := &m.sides[i]
	if s.stream != nil {
		s.stream.cancel()
		s.stream, s.stopped = nil, true
	}
}

func (m *Model) finished(message finishedMsg) tea.Cmd {
	for i := range m.sides {
		s := &m.sides[i]
		if s.stream == nil || s.stream.number != message.number {
			continue
		}
		s.stream = nil
		if message.snapshot != nil || message.err != nil {
			s.snapshot = message.snapshot
		}
		if i == 0 {
			m.stale = false
		}
		if message.err != nil {
			s.fault = explain(message.err)
		}
		m.list()
		if i == 0 && m.view == compareView {
			return m.startSecond()
		}
	}
	return nil
}

// startSecond brings the second side up to date with the first. They run one
// after the other, so that neither takes time from the other.
func (m *Model) startSecond() tea.Cmd {
	a, b := &m.sides[0], &m.sides[1]
	if a.stream != nil || a.snapshot == nil || m.stale {
		return nil
	}
	if b.made.filler == a.made.filler && b.made.template == a.made.template && samePins(b.made.pins, a.made.pins) && reflect.DeepEqual(b.made.options, b.options) &&
		(b.stream != nil || b.snapshot != nil || b.fault != "") {
		return nil
	}
	return m.start(1)
}

func samePins(a, b map[int]pin) bool {
	if len(a) != len(b) {
		return false
	}
	for blank, p := range a {
		if !slices.Equal(p.ids, b[blank].ids) {
			return false
		}
	}
	return true
}

// edited follows a change of the template: the run is stopped at once, and the
// next begins when the typing pauses.
func (m *Model) edited() tea.Cmd {
	m.stop(0)
	m.stop(1)
	m.sides[0].stopped = false
	m.edits++
	m.stale = true
	m.pins = map[int]pin{}
	m.chosen, m.slot, m.slotRow = "", 0, 0
	const pause = 250 * time.Millisecond
	return m.jobs.after(pause, settledMsg{m.edits})
}

// list sorts and filters the fills anew, keeping the selection at its fill.
func (m *Model) list() {
	var from []Fill
	if p := m.sides[0].snapshot; p != nil {
		from = p.Fills
	}
	if m.onlyFavourites {
		known := map[string]Fill{}
		for _, f := range from {
			known[f.key()] = f
		}
		from = nil
		for _, f := range m.favourites {
			if present, ok := known[f.key()]; ok {
				f = present
			} else {
				f.Kept = true
			}
			from = append(from, f)
		}
	}
	m.listed = m.listed[:0:0]
	for _, f := range from {
		if m.matches(&f) {
			m.listed = append(m.listed, f)
		}
	}
	likelihood := func(a, b Fill) int { return cmp.Compare(b.rating(), a.rating()) }
	switch m.sort {
	case byFrequency:
		slices.SortStableFunc(m.listed, func(a, b Fill) int { return cmp.Or(cmp.Compare(b.Count, a.Count), likelihood(a, b)) })
	case byNovelty:
		slices.SortStableFunc(m.listed, func(a, b Fill) int { return cmp.Or(cmp.Compare(b.NewWords, a.NewWords), likelihood(a, b)) })
	}
	m.selected = 0
	if m.chosen != "" {
		if at := slices.IndexFunc(m.listed, func(f Fill) bool { return f.key() == m.chosen }); at >= 0 {
			m.selected = at
		} else {
			m.chosen = ""
		}
	}
	if p := m.sides[0].snapshot; p != nil {
		m.slot = max(min(m.slot, len(p.Values)-1), 0)
		m.rows = slotRows(p, m.slot, m.given, m.current(), m.byModel)
		m.slotRow = max(min(m.slotRow, len(m.rows)-1), 0)
	} else {
		m.slot, m.rows, m.slotRow = 0, nil, 0
	}
}

// matches tells whether a fill passes the filter: every word of it stands in the
// fill's own words, or "2:word" in those of the second slot.
func (m *Model) matches(f *Fill) bool {
	for _, want := range strings.Fields(strings.ToLower(m.filter)) {
		in := strings.ToLower(strings.Join(f.Values, "\n"))
		if number, word, ok := strings.Cut(want, ":"); ok && len(number) > 0 && strings.Trim(number, "0123456789") == "" {
			blank := 0
			if _, err := fmt.Sscan(number, &blank); err == nil && blank >= 1 && blank <= len(f.Values) {
				in, want = strings.ToLower(f.Values[blank-1]), word
			}
		}
		if !strings.Contains(in, want) {
			return false
		}
	}
	return true
}

// current is the selected fill, nil for none.
func (m *Model) current() *Fill {
	if m.selected < 0 || m.selected >= len(m.listed) {
		return nil
	}
	return &m.listed[m.selected]
}

// ask fetches the model's conditionals where they are on the screen and not known.
func (m *Model) ask() tea.Cmd {
	s := &m.sides[0]
	f := m.current()
	shown := m.view == slotsView || m.view == fillsView && m.wide() && s.stream == nil
	if f == nil || f.Kept || !shown || s.snapshot != nil && s.snapshot.Several || m.stale || m.filler == nil || m.opening || m.asked != "" || m.given.fill == f.key() && m.given.template == s.made.template {
		return nil
	}
	key, template, ids, filler := f.key(), s.made.template, f.TokenIDs, s.made.filler
	m.asked = key
	return m.jobs.command(func(ctx context.Context) tea.Msg {
		rows, err := filler.LogConditionals(ctx, template, ids)
		if err != nil {
			rows = nil
		}
		return conditionalsMsg{conditionals{template, key, rows}}
	})
}

// key gives a key to what is in front.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
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
		return nil
	case m.help:
		m.helpKey(k)
		return nil
	case m.panel != nil:
		return m.panelKey(k)
	case m.prompt != nil:
		return m.promptKey(k)
	case m.editor.marking != nil:
		return m.markKey(k)
	case m.writing:
		return m.writeKey(k)
	}
	return m.browseKey(k)
}

func (m *Model) helpKey(k tea.KeyPressMsg) {
	switch {
	case key.Matches(k, m.keys.Up):
		m.helpOffset = max(m.helpOffset-1, 0)
	case key.Matches(k, m.keys.Down, m.keys.PageDown):
		m.helpOffset++
	default:
		m.help, m.helpOffset = false, 0
	}
}

func (m *Model) writeKey(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case key.Matches(k, m.keys.Blank) && !(k.String() == "_" && m.editor.insideBlank()):
		m.editor.insertBlank()
		return m.edited()
	case key.Matches(k, m.keys.MarkWhileWriting):
		return m.mark()
	case key.Matches(k, m.keys.Leave):
		m.writing = false
	case m.editor.edit(k):
		return m.edited()
	}
	return nil
}

// paste gives pasted text to what is being written.
func (m *Model) paste(message tea.PasteMsg) tea.Cmd {
	switch {
	case m.tooSmall() || m.help:
	case m.panel != nil:
		m.panel.typeText(message.Content)
	case m.prompt != nil:
		m.promptEdit(message)
	case m.writing && m.editor.edit(message):
		return m.edited()
	}
	return nil
}

// mark begins to choose words, if there are any.
func (m *Model) mark() tea.Cmd {
	if !m.editor.mark() {
		m.fail("no words to mark: write or paste a sentence first")
		return nil
	}
	m.writing = false
	return nil
}

func (m *Model) markKey(k tea.KeyPressMsg) tea.Cmd {
	marking := m.editor.marking
	switch {
	case key.Matches(k, m.keys.Left):
		marking.at = max(marking.at-1, 0)
	case key.Matches(k, m.keys.Right):
		marking.at = min(marking.at+1, len(marking.words)-1)
	case key.Matches(k, m.keys.First):
		marking.at = 0
	case key.Matches(k, m.keys.Last):
		marking.at = len(marking.words) - 1
	case key.Matches(k, m.keys.Toggle):
		m.editor.toggle(marking.at)
		return m.edited()
	case key.Matches(k, m.keys.Apply, m.keys.Dismiss, m.keys.NextView, m.keys.Mark, m.keys.Quit):
		m.editor.marking = nil
	}
	return nil
}

func (m *Model) panelKey(k tea.KeyPressMsg) tea.Cmd {
	p := m.panel
	switch k.String() {
	case "up", "shift+tab":
		p.move(-1)
	case "down", "tab":
		p.move(1)
	case "left":
		p.turn(-1)
	case "right":
		p.turn(1)
	case "backspace":
		p.erase()
	case "esc":
		m.panel = nil
	case "enter":
		return m.apply()
	default:
		if k.Text != "" {
			p.typeText(k.Text)
		}
	}
	return nil
}

// apply takes the panel's options over.
func (m *Model) apply() tea.Cmd {
	i := m.panelSide()
	options, model, ok := m.panel.options(m.sides[i].options)
	if !ok {
		return nil
	}
	m.panel = nil
	m.sides[i].options = options
	if i == 0 && m.sides[1].options.Sampler != options.Sampler || i == 1 {
		// What both have in common stays common: the same chains, steps and seed.
		shared := m.sides[1-i].options
		shared.Chains, shared.Steps, shared.Candidates = options.Chains, options.Steps, options.Candidates
		shared.Temperature, shared.Seed = options.Temperature, options.Seed
		shared.Mode, shared.WarmUp, shared.Ladder, shared.Constraints = options.Mode, options.WarmUp, options.Ladder, options.Constraints
		m.sides[1-i].options = shared
	}
	if model != m.config.Model {
		return m.open(model)
	}
	if i == 1 {
		if m.sides[0].snapshot != nil && !reflect.DeepEqual(m.sides[0].made.options, m.sides[0].options) {
			return m.start(0)
		}
		return m.startSecond()
	}
	return m.start(0)
}

// panelSide is the side whose options o changes.
func (m *Model) panelSide() int {
	if m.view == compareView {
		return m.compared
	}
	return 0
}

func (m *Model) browseKey(k tea.KeyPressMsg) tea.Cmd {
	keys := m.keys
	switch {
	case key.Matches(k, keys.Quit):
		return tea.Quit
	case key.Matches(k, keys.Help):
		m.help = true
	case key.Matches(k, keys.Write):
		m.writing = true
	case key.Matches(k, keys.Mark):
		return m.mark()
	case key.Matches(k, keys.Fills):
		return m.show(fillsView)
	case key.Matches(k, keys.Slots):
		return m.show(slotsView)
	case key.Matches(k, keys.Chains):
		return m.show(chainsView)
	case key.Matches(k, keys.Compare):
		return m.show(compareView)
	case key.Matches(k, keys.Runs):
		return m.show(runsView)
	case key.Matches(k, keys.NextView):
		return m.show((m.view + 1) % view(len(viewNames())))
	case key.Matches(k, keys.PreviousView):
		return m.show((m.view + view(len(viewNames())) - 1) % view(len(viewNames())))
	case m.view == runsView && m.runView.key(k, keys):
	case m.view == runsView && key.Matches(k, keys.Pick):
		return m.adopt()
	case key.Matches(k, keys.Up):
		m.move(-1)
	case key.Matches(k, keys.Down):
		m.move(1)
	case key.Matches(k, keys.PageUp):
		m.move(-max(m.bodyRows()-2, 1))
	case key.Matches(k, keys.PageDown):
		m.move(max(m.bodyRows()-2, 1))
	case key.Matches(k, keys.First):
		m.move(-1 << 30)
	case key.Matches(k, keys.Last):
		m.move(1 << 30)
	case key.Matches(k, keys.Left):
		m.turn(-1)
	case key.Matches(k, keys.Right):
		m.turn(1)
	case key.Matches(k, keys.Settings):
		i := m.panelSide()
		title := "options"
		if m.view == compareView {
			title = fmt.Sprintf("options of %c", 'A'+i)
		}
		m.panel = newPanel(m.styles, title, m.sides[i].options, m.config.Model, m.config.Models)
	case key.Matches(k, keys.Resample):
		for i := range m.sides {
			m.sides[i].options.Seed++
		}
		return m.start(0)
	case key.Matches(k, keys.Stop):
		m.stop(0)
		m.stop(1)
	case key.Matches(k, keys.Unpin):
		if len(m.pins) > 0 {
			m.pins = map[int]pin{}
			return m.start(0)
		}
	case m.view == fillsView || m.view == slotsView:
		return m.fillKey(k)
	}
	return nil
}

// fillKey handles what is done to the selected fill.
func (m *Model) fillKey(k tea.KeyPressMsg) tea.Cmd {
	keys, f := m.keys, m.current()
	switch {
	case key.Matches(k, keys.Filter):
		m.openPrompt("", false)
	case key.Matches(k, keys.Sort):
		if m.view == slotsView {
			m.byModel = !m.byModel
		} else {
			m.sort = (m.sort + 1) % orders
		}
		m.list()
	case key.Matches(k, keys.OnlyFavourites):
		m.onlyFavourites = !m.onlyFavourites
		m.chosen = ""
		m.list()
	case key.Matches(k, keys.Save):
		if len(m.listed) == 0 && len(m.favourites) == 0 {
			m.fail("nothing to save yet")
			return nil
		}
		m.openPrompt("fills.txt", true)
	case k.String() == "esc" && m.filter != "":
		m.filter = ""
		m.list()
	case f == nil:
	case key.Matches(k, keys.Pick):
		m.picked = m.pick(f)
		return tea.Quit
	case key.Matches(k, keys.Favourite):
		m.favour(f)
	case key.Matches(k, keys.Copy):
		// The words are not the screen's: a sequence cannot break out of base64.
		m.say("copied, if the terminal allows it (OSC 52)")
		return tea.SetClipboard(f.Text)
	case key.Matches(k, keys.Pin):
		return m.pin(f)
	}
	return nil
}

func (m *Model) favour(f *Fill) {
	if at := slices.IndexFunc(m.favourites, func(o Fill) bool { return o.key() == f.key() }); at >= 0 {
		m.favourites = slices.Delete(m.favourites, at, at+1)
	} else {
		m.favourites = append(m.favourites, *f)
	}
	if m.onlyFavourites {
		m.list()
	}
}

// pin keeps the chosen blank at the selected word and resamples the others, or
// frees it again.
func (m *Model) pin(f *Fill) tea.Cmd {
	p := m.sides[0].snapshot
	if f.Kept || p == nil || m.stale {
		m.fail("this fill is of another template: pick one of the present run")
		return nil
	}
	if p.Several {
		m.fail("fills of several lengths cannot be pinned: give the blank one length, as in [MASK:2]")
		return nil
	}
	blank := p.Template.Blanks[m.slot]
	want := pin{f.TokenIDs[blank.First : blank.First+blank.Slots], f.Values[m.slot]}
	if m.view == slotsView && m.slotRow < len(m.rows) {
		v := m.rows[m.slotRow]
		want = pin{v.TokenIDs, v.Text}
	}
	// Blanks of one name take the same fill, so they are pinned together.
	same := []int{m.slot}
	for i, b := range p.Template.Blanks {
		if i != m.slot && b.Name != "" && b.Name == blank.Name {
			same = append(same, i)
		}
	}
	if old, pinned := m.pins[m.slot]; pinned && (m.view == fillsView || slices.Equal(old.ids, want.ids)) {
		for _, i := range same {
			delete(m.pins, i)
		}
		return m.start(0)
	}
	if _, pinned := m.pins[m.slot]; !pinned && len(m.pins)+len(same) >= len(p.Template.Blanks) {
		m.fail("a slot has to stay free: nothing would be left to sample")
		return nil
	}
	for _, i := range same {
		m.pins[i] = want
	}
	m.chosen = ""
	return m.start(0)
}

// adopt takes a run's sentence over as the template.
func (m *Model) adopt() tea.Cmd {
	r := m.runView.state
	if r == nil || r.Err != nil || m.runView.table {
		return nil
	}
	m.editor = newEditor(r.Prompts[m.runView.sentence].Template)
	m.view = fillsView
	return m.edited()
}

// show turns to another view.
func (m *Model) show(v view) tea.Cmd {
	m.view = v
	m.list()
	if v == compareView {
		return m.startSecond()
	}
	return nil
}

// move moves the selection.
func (m *Model) move(by int) {
	switch m.view {
	case fillsView:
		if len(m.listed) == 0 {
			return
		}
		m.selected = min(max(m.selected+by, 0), len(m.listed)-1)
		m.chosen = m.listed[m.selected].key()
		if m.selected == 0 {
			m.chosen = ""
		}
		m.list()
	case slotsView:
		m.slotRow = max(min(m.slotRow+by, len(m.rows)-1), 0)
	case chainsView:
		m.chainOffset = max(m.chainOffset+by, 0)
		if p := m.sides[0].snapshot; p != nil {
			m.chainOffset = min(m.chainOffset, p.Chains-1)
		}
	case runsView:
		m.runView.step(by)
	case compareView:
		m.compareAt = max(m.compareAt+by, 0)
		most := 0
		for _, s := range m.sides {
			if s.snapshot != nil {
				most = max(most, len(s.snapshot.Fills)-1)
			}
		}
		m.compareAt = min(m.compareAt, most)
	}
}

// turn chooses another slot, or the other side.
func (m *Model) turn(by int) {
	if m.view == compareView {
		m.compared = min(max(m.compared+by, 0), 1)
		return
	}
	if p := m.sides[0].snapshot; p != nil {
		m.slot = max(min(m.slot+by, len(p.Values)-1), 0)
		m.slotRow = 0
		m.list()
	}
}

func viewNames() []string { return []string{"Fills", "Slots", "Chains", "Compare", "Runs"} }
