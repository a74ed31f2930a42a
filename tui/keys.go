package tui

import (
	_ "embed"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"infill/internal/ask"
)

// hint is a key, and what the key does now.
type hint [2]string

// helpText explains every key.
//
//go:embed help.txt
var helpText string

// help is the open help; offset is how many of its lines are scrolled away.
type help struct{ offset int }

// key handles a key while the help is open. It returns false if the key closes the help.
func (h *help) key(k string) bool {
	switch k {
	case "up", "k":
		h.offset = max(h.offset-1, 0)
	case "down", "j", "pgdown":
		h.offset++
	default:
		return false
	}
	return true
}

func (h *help) render(s *styles, columns, rows int) string {
	lines := strings.Split(strings.TrimSpace(helpText), "\n")
	for i, line := range lines {
		at := strings.Index(line, "  ")
		if at > 0 {
			line = s.accent.Render(line[:at]) + line[at:]
		} else {
			line = s.strong.Render(line)
		}
		lines[i] = "  " + line
	}
	h.offset = min(h.offset, max(len(lines)-rows, 0))
	return stack(columns, rows, lines[h.offset:]...)
}

// hints writes as many hints as fit on one line.
func (s *styles) hints(columns int, list ...hint) string {
	text := ""
	used := 0
	for i, h := range list {
		w := width(h[0]) + 1 + width(h[1])
		if i > 0 {
			w += 3
		}
		if used+w > columns {
			break
		}
		if i > 0 {
			text += s.faint.Render(" · ")
		}
		text += s.accent.Render(h[0]) + s.faint.Render(" "+h[1])
		used += w
	}
	return text + spaces(columns-used)
}

const unknownKey = "this key does nothing here; ? lists the keys"

// browseKey handles the keys of all pages, and passes others to the page.
func (m *model) browseKey(k string) tea.Cmd {
	page := m.pages[m.view]
	leaf := max(m.height-9, 1)
	switch k {
	case "q":
		return tea.Quit
	case "?":
		m.help = &help{}
	case "1", "2", "3", "4":
		m.view = view(k[0] - '1')
	case "tab":
		m.view = (m.view + 1) % views
	case "shift+tab":
		m.view = (m.view + views - 1) % views
	case "i", "e":
		m.writing = true
	case "up", "k":
		page.move(-1)
	case "down", "j":
		page.move(1)
	case "pgup", "ctrl+u":
		page.leaf(-leaf)
	case "pgdown", "ctrl+d":
		page.leaf(leaf)
	case "home", "g":
		page.move(-1 << 30)
	case "end", "G":
		page.move(1 << 30)
	case "left", "h":
		page.turn(-1)
	case "right", "l":
		page.turn(1)
	case "o":
		m.panel = newPanel(m.styles, m.run.given, m.config.Model, m.config.Models)
	case "r":
		if !m.run.seeded() {
			m.fail("a search has no seed: name a sampler or a number of samples under o")
			return nil
		}
		m.run.request.Seed++
		m.run.given = append(m.run.given, ask.MustGive("seed", fmt.Sprint(m.run.request.Seed)))
		return m.start()
	case "x":
		r := &m.run
		if r.stream == nil {
			return m.idle(k, "nothing runs")
		}
		r.stream.cancel(nil)
		r.stopped = true
	case "P":
		if len(m.pins) == 0 {
			return m.idle(k, "no blank is pinned")
		}
		m.pins = map[int]string{}
		return m.start()
	default:
		return page.key(k)
	}
	return nil
}

func (m *model) writeKey(k tea.KeyPressMsg) tea.Cmd {
	switch name := k.String(); {
	case name == "ctrl+b" || name == "_" && !m.editor.insideBlank():
		if m.editor.insertBlank(name == "_") {
			return m.edited()
		}
	case name == "ctrl+t":
		if m.editor.blankWord(m.spelling()) {
			return m.edited()
		}
	case name == "tab" || name == "enter" || name == "esc" || name == "down":
		m.writing = false
	case m.editor.edit(k, m.spelling()):
		return m.edited()
	}
	return nil
}

func (m *model) filterKey(k tea.KeyPressMsg) {
	switch k.String() {
	case "esc":
		m.filter = nil
		m.fills.filter = ""
		m.fills.list()
	case "enter":
		m.filter = nil
	default:
		m.filterEdit(k)
	}
}

func (m *model) filterEdit(message tea.Msg) {
	*m.filter, _ = m.filter.Update(message)
	m.fills.filter = m.filter.Value()
	m.fills.chosen = ""
	m.fills.list()
}
