package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"infill/infill"
	"infill/internal/ask"
	"infill/internal/phrase"
)

type fillsPage struct {
	m        *model
	listed   []infill.Fill
	selected int
	chosen   string // text of the selected fill; "" to stay at the top
	offset   int
	byCount  bool // whether fills are sorted by count instead of likelihood
	filter   string
}

var _ page = (*fillsPage)(nil)

// list sorts and filters the fills; the selected one stays if it is there.
func (p *fillsPage) list() {
	p.listed = nil
	for _, f := range p.m.run.shown.fills() {
		if p.matches(f) {
			p.listed = append(p.listed, f)
		}
	}
	if p.byCount {
		slices.SortStableFunc(p.listed, func(a, b infill.Fill) int { return cmp.Compare(b.Count, a.Count) })
	}
	p.selected = slices.IndexFunc(p.listed, func(f infill.Fill) bool { return f.Text == p.chosen })
	if p.selected < 0 {
		p.selected = 0
		p.chosen = ""
	}
}

// matches reports whether f has every word of the filter; "2:word" looks at the
// second blank only.
func (p *fillsPage) matches(f infill.Fill) bool {
	for _, want := range strings.Fields(strings.ToLower(p.filter)) {
		in := strings.ToLower(strings.Join(f.Values, "\n"))
		number, word, ok := strings.Cut(want, ":")
		if ok {
			blank, err := strconv.Atoi(number)
			if err == nil && blank >= 1 && blank <= len(f.Values) {
				in = strings.ToLower(f.Values[blank-1])
				want = word
			}
		}
		if !strings.Contains(in, want) {
			return false
		}
	}
	return true
}

func (p *fillsPage) current() *infill.Fill {
	if p.selected >= len(p.listed) {
		return nil
	}
	return &p.listed[p.selected]
}

func (p *fillsPage) move(by int) {
	if len(p.listed) > 0 {
		p.selected = min(max(p.selected+by, 0), len(p.listed)-1)
		p.chosen = ""
		if p.selected > 0 {
			p.chosen = p.current().Text
		}
	}
}

func (p *fillsPage) leaf(by int) { p.move(by) }
func (p *fillsPage) turn(by int) { p.m.turnTo(p.m.blank + by) }

// key handles the keys of this page, most of which act on the selected fill.
func (p *fillsPage) key(k string) tea.Cmd {
	m := p.m
	f := p.current()
	switch {
	case k == "/":
		input := newInput(p.filter, 400)
		m.filter = &input
		m.view = fillsView
	case k == "s" && !p.drawn():
		return m.idle(k, "only fills that are drawn are sorted: name a sampler or samples under o")
	case k == "s":
		p.byCount = !p.byCount
		p.list()
	case k == "esc" && p.filter != "":
		p.filter = ""
		p.list()
	case f == nil && p.filter != "" && slices.Contains([]string{"enter", "y", "p"}, k):
		return m.idle(k, p.empty())
	case f == nil && slices.Contains([]string{"enter", "y", "p"}, k):
		return m.idle(k, "there is no fill yet")
	case k == "enter":
		m.picked = f.Text
		return tea.Quit
	case k == "y":
		// In base64, the text cannot contain a control sequence.
		m.notice, m.noticeFault = "copied, if the terminal allows it (OSC 52)", false
		return tea.SetClipboard(f.Text)
	case k == "p":
		return m.pin(f.Values[m.blank])
	default:
		return m.idle(k, unknownKey)
	}
	return nil
}

func (p *fillsPage) hints() []hint {
	list := []hint{{"enter", "pick"}, {"i", "write"}, p.m.pinHint(), {"o", "options"}, {"/", "filter"}, {"y", "copy"}}
	if p.drawn() || p.m.run.stream != nil {
		list = slices.Insert(list, 4, p.m.runHint())
	}
	if p.drawn() {
		list = append(list, hint{"s", "sort"})
	}
	return list
}

// drawn reports whether fills were drawn, so that counts can sort them.
func (p *fillsPage) drawn() bool { return len(p.listed) > 0 && p.listed[0].Count > 0 }

func (p *fillsPage) empty() string {
	switch m := p.m; {
	case m.modelFault != "":
		return "press o for another model, or q"
	case p.filter != "":
		return "no fill matches; esc drops the filter"
	case m.opening || m.run.stream != nil:
		return "the fills are on their way …"
	}
	return "the fills come here"
}

// render draws the fills, and, if there is room, the chosen blank beside.
func (p *fillsPage) render(columns, rows int) string {
	m := p.m
	if m.width >= wideColumns {
		const details = 46
		return beside(m.line.Render(" │ "), rows, p.page(columns-details-4, rows),
			m.blanks.table(m.blank, details, rows, false))
	}
	return p.page(columns-1, rows)
}

