package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// The smallest terminal that holds the screen, and the width from which on the
// selected fill's details stand beside the list.
const (
	leastColumns, leastRows = 60, 16
	wideColumns             = 124
)

func (m *model) tooSmall() bool { return m.width < leastColumns || m.height < leastRows }
func (m *model) wide() bool     { return m.width >= wideColumns }

// View implements tea.Model. A frame is drawn once for every change.
func (m *model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	return v
}

func (m *model) screen() string {
	if m.frame == "" {
		m.frame = m.draw()
	}
	return m.frame
}

func (m *model) draw() string {
	m.zones = m.zones[:0]
	if m.tooSmall() {
		text := fmt.Sprintf("infill needs %d × %d,\nthis terminal is %d × %d.", leastColumns, leastRows, m.width,
			m.height)
		lines := strings.Split(ansi.Wrap(text, m.width, ""), "\n")
		return lipgloss.Place(m.width, m.height, lipgloss.Center, lipgloss.Center,
			strings.Join(lines[:min(len(lines), m.height)], "\n"))
	}
	// Where there is room, blank lines stand between the parts.
	var gap []string
	if m.height >= 22 {
		gap = []string{""}
	}
	lines := append([]string{m.header()}, gap...)
	// A run has its own sentences.
	if m.view != runsView || m.writing || m.modelFault != "" {
		m.editorOrigin = [2]int{3, len(lines)}
		lines = append(lines, m.template()...)
		m.zone(0, m.editorOrigin[1], m.width, len(lines)-m.editorOrigin[1], m.clickTemplate)
		lines = append(lines, gap...)
	}
	lines = append(lines, m.tabs(len(lines)), m.rule())
	m.top = len(lines)
	rows := m.height - m.top - len(gap) - 1
	var body string
	if m.help != nil {
		body = m.help.render(m.styles, m.keys, m.width, rows)
	} else {
		body = m.pages[m.view].render(m.width, rows)
	}
	if m.panel != nil {
		body = overlay(body, m.panel.render(m.width-4, rows), m.width, rows)
		m.zones = m.zones[:0]
	}
	lines = append(append(append(lines, body), gap...), m.foot())
	return stack(m.width, m.height, lines...)
}

// zone is a part of the screen that the mouse works on.
type zone struct {
	x, y, width, height int
	click               func(x, y int) tea.Cmd
}

func (m *model) zone(x, y, width, height int, click func(x, y int) tea.Cmd) {
	m.zones = append(m.zones, zone{x, y, width, height, click})
}

// header names the program and the model, and says what is going on.
func (m *model) header() string {
	left := " " + m.accent.Render("infill") + "  " + m.faint.Render(harmless(m.config.Model))
	if p := m.run.snapshot; p != nil && p.Result != nil && p.Result.Stats.Device != "" {
		left += m.faint.Render(" on " + harmless(p.Result.Stats.Device))
	}
	o := m.run.options
	if m.width >= 84 && m.view != runsView {
		left += m.faint.Render(" · " + o.Sampler)
		if p := m.run.snapshot; !o.Answers() || p != nil && p.Result != nil && p.Result.Seed != nil {
			left += m.faint.Render(fmt.Sprintf(" · seed %d", o.Seed))
		}
	}
	return between(left, m.status()+" ", m.width)
}

func (m *model) status() string {
	a := &m.run
	switch {
	case m.modelFault != "":
		return m.styles.fault.Render("no model")
	case m.opening:
		return m.amber.Render("opening the model")
	case a.stream != nil && (a.snapshot == nil || m.stale):
		return m.amber.Render("● starting")
	case a.stream != nil && a.snapshot.WarmUp:
		return m.amber.Render("● " + a.state())
	case a.stream != nil:
		return m.done.Render("● " + a.state())
	case a.fault != "" && a.fault != stopped:
		return m.faint.Render("waiting for a template")
	case a.stopped && a.snapshot != nil:
		return m.amber.Render("■ " + a.state())
	case a.snapshot != nil:
		return m.good.Render("✓ ") + m.faint.Render(a.state())
	}
	return ""
}

// editorView is how the template is drawn now.
func (m *model) editorView() editorView {
	blank := -1
	if m.view != runsView {
		blank = m.blank
	}
	rows := min(4, m.height/5)
	if m.writing || m.editor.marking != nil {
		rows = min(10, m.height/3)
	}
	return editorView{m.styles, m.writing, blank, m.pins, rows}
}

// template draws the text with a bar at its left, and what is wrong with it.
func (m *model) template() []string {
	edge := m.line.Render(" ▎ ")
	if m.writing || m.editor.marking != nil {
		edge = m.accent.Render(" ▎ ")
	}
	var lines []string
	for _, line := range m.editor.render(m.editorView(), m.width-4) {
		lines = append(lines, edge+line)
	}
	fault, look := m.run.fault, m.amber
	if m.modelFault != "" {
		fault, look = m.modelFault, m.styles.fault
	}
	if fault != "" && fault != stopped {
		told := strings.Split(ansi.Wrap(fault, m.width-4, ""), "\n")
		for _, line := range told[:min(len(told), 2)] {
			lines = append(lines, "   "+look.Render(line))
		}
	}
	return lines
}

