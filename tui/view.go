package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// These are the size of the smallest terminal that holds the screen, and the
// least width that shows the chosen blank beside the list of fills.
const (
	leastColumns = 60
	leastRows    = 16
	wideColumns  = 124
)

func (m *model) tooSmall() bool { return m.width < leastColumns || m.height < leastRows }

func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	return v
}

func (m *model) screen() string {
	if m.tooSmall() {
		text := fmt.Sprintf("infill needs %d × %d,\nthis terminal is %d × %d.", leastColumns, leastRows, m.width,
			m.height)
		lines := strings.Split(ansi.Wrap(text, m.width, ""), "\n")
		return lipgloss.Place(m.width, m.height, lipgloss.Center, lipgloss.Center,
			strings.Join(lines[:min(len(lines), m.height)], "\n"))
	}
	// If there is room, empty lines separate the parts.
	var gap []string
	if m.height >= 22 {
		gap = []string{""}
	}
	lines := append([]string{m.header()}, gap...)
	// The page of an evaluation shows sentences of its own.
	if m.view != runsView || !m.runs.shows() || m.writing || m.modelFault != "" {
		lines = append(append(lines, m.template()...), gap...)
	}
	lines = append(lines, m.tabs(), m.rule())
	rows := m.height - len(lines) - len(gap)
	notice := wrapped(m.notice, m.width-2, rows-2)
	rows -= len(notice) // at least 1
	var body string
	switch {
	case m.help != nil:
		body = m.help.render(m.styles, m.width, rows)
	case m.panel != nil:
		body = m.panel.render(m.width, rows)
	default:
		body = m.pages[m.view].render(m.width, rows)
	}
	return stack(m.width, m.height, slices.Concat(lines, []string{body}, gap, m.foot(notice))...)
}

func (m *model) header() string {
	left := m.config.Model
	r := &m.run
	s := r.shown
	if s != nil && s.result.Stats.Device != "" {
		left += " on " + s.result.Stats.Device
	}
	if m.width >= 84 && m.view != runsView {
		c, chains := r.request.Chains()
		if chains {
			left += " · " + c.Sampler.Describe().Name
		}
		if r.seeded() {
			left += fmt.Sprintf(" · seed %d", r.request.Seed)
		}
	}
	return between(" "+m.accent.Render("infill")+"  "+m.faint.Render(harmless(left)), m.status()+" ", m.width)
}

func (m *model) status() string {
	r := &m.run
	s := m.run.shown
	chains := s.stats()
	switch on := r.stream != nil; {
	case m.modelFault != "":
		return m.styles.fault.Render("no model")
	case m.opening:
		return m.amber.Render("opening the model")
	case on && (s == nil || r.stale):
		return m.amber.Render("● starting")
	case on && s.warmUp:
		return m.amber.Render(fmt.Sprintf("● warm-up %d/%d", s.step, s.steps))
	case on && chains != nil:
		return m.done.Render(fmt.Sprintf("● sampling %d/%d", s.step, s.steps))
	case on:
		return m.done.Render(fmt.Sprintf("● searching, %d %% of the budget", s.step))
	case r.fault != "":
		return m.faint.Render("waiting for a template")
	case s == nil:
		return ""
	case r.stopped && chains != nil:
		return m.amber.Render(fmt.Sprintf("■ stopped at %d/%d", s.step, s.steps))
	case r.stopped:
		return m.amber.Render("■ stopped")
	}
	state := s.result.Method
	if chains != nil {
		state = fmt.Sprintf("%d × %d steps", chains.Chains, chains.Steps)
	}
	return m.good.Render("✓ ") + m.faint.Render(fmt.Sprintf("%s, %.1f s", state, s.result.Stats.Seconds))
}

// template draws the template with a bar at the left, and its fault, if there is one.
func (m *model) template() []string {
	edge := m.line.Render(" ▎ ")
	rows := min(4, m.height/5)
	if m.writing {
		edge = m.accent.Render(" ▎ ")
		rows = min(10, m.height/3)
	}
	var lines []string
	for _, line := range m.editor.render(m, m.width-4, rows) {
		lines = append(lines, edge+line)
	}
	fault := m.run.fault
	look := m.amber
	if m.modelFault != "" {
		fault, look = m.modelFault, m.styles.fault
	}
	if fault != "" {
		const others = 8 // rows of the header, the tabs, the foot, gaps and a page
		for _, line := range wrapped(fault, m.width-4, m.height-len(lines)-others) {
			lines = append(lines, "   "+look.Render(line))
		}
	}
	return lines
}

