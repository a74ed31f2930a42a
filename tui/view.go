package tui

import (
	"fmt"
	"math"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// The smallest terminal that holds the screen, and the width from which on the
// selected fill is told of beside the list.
const (
	leastColumns, leastRows = 60, 16
	wideColumns             = 124
)

func (m *Model) tooSmall() bool { return m.width < leastColumns || m.height < leastRows }
func (m *Model) wide() bool     { return m.width >= wideColumns }

// View implements tea.Model. A frame is drawn once for every change.
func (m *Model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	return v
}

func (m *Model) screen() string {
	if m.frame == "" {
		m.frame = m.draw()
	}
	return m.frame
}

func (m *Model) draw() string {
	if m.width == 0 || m.height == 0 {
		return ""
	}
	m.zones = m.zones[:0]
	if m.tooSmall() {
		text := fmt.Sprintf("infill needs %d × %d,\nthis terminal is %d × %d.", leastColumns, leastRows, m.width, m.height)
		lines := strings.Split(ansi.Wrap(text, m.width, ""), "\n")
		return lipgloss.Place(m.width, m.height, lipgloss.Center, lipgloss.Center, strings.Join(lines[:min(len(lines), m.height)], "\n"))
	}
	lines := []string{m.header()}
	if m.airy() {
		lines = append(lines, "")
	}
	// A run has its own sentences.
	if m.view != runsView || m.writing || m.modelFault != "" {
		m.editorOrigin = [2]int{3, len(lines)}
		lines = append(lines, strings.Split(m.template(), "\n")...)
		m.zone(0, m.editorOrigin[1], m.width, len(lines)-m.editorOrigin[1], m.clickTemplate)
		if m.airy() {
			lines = append(lines, "")
		}
	}
	lines = append(lines, m.tabs(len(lines)), m.rule())
	top := len(lines)
	rows := m.height - top - 1
	if m.airy() {
		rows--
	}
	body := m.body(top, rows)
	if m.panel != nil {
		body = overlay(body, m.panel.render(m.width-4, rows), m.width, rows)
		m.zones = m.zones[:0]
	}
	lines = append(lines, strings.Split(body, "\n")...)
	if m.airy() {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot())
	for i := range lines {
		lines[i] = fit(lines[i], m.width)
	}
	return strings.Join(lines, "\n")
}

// airy tells of room for blank lines between the parts.
func (m *Model) airy() bool { return m.height >= 22 }

func (m *Model) zone(x, y, width, height int, click func(x, y int) tea.Cmd) {
	m.zones = append(m.zones, zone{x, y, width, height, click})
}

// header names the program and the model, and says what is going on.
func (m *Model) header() string {
	s := m.styles
	left := " " + s.brand.Render("infill") + "  " + s.faint.Render(harmless(m.config.Model))
	if p := m.sides[0].snapshot; p != nil && p.Result != nil && p.Result.Stats.Device != "" {
		left += s.faint.Render(" on " + harmless(p.Result.Stats.Device))
	}
	o := m.sides[0].options
	if m.width >= 84 && m.view != runsView {
		left += s.faint.Render(fmt.Sprintf(" · %s · seed %d", o.Sampler, o.Seed))
	}
	return between(left, m.status()+" ", m.width)
}

func (m *Model) status() string {
	s, a := m.styles, &m.sides[0]
	switch {
	case m.modelFault != "":
		return s.fault.Render("no model")
	case m.opening:
		return s.warmUp.Render("opening the model")
	case a.stream != nil && (a.snapshot == nil || m.stale):
		return s.warmUp.Render("● starting")
	case a.stream != nil && a.snapshot.WarmUp:
		return s.warmUp.Render("● " + a.state())
	case a.stream != nil:
		return s.done.Render("● " + a.state())
	case a.fault != "" && a.fault != "stopped":
		return s.faint.Render("waiting for a template")
	case a.stopped && a.snapshot != nil:
		return s.warning.Render("■ " + a.state())
	case a.snapshot != nil:
		return s.good.Render("✓ ") + s.faint.Render(a.state())
	}
	return ""
}

// editorView is how the template is drawn now.
func (m *Model) editorView() editorView {
	slot := -1
	if m.view != runsView {
		slot = m.slot
	}
	rows := min(4, m.height/5)
	if m.writing || m.editor.marking != nil {
		rows = min(10, m.height/3)
	}
	return editorView{m.styles, m.writing, slot, m.pins, rows}
}

// template draws the text with a bar at its left, and what is wrong with it.
func (m *Model) template() string {
	s := m.styles
	edge := s.rule.Render(" ▎ ")
	if m.writing || m.editor.marking != nil {
		edge = s.marker.Render(" ▎ ")
	}
	var lines []string
	for _, line := range strings.Split(m.editor.render(m.editorView(), m.width-4), "\n") {
		lines = append(lines, edge+line)
	}
	fault := m.sides[0].fault
	if m.modelFault != "" {
		fault = m.modelFault
	}
	if fault != "" && fault != "stopped" {
		look := s.warning
		if m.modelFault != "" {
			look = s.fault
		}
		for i, line := range strings.Split(ansi.Wrap(fault, m.width-4, ""), "\n") {
			if i < 2 {
				lines = append(lines, "   "+look.Render(line))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// tabs lists the views, and what the list is limited to.
func (m *Model) tabs(y int) string {
	s := m.styles
	text, x := " ", 1
	for i, name := range viewNames() {
		label := fmt.Sprintf("%d %s", i+1, name)
		look := s.tab
		if m.view == view(i) {
			look = s.activeTab
		}
		v := view(i)
		m.zone(x, y, width(label)+1, 1, func(int, int) tea.Cmd { return m.show(v) })
		text += look.Render(label) + "  "
		x += width(label) + 2
	}
	return between(text, m.limits()+" ", m.width)
}

// limits says how the list is sorted and filtered.
func (m *Model) limits() string {
	s := m.styles
	var notes []string
	switch m.view {
	case fillsView:
		if m.onlyFavourites {
			notes = append(notes, s.favourite.Render("★ only"))
		} else if len(m.favourites) > 0 {
			notes = append(notes, s.favourite.Render(fmt.Sprintf("%d ★", len(m.favourites))))
		}
		if m.filter != "" {
			notes = append(notes, s.warning.Render("/"+harmless(ansi.Truncate(m.filter, 12, "…"))))
		}
		if m.sort != byLikelihood || m.width >= 84 {
			by := m.sort.String()
			if p := m.sides[0].snapshot; m.sort == byLikelihood && p != nil && p.Several {
				by = "score"
			}
			notes = append(notes, s.faint.Render("by "+by))
		}
	case slotsView:
		if m.byModel {
			notes = append(notes, s.faint.Render("by the model"))
		}
	}
	return strings.Join(notes, s.faint.Render(" · "))
}

// rule is the line below the tabs, which is the progress bar of the run.
func (m *Model) rule() string {
	s, a := m.styles, &m.sides[0]
	p := a.snapshot
	if m.view == compareView && m.sides[1].stream != nil {
		p = m.sides[1].snapshot
		a = &m.sides[1]
	}
	if a.stream == nil || p == nil || p.Options.Steps == 0 || m.view == runsView {
		return s.rule.Render(strings.Repeat("─", m.width))
	}
	steps := max(p.Steps, p.Options.Steps)
	done := min(m.width*p.Step/steps, m.width)
	warm := min(m.width*p.WarmUpSteps/steps, done)
	return s.warmUp.Render(strings.Repeat("━", warm)) + s.done.Render(strings.Repeat("━", done-warm)) + s.rule.Render(strings.Repeat("─", m.width-done))
}

func (m *Model) bodyRows() int { return max(m.height-7, 1) }

// scroll keeps a selection in sight.
func scroll(offset, selected, rows, total int) int {
	offset = min(offset, max(total-rows, 0))
	if selected < offset {
		return selected
	}
	return max(offset, selected-rows+1)
}

func (m *Model) body(top, rows int) string {
	if m.help {
		return m.helpPage(rows)
	}
	switch m.view {
	case slotsView:
		return m.slotsPage(top, rows)
	case chainsView:
		if p := m.sides[0].snapshot; p != nil && p.Several {
			return stack(m.width, rows, "", m.styles.faint.Render(ansi.Truncate("    chains are shown where every blank has one length, as in [MASK:2]", m.width, "…")))
		}
		t := &chainTable{styles: m.styles, snapshot: m.sides[0].snapshot, offset: m.chainOffset, rows: rows}
		text := t.Render(m.width - 1)
		m.chainOffset = t.offset
		return text
	case compareView:
		c := &comparison{styles: m.styles, sides: [2]*side{&m.sides[0], &m.sides[1]}, chosen: m.compared, offset: m.compareAt, rows: rows, pins: m.pins}
		for i := range c.sides {
			m.zone(i*(m.width+1)/2, top, m.width/2, rows, func(int, int) tea.Cmd { m.compared = i; return nil })
		}
		return c.Render(m.width)
	case runsView:
		return m.runView.Render(m.styles, m.width, rows)
	}
	return m.fillsPage(top, rows)
}

func (m *Model) fillsPage(top, rows int) string {
	s, p := m.styles, m.sides[0].snapshot
	listWidth, detailWidth := m.width-1, 0
	if m.wide() {
		detailWidth = min(max(m.width*2/5, 46), 64)
		listWidth = m.width - detailWidth - 4
	}
	var said []string
	if detailWidth == 0 && !m.stale && rows >= 8 {
		said = warnings(p)
	}
	said = said[:min(len(said), 2)]
	rows -= len(said)
	m.offset = scroll(m.offset, m.selected, rows-1, len(m.listed))
	t := &fillTable{styles: s, fills: m.listed, selected: m.selected, offset: m.offset, rows: rows, favourites: map[string]bool{}, pins: m.pins,
		focused: !m.writing, provisional: p != nil && p.WarmUp, empty: m.emptyList()}
	for _, f := range m.favourites {
		t.favourites[f.key()] = true
	}
	t.best = math.Inf(-1)
	if p != nil && len(p.Fills) > 0 {
		t.best = p.Fills[0].rating()
	}
	for i := m.offset; i < len(m.listed) && i-m.offset < rows-1; i++ {
		m.zone(0, top+1+i-m.offset, listWidth, 1, func(x, _ int) tea.Cmd {
			if i < len(m.listed) {
				m.writing = false
				m.move(i - m.selected)
				if x >= 2 && x < 4 {
					m.favour(m.current())
				}
			}
			return nil
		})
	}
	list := t.Render(listWidth)
	if detailWidth == 0 {
		for _, w := range said {
			list += "\n    " + s.warning.Render(ansi.Truncate(w, m.width-6, "…"))
		}
		return list
	}
	d := &detail{styles: s, fill: m.current(), snapshot: p, pins: m.pins, given: m.given, rows: rows}
	if m.stale {
		d.fill = nil
	}
	return beside(s.rule.Render(" │ "), rows, list, d.Render(detailWidth))
}

// emptyList says why no fill is listed.
func (m *Model) emptyList() string {
	switch {
	case m.modelFault != "":
		return "press o for another model, or q"
	case m.onlyFavourites && len(m.favourites) == 0:
		return "no favourites yet: f marks one; F lists all"
	case m.filter != "":
		return "no fill matches; esc drops the filter"
	case m.sides[0].stream != nil && m.sides[0].snapshot != nil && m.sides[0].snapshot.Several:
		return "the fills come when every length was sampled"
	case m.opening || m.sides[0].stream != nil:
		return "the chains are starting …"
	}
	return "the fills come here"
}

func (m *Model) slotsPage(top, rows int) string {
	s, p := m.styles, m.sides[0].snapshot
	if p != nil && p.Several {
		return stack(m.width, rows, "", s.faint.Render(ansi.Truncate("    slots are shown where every blank has one length, as in [MASK:2]", m.width, "…")))
	}
	if p == nil || len(p.Values) == 0 {
		return stack(m.width, rows, "", s.faint.Render("    "+m.emptyList()))
	}
	note := 0
	f := m.current()
	if rows >= 8 {
		note = 1
	}
	from, number := slotColumns(len(p.Values), m.slot, m.width)
	columnWidth := (m.width - 3*(number-1) - 1) / number
	text := ""
	for blank := from; blank < from+number; blank++ {
		t := &slotTable{styles: s, blank: blank, rows: rows - note, chosen: -1, pieces: p.Template.Blanks[blank].Slots,
			waiting: m.asked != ""}
		if blank == m.slot {
			t.values, t.chosen = m.rows, m.slotRow
			t.offset = scroll(0, m.slotRow, rows-note-2, len(m.rows))
		} else {
			t.values = slotRows(p, blank, m.given, f, m.byModel)
		}
		if held, ok := m.pins[blank]; ok {
			t.pin = &held
		}
		x := (blank - from) * (columnWidth + 3)
		offset, values := t.offset, len(t.values)
		m.zone(x, top, columnWidth, rows, func(_, y int) tea.Cmd {
			m.slot = blank
			m.list()
			m.slotRow = min(max(offset+y-2, 0), max(values-1, 0))
			return nil
		})
		column := t.Render(columnWidth)
		if blank == from {
			text = column
		} else {
			text = beside(s.rule.Render(" │ "), rows-note, text, column)
		}
	}
	if note == 0 {
		return text
	}
	told := "━ sampled  ─ its standard error  ◆ the model's own, the other slots as in the best fill"
	if f != nil {
		told = "━ sampled  ─ its standard error  ◆ the model's own, the rest as in: " + harmless(strings.Join(f.Values, " … "))
	}
	if hidden := len(p.Values) - number; hidden > 0 {
		which := fmt.Sprintf("slots %d to %d of %d", from+1, from+number, len(p.Values))
		if number == 1 {
			which = fmt.Sprintf("slot %d of %d", from+1, len(p.Values))
		}
		told = which + " · " + told
	}
	return text + "\n" + s.faint.Render(" "+ansi.Truncate(told, m.width-2, "…"))
}

// foot shows the prompt, a notice, or the keys of the moment.
func (m *Model) foot() string {
	s, k := m.styles, m.keys
	columns := m.width - 2
	named := func(b key.Binding, help string) key.Binding { b.SetHelp(b.Help().Key, help); return b }
	switch {
	case m.prompt != nil:
		p := m.prompt
		label := "filter "
		if p.saving {
			label = fmt.Sprintf("save %d to ", len(m.chosenFills()))
		}
		note := p.note
		if note == "" && !p.saving {
			note = fmt.Sprintf("%d found", len(m.listed))
		}
		if note == "" {
			note = ".jsonl for JSON"
		}
		value, at := []rune(harmless(p.input.Value())), p.input.Position()
		shown := string(value[:min(at, len(value))]) + s.cursor.Render(string(append(value[min(at, len(value)):], ' ')[0])) + string(value[min(at+1, len(value)):])
		room := max(columns-width(label)-width(note)-3, 8)
		if w := width(shown); w > room {
			shown = ansi.TruncateLeft(shown, w-room+1, "…")
		}
		look := s.faint
		if p.note != "" {
			look = s.warning
		}
		return " " + between(s.key.Render(label)+shown, " "+look.Render(ansi.Truncate(note, columns-8, "…")), columns)
	case m.notice != "":
		look := s.good
		if m.noticeFault {
			look = s.fault
		}
		return " " + look.Render(ansi.Truncate(m.notice, columns, "…"))
	case m.panel != nil:
		return " " + shortHelp(s, columns, named(k.Up, "option"), named(k.Left, "value, or type one"), named(k.Apply, "sample"), k.Dismiss)
	case m.help:
		return " " + shortHelp(s, columns, named(k.Dismiss, "close"), named(k.Down, "more"))
	case m.editor.marking != nil:
		return " " + shortHelp(s, columns, named(k.Toggle, "mark or unmark the word"), named(k.Right, "next word"), k.Apply)
	case m.writing:
		return " " + shortHelp(s, columns, k.Blank, k.Leave, k.MarkWhileWriting, k.Interrupt)
	}
	var keys []key.Binding
	pinned := named(k.Pin, "pin")
	if _, ok := m.pins[m.slot]; ok {
		pinned = named(k.Pin, "unpin")
	}
	stop := k.Resample
	if m.sides[0].stream != nil || m.sides[1].stream != nil {
		stop = k.Stop
	}
	write, options := named(k.Write, "write"), named(k.Settings, "options")
	switch m.view {
	case fillsView:
		keys = []key.Binding{named(k.Pick, "pick"), write, pinned, named(k.Favourite, "★"), k.Filter, k.Sort, k.Save, k.Copy, options, stop}
	case slotsView:
		keys = []key.Binding{named(k.Right, "slot"), pinned, k.Sort, write, options, stop}
	case chainsView:
		keys = []key.Binding{named(k.Down, "more chains"), options, stop, write}
	case compareView:
		keys = []key.Binding{named(k.Right, "side"), named(k.Settings, "its options"), stop, write}
	case runsView:
		keys = m.runView.keys(k)
	}
	end := s.key.Render("?") + s.faint.Render(" help · ") + s.key.Render("q") + s.faint.Render(" quit")
	return " " + shortHelp(s, columns-width(end)-2, keys...) + "  " + end
}

// helpPage lists every key.
func (m *Model) helpPage(rows int) string {
	s := m.styles
	var columns [2][]string
	groups := m.keys.groups()
	two := m.width >= 110
	for i, g := range groups {
		c := 0
		if two && i >= 2 {
			c = 1
		}
		if g.title != "" {
			if len(columns[c]) > 0 {
				columns[c] = append(columns[c], "")
			}
			columns[c] = append(columns[c], "  "+s.panelTitle.Render(g.title))
		}
		for _, k := range g.keys {
			columns[c] = append(columns[c], "  "+s.key.Render(fit(k.Help().Key, 9))+" "+k.Help().Desc)
		}
	}
	columns[0] = append(columns[0], "", s.faint.Render("  The mouse chooses views, fills, slots and words; with shift it selects"),
		s.faint.Render("  text as ever. A bar is full at the best fill, empty 12 nats below."))
	all := columns[0]
	most := max(len(all), len(columns[1]))
	m.helpOffset = min(m.helpOffset, max(most-rows, 0))
	from := func(lines []string) string { return strings.Join(lines[min(m.helpOffset, len(lines)):], "\n") }
	if !two {
		return stack(m.width, rows, from(all))
	}
	half := m.width / 2
	return lipgloss.JoinHorizontal(lipgloss.Top, stack(half, rows, from(all)), stack(m.width-half, rows, from(columns[1])))
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

func (m *Model) clickTemplate(x, y int) tea.Cmd {
	if m.editor.click(m.editorView(), m.width-4, x-m.editorOrigin[0], y) {
		m.writing = false
		return m.edited()
	}
	return nil
}

// mouse gives a click to what is under it.
func (m *Model) mouse(event tea.MouseMsg) tea.Cmd {
	if m.tooSmall() || m.panel != nil || m.prompt != nil {
		return nil
	}
	mouse := event.Mouse()
	switch event.(type) {
	case tea.MouseWheelMsg:
		by := map[tea.MouseButton]int{tea.MouseWheelUp: -1, tea.MouseWheelDown: 1}[mouse.Button]
		if m.help {
			m.helpOffset = max(m.helpOffset+by, 0)
		} else {
			m.move(by)
		}
	case tea.MouseClickMsg:
		if mouse.Button != tea.MouseLeft || m.help {
			return nil
		}
		m.notice = ""
		for _, z := range m.zones {
			if mouse.X >= z.x && mouse.X < z.x+z.width && mouse.Y >= z.y && mouse.Y < z.y+z.height {
				return z.click(mouse.X-z.x, mouse.Y-z.y)
			}
		}
	}
	return nil
}