// tabs lists the views, and what the page is limited to.
func (m *model) tabs(y int) string {
	text, x := " ", 1
	for v := range views {
		label, look := fmt.Sprintf("%d %s", v+1, v), m.faint
		if m.view == v {
			look = m.active
		}
		m.zone(x, y, width(label)+1, 1, func(int, int) tea.Cmd { m.view = v; return nil })
		text += look.Render(label) + "  "
		x += width(label) + 2
	}
	return between(text, strings.Join(m.pages[m.view].limits(), m.faint.Render(" · "))+" ", m.width)
}

// rule is the line below the tabs, which is the progress bar of the run.
func (m *model) rule() string {
	a := &m.run
	p := a.snapshot
	if a.stream == nil || p == nil || p.Options.Steps == 0 || m.view == runsView {
		return m.line.Render(strings.Repeat("─", m.width))
	}
	steps := max(p.Steps, p.Options.Steps)
	done := min(m.width*p.Step/steps, m.width)
	warm := min(m.width*p.WarmUpSteps/steps, done)
	return m.amber.Render(strings.Repeat("━", warm)) + m.done.Render(strings.Repeat("━", done-warm)) + m.line.Render(
		strings.Repeat("─", m.width-done))
}

// scroll keeps a selection in sight.
func scroll(offset, selected, rows, total int) int {
	offset = min(offset, max(total-rows, 0))
	if selected < offset {
		return selected
	}
	return max(offset, selected-rows+1)
}

// foot shows the prompt, a notice, or the keys of the moment.
func (m *model) foot() string {
	k, columns := m.keys, m.width-2
	var keys []key.Binding
	switch {
	case m.prompt != nil:
		return " " + m.promptLine(columns)
	case m.notice != "":
		look := m.good
		if m.noticeFault {
			look = m.styles.fault
		}
		return " " + look.Render(cut(m.notice, columns))
	case m.panel != nil:
		keys = []key.Binding{as(k.Up, "option"), as(k.Left, "value, or type one"), as(k.Apply, "sample"), k.Dismiss}
	case m.help != nil:
		keys = []key.Binding{as(k.Dismiss, "close"), as(k.Down, "more")}
	case m.editor.marking != nil:
		keys = []key.Binding{as(k.Toggle, "mark or unmark the word"), as(k.Right, "next word"), k.Apply}
	case m.writing:
		keys = []key.Binding{k.Blank, k.Leave, k.MarkWhileWriting, k.Interrupt}
	default:
		end := m.accent.Render("?") + m.faint.Render(" help · ") + m.accent.Render("q") + m.faint.Render(" quit")
		return " " + shortHelp(m.styles, columns-width(end)-2, m.pages[m.view].hints(k)...) + "  " + end
	}
	return " " + shortHelp(m.styles, columns, keys...)
}

// pinHint and runHint are what the keys for pins and runs do now.
func (m *model) pinHint() key.Binding {
	if _, pinned := m.pins[m.blank]; pinned {
		return as(m.keys.Pin, "unpin")
	}
	return as(m.keys.Pin, "pin")
}

func (m *model) runHint() key.Binding {
	if m.run.stream != nil {
		return m.keys.Stop
	}
	return m.keys.Resample
}

// note is a page that says why it shows nothing.
func (s *styles) note(text string, columns, rows int) string {
	return stack(columns, rows, "", s.faint.Render(cut("    "+text, columns)))
}

// overlay puts a box over the middle of a page.
func overlay(page, box string, columns, rows int) string {
	lines, over := strings.Split(page, "\n"), strings.Split(box, "\n")
	over = over[:min(len(over), rows)]
	boxWidth := width(over[0])
	x, y := max((columns-boxWidth)/2, 0), max((rows-len(over))/2, 0)
	for i, line := range over {
		under := fit(lines[y+i], columns)
		lines[y+i] = ansi.Truncate(under, x, "") + line + ansi.TruncateLeft(under, x+boxWidth, "")
	}
	return strings.Join(lines, "\n")
}

func (m *model) clickTemplate(x, y int) tea.Cmd {
	if m.editor.click(m.editorView(), m.width-4, x-m.editorOrigin[0], y) {
		m.writing = false
		return m.edited()
	}
	return nil
}

// mouse gives a click to what is under it.
func (m *model) mouse(event tea.MouseMsg) tea.Cmd {
	if m.tooSmall() || m.panel != nil || m.prompt != nil {
		return nil
	}
	mouse := event.Mouse()
	switch event.(type) {
	case tea.MouseWheelMsg:
		by := map[tea.MouseButton]int{tea.MouseWheelUp: -1, tea.MouseWheelDown: 1}[mouse.Button]
		if m.help != nil {
			m.help.offset = max(m.help.offset+by, 0)
		} else {
			m.pages[m.view].move(by)
		}
	case tea.MouseClickMsg:
		if mouse.Button != tea.MouseLeft || m.help != nil {
			return nil
		}
		m.notice = ""
		for _, z := range m.zones {
			if x, y := mouse.X-z.x, mouse.Y-z.y; x >= 0 && x < z.width && y >= 0 && y < z.height {
				return z.click(x, y)
			}
		}
	}
	return nil
}