func (p *fillsPage) page(columns, rows int) string {
	m := p.m
	s := m.run.shown
	var notes []string
	if s != nil && !m.run.stale {
		for i, note := range summary(s) {
			look := m.faint
			if i > 0 {
				look = m.amber
			}
			for line := range strings.SplitSeq(ansi.Wrap(harmless(note), columns-6, ""), "\n") {
				notes = append(notes, "    "+look.Render(line))
			}
		}
		room := max(rows/3, rows-len(s.result.Fills)-3) // beside the table and its head
		if len(notes) > room {
			notes = append(notes[:max(room-1, 0)], "    "+m.faint.Render("…"))
		}
	}
	return p.table(columns, rows-len(notes)) + strings.TrimSuffix("\n"+strings.Join(notes, "\n"), "\n")
}

// summary says how the result was found, and its warnings, but not how the run
// ended: this page lists all fills.
func summary(s *snapshot) []string {
	r := s.result
	line := ask.Found(r)
	if r.Stats.Chains != nil {
		line += fmt.Sprintf("; %s in %s", phrase.Counted(r.Stats.DistinctFills, "distinct fill"),
			phrase.Counted(r.Stats.Draws, "draw"))
	}
	line += "; " + phrase.Counted(r.Stats.ModelRows, "model row")
	lines := []string{line}
	if divided := ask.Divided(r); divided != "" {
		lines = []string{divided, line}
	}
	return append(lines, r.Warnings[r.Ends:]...)
}

type column struct {
	head  string
	width int
	value func(f *infill.Fill) string
}

// columns returns the number columns of the table, by the screen's width.
func (p *fillsPage) columns(columns int) []column {
	s := p.m.run.shown
	logs := column{"log-likelihood", 14, func(f *infill.Fill) string { return decimal(f.LogLikelihood) }}
	if s.stats() != nil {
		logs.head = "U"
		logs.width = 8
		drawn := column{"drawn", 21, func(f *infill.Fill) string { return cmp.Or(ask.SharePercent(f, true), "–") }}
		if columns < 96 { // no room for intervals
			drawn.width = 14
			drawn.value = func(f *infill.Fill) string { return cmp.Or(ask.SharePercent(f, f.ShareError != nil), "–") }
		}
		if columns < 76 {
			drawn.width = 8
			drawn.value = func(f *infill.Fill) string { return cmp.Or(ask.SharePercent(f, false), "–") }
		}
		if s.warmUp {
			drawn.head = "warm-up"
		}
		return []column{logs, drawn}
	}
	list := []column{{"probability", 11, func(f *infill.Fill) string { return phrase.Percent(weight(f)) }}}
	if columns >= 96 {
		list = slices.Insert(list, 0, logs)
	}
	switch {
	case p.drawn():
		list = append(list, column{"drawn", 5, func(f *infill.Fill) string { return strconv.Itoa(f.Count) }})
	case len(p.listed) > 0 && p.listed[0].Share != nil:
		share := func(f *infill.Fill) string { return cmp.Or(ask.SharePercent(f, false), "–") }
		list = append(list, column{"share", 8, share})
	}
	return list
}

// weight is what a fill's bar shows: its probability, or its share of draws.
func weight(f *infill.Fill) float64 {
	switch {
	case f.Probability != nil:
		return *f.Probability
	case f.Share != nil:
		return *f.Share
	}
	return 0
}

func (p *fillsPage) table(columns, rows int) string {
	m := p.m
	s := m.run.shown
	numbers := p.columns(columns)
	bars := 10
	used := 4
	if columns >= 100 {
		bars = 20
	}
	most := 0.0
	all := s.fills()
	for i := range all {
		most = max(most, weight(&all[i]))
	}
	head := "  " + scale(most, bars)
	used += 2 + bars
	for _, c := range numbers {
		head += "  " + right(c.head, c.width)
		used += 2 + c.width
	}
	text := columns - used
	lines := []string{m.faint.Render("    " + fit("fill", text) + head)}
	if len(p.listed) == 0 {
		lines = []string{"", "    " + m.faint.Render(cut(p.empty(), columns-4))}
	}
	p.offset = scroll(p.offset, p.selected, rows-1, len(p.listed))
	end := min(len(p.listed), p.offset+max(rows-1, 0))
	// If the text of one row does not fit, all rows show only the words of their blanks.
	whole := !slices.ContainsFunc(p.listed[min(p.offset, end):end],
		func(f infill.Fill) bool { return width(harmless(f.Text)) > text })
	for i := p.offset; i < end; i++ {
		f := &p.listed[i]
		look := m.text
		marker := "    "
		if i == p.selected && !m.writing {
			look = m.selected
			marker = "▸   "
		}
		list := filled(f)
		if !whole {
			list = words(f.Values)
		}
		shown := cut(m.marked(list, look, m.pins), text)
		plain := look.Bold(false)
		line := m.accent.Inherit(look).Render(marker) + shown + look.Render(spaces(text-width(shown)+2)) +
			m.bar.Inherit(plain).Render(bar(weight(f)/most, bars))
		for _, c := range numbers {
			line += plain.Render("  " + right(c.value(f), c.width))
		}
		lines = append(lines, line)
	}
	return stack(columns, rows, lines...)
}

func words(values []string) (list []part) {
	for blank, text := range values {
		if blank > 0 {
			list = append(list, part{" … ", -1})
		}
		list = append(list, part{harmless(text), blank})
	}
	return list
}