// tabs draws the names of the pages, and the limit and order of the fills.
func (m *model) tabs() string {
	text := " "
	for v := range views {
		label := fmt.Sprintf("%d %s", v+1, v)
		look := m.faint
		if m.view == v {
			look = m.active
		}
		text += look.Render(label) + "  "
	}
	limits := ""
	f := &m.fills
	if m.view == fillsView {
		if f.filter != "" {
			limits = m.amber.Render("/" + harmless(cut(f.filter, 24)) + " ")
		}
		if f.byCount && f.drawn() {
			limits += m.faint.Render("by draws ")
		}
	}
	return between(text, limits, m.width)
}

// rule draws the line below the tabs, which is also the progress bar of the run.
func (m *model) rule() string {
	s := m.run.shown
	if m.run.stream == nil || s == nil || s.steps == 0 || m.view == runsView {
		return m.line.Render(strings.Repeat("─", m.width))
	}
	done := min(m.width*s.step/s.steps, m.width)
	warm := min(m.width*s.warm/s.steps, done)
	return m.amber.Render(strings.Repeat("━", warm)) + m.done.Render(strings.Repeat("━", done-warm)) + m.line.Render(
		strings.Repeat("─", m.width-done))
}

// scroll returns the offset at which the selected line is in sight.
func scroll(offset, selected, rows, total int) int {
	offset = min(offset, max(total-rows, 0))
	if selected < offset {
		return selected
	}
	return max(offset, selected-rows+1)
}

// foot draws the prompt, a notice, or the hints of the page that was drawn.
func (m *model) foot(notice []string) []string {
	columns := m.width - 2
	var keys []hint
	switch {
	case m.filter != nil:
		return []string{" " + m.filterLine(columns)}
	case m.notice != "":
		look := m.good
		if m.noticeFault {
			look = m.styles.fault
		}
		for i, line := range notice {
			notice[i] = " " + look.Render(line)
		}
		return notice
	case m.panel != nil:
		keys = []hint{{"↑↓", "option"}, {"←→", "value, or type one"}, {"enter", "fill"}, {"esc", "leave"}}
	case m.help != nil:
		keys = []hint{{"esc", "close"}, {"↓", "more"}}
	case m.writing:
		keys = []hint{{"_", "blank"}, {"tab", "to the fills"}, {"ctrl+t", "blank the word"}, {"ctrl+c", "quit"}}
	default:
		end := m.accent.Render("?") + m.faint.Render(" help · ") + m.accent.Render("q") + m.faint.Render(" quit")
		return []string{" " + m.hints(columns-width(end)-2, m.pages[m.view].hints()...) + "  " + end}
	}
	return []string{" " + m.hints(columns, keys...)}
}

func (m *model) filterLine(columns int) string {
	const label = "filter "
	note := fmt.Sprintf("%d found", len(m.fills.listed))
	value := []rune(harmless(m.filter.Value()) + " ")
	at := min(m.filter.Position(), len(value)-1)
	shown := string(value[:at]) + m.cursor.Render(string(value[at])) + strings.TrimSuffix(string(value[at+1:]), " ")
	room := max(columns-width(label)-width(note)-3, 8)
	w := width(shown)
	if w > room {
		shown = ansi.TruncateLeft(shown, w-room+1, "…")
	}
	return between(m.accent.Render(label)+shown, " "+m.faint.Render(note), columns)
}

// pinHint and runHint return hints with what the keys for pins and runs do now.
func (m *model) pinHint() hint {
	_, pinned := m.pins[m.blank]
	if pinned {
		return hint{"p", "unpin"}
	}
	return hint{"p", "pin"}
}

func (m *model) runHint() hint {
	if m.run.stream != nil {
		return hint{"x", "stop"}
	}
	return hint{"r", "next seed"}
}

// note draws a page that only says why it is empty.
func (s *styles) note(text string, columns, rows int) string {
	lines := []string{""}
	for _, line := range wrapped(text, columns-8, rows) {
		lines = append(lines, "    "+s.faint.Render(line))
	}
	return stack(columns, rows, lines...)
}
