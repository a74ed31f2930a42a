package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"infill/infill"
)

// conditionals are the model's own log-probabilities of each slot, the others as
// in one fill, [slots][vocabulary], nats.
type conditionals struct {
	template string
	fill     string // the key of the fill
	rows     [][]float32
}

// are reports whether they are those of a fill of the run: two templates can have
// the same fill, in different slots.
func (c conditionals) are(s *snapshot, f *fill) bool {
	return c.rows != nil && f != nil && !f.Kept && c.fill == f.key() && c.template == s.Template.Text &&
		len(c.rows) == len(s.Template.Slots) && len(f.TokenIDs) == len(s.Template.Slots)
}

// probability is the model's of a blank's value in the fill; known is false where
// it was not asked yet, or the blank has several pieces, whose joint probability
// one conditional does not tell.
func (c conditionals) probability(s *snapshot, blank int, f *fill) (_ float64, known bool) {
	b := s.Template.Blanks[blank]
	if !c.are(s, f) || b.Slots != 1 {
		return 0, false
	}
	return c.of(b.First, f.TokenIDs[b.First]), true
}

func (c conditionals) of(slot, token int) float64 { return math.Exp(float64(c.rows[slot][token])) }

// ratedValue is one value of a blank: as sampled, and as the model sees it.
type ratedValue struct {
	infill.Marginal
	model float64 // NaN if unknown
}

// slotsPage shows what each blank was filled with.
type slotsPage struct {
	m       *model
	row     int // of the chosen blank
	byModel bool
}

var _ page = (*slotsPage)(nil)

// rows joins the sampled values of a blank with those that the model finds most
// probable, the most frequent first, or the model's favourite.
func (p *slotsPage) rows(blank int) []ratedValue {
	s, given, f := p.m.run.snapshot, p.m.given, p.m.fills.current()
	if s == nil || blank >= len(s.Values) {
		return nil
	}
	b := s.Template.Blanks[blank]
	known := given.are(s, f) && b.Slots == 1
	rows := make([]ratedValue, 0, len(s.Values[blank]))
	sampled := map[int]bool{}
	for _, v := range s.Values[blank] {
		row := ratedValue{v, math.NaN()}
		if known && len(v.TokenIDs) == 1 {
			row.model = given.of(b.First, v.TokenIDs[0])
			sampled[v.TokenIDs[0]] = true
		}
		rows = append(rows, row)
	}
	if !known {
		return rows
	}
	const unsampled = 40 // of the model's best, if no chain drew them
	for _, token := range best(given.rows[b.First], unsampled) {
		if !sampled[token] {
			ids := slices.Clone(f.TokenIDs)
			ids[b.First] = token
			rows = append(rows,
				ratedValue{infill.Marginal{TokenIDs: []int{token}, Text: s.Template.Fill(ids).Fills[blank],
					StandardError: math.NaN()}, given.of(b.First, token)})
		}
	}
	if p.byModel {
		slices.SortStableFunc(rows, func(a, b ratedValue) int { return cmp.Compare(b.model, a.model) })
	}
	return rows
}

// best returns the tokens of highest log-probability, the best first.
func best(logp []float32, number int) []int {
	var tokens []int
	for token, p := range logp {
		if len(tokens) == number && p <= logp[tokens[number-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(tokens, p, func(t int, p float32) int { return cmp.Compare(p, logp[t]) })
		tokens = slices.Insert(tokens, at, token)
		tokens = tokens[:min(len(tokens), number)]
	}
	return tokens
}

func (p *slotsPage) move(by int) { p.row = max(min(p.row+by, len(p.rows(p.m.blank))-1), 0) }
func (p *slotsPage) turn(by int) { p.m.turnBlank(by) }

// key sorts and pins the values; the rest is done to the selected fill.
func (p *slotsPage) key(k tea.KeyPressMsg) tea.Cmd {
	m := p.m
	switch f := m.fills.current(); {
	case key.Matches(k, m.keys.Sort):
		p.byModel = !p.byModel
	case f != nil && key.Matches(k, m.keys.Pin):
		if rows := p.rows(m.blank); p.row < len(rows) {
			return m.fills.pin(f, &rows[p.row].Marginal)
		}
		return m.fills.pin(f, nil)
	default:
		return m.fills.key(k)
	}
	return nil
}

func (p *slotsPage) hints(k keyMap) []key.Binding {
	return []key.Binding{as(k.Right, "slot"), p.m.pinHint(), k.Sort, as(k.Write, "write"), as(k.Settings, "options"),
		p.m.runHint()}
}

func (p *slotsPage) limits() []string {
	if p.byModel {
		return []string{p.m.faint.Render("by the model")}
	}
	return nil
}

func (p *slotsPage) render(columns, rows int) string {
	m, s := p.m, p.m.run.snapshot
	switch {
	case s != nil && s.Several:
		return m.note("slots are shown where every blank has one length, as in [MASK:2]", columns, rows)
	case s == nil || len(s.Values) == 0:
		return m.note(m.fills.empty(), columns, rows)
	}
	const narrowest = 46
	number := min(max(columns/narrowest, 1), len(s.Values))
	from := min(max(m.blank-number/2, 0), len(s.Values)-number)
	columnWidth := (columns - 3*(number-1) - 1) / number
	note := 0
	if rows >= 8 {
		note = 1
	}
	var tables []string
	for blank := from; blank < from+number; blank++ {
		tables = append(tables, p.table(blank, (blank-from)*(columnWidth+3), columnWidth, rows-note))
	}
	text := beside(m.line.Render(" │ "), rows-note, tables...)
	if note == 0 {
		return text
	}
	told := "━ " + s.shares("sampled") + "  ─ its standard error  ◆ the model's own, the "
	if f := m.fills.current(); f != nil {
		told += "rest as in: " + harmless(strings.Join(f.Values, " … "))
	} else {
		told += "other slots as in the best fill"
	}
	if number < len(s.Values) {
		which := fmt.Sprintf("slots %d to %d", from+1, from+number)
		if number == 1 {
			which = fmt.Sprintf("slot %d", from+1)
		}
		told = fmt.Sprintf("%s of %d · %s", which, len(s.Values), told)
	}
	return text + "\n" + m.faint.Render(" "+cut(told, columns-2))
}

// table shows what one blank was filled with, beginning at column x.
func (p *slotsPage) table(blank, x, columns, rows int) string {
	m, values := p.m, p.rows(blank)
	look := m.styles.blankLook(blank)
	head, chosen, offset := "  "+look.Render(fmt.Sprintf("slot %d", blank+1)), -1, 0
	if blank == m.blank {
		head = m.accent.Render("▸ ") + look.Underline(true).Render(fmt.Sprintf("slot %d", blank+1))
		chosen = max(min(p.row, len(values)-1), 0)
		offset = scroll(0, chosen, rows-2, len(values))
	}
	if held, ok := m.pins[blank]; ok {
		head += m.faint.Render("  pinned to ") + look.Underline(true).Render(harmless(held.text))
	}
	m.zone(x, m.top, columns, rows, func(_, y int) tea.Cmd {
		m.blank = blank
		p.row = min(max(offset+y-2, 0), max(len(values)-1, 0))
		return nil
	})
	const numbers, model = 11, 9
	wordWidth, scale := 6, 0.0
	shown := values[offset:min(offset+rows-2, len(values))]
	for _, v := range shown {
		wordWidth = max(wordWidth, width(v.Text))
		scale = max(scale, orZero(v.Probability)+orZero(v.StandardError), orZero(v.model))
	}
	wordWidth = min(wordWidth, max(columns/3, 8))
	barWidth := columns - 2 - wordWidth - 1 - 1 - numbers - model
	if barWidth < 3 {
		barWidth = 0
	}
	lines := []string{head,
		m.faint.Render("  " +
			fit("word", columns-2-numbers-model) + right(m.run.snapshot.shares("sampled %"),
			numbers) + right("model %", model))}
	if len(values) == 0 {
		lines = append(lines, "", m.faint.Render("  nothing was drawn yet"))
	}
	for i, v := range shown {
		row, marker := m.text, "  "
		if offset+i == chosen {
			row, marker = m.selected, "▸ "
		}
		sampled, probability := "–", "–"
		if v.Probability > 0 {
			sampled = fmt.Sprintf("%.1f", 100*v.Probability)
			if !math.IsNaN(v.StandardError) {
				sampled = fmt.Sprintf("%.1f ±%4.1f", 100*v.Probability, 100*v.StandardError)
			}
			if v.AtMost != nil && *v.AtMost-v.Probability >= 0.0005 { // not all was searched
				sampled = "≥ " + sampled
			}
		}
		switch {
		case m.run.snapshot.Template.Blanks[blank].Slots > 1:
		case !math.IsNaN(v.model):
			probability = fmt.Sprintf("%.1f", 100*v.model)
		case m.asked != "":
			probability = "…"
		}
		text := cut(harmless(v.Text), wordWidth)
		lines = append(lines,
			m.accent.Inherit(row).Render(marker)+look.Inherit(row).Render(text)+row.Render(
				spaces(wordWidth-width(text)+1))+
				m.bullet(v, scale, barWidth,
					row)+row.Bold(false).Render(" "+
				right(sampled, numbers))+m.faint.Inherit(row).Bold(false).Render(right(probability, model)))
	}
	return stack(columns, rows, lines...)
}

// bullet draws the sampled share as a bar, its standard error as a line after it,
// and the model's probability as a mark.
func (s *styles) bullet(v ratedValue, scale float64, columns int, row lipgloss.Style) string {
	if columns == 0 {
		return ""
	}
	if !(scale > 0) {
		return row.Render(spaces(columns))
	}
	cells := []rune(bar(orZero(v.Probability)/scale, columns))
	looks := make([]*lipgloss.Style, columns)
	for i, r := range cells {
		looks[i] = &s.bar
		if r == ' ' {
			looks[i] = &s.text
		}
	}
	if !math.IsNaN(v.StandardError) {
		for i := range cells[:min(int((v.Probability+v.StandardError)/scale*float64(columns)+0.5), columns)] {
			if cells[i] == ' ' {
				cells[i], looks[i] = '─', &s.faint
			}
		}
	}
	// Less than half a cell is no place to point at; the number beside tells it.
	if v.model/scale*float64(columns) >= 0.5 {
		at := min(int(v.model/scale*float64(columns)), columns-1)
		cells[at], looks[at] = '◆', &s.strong
	}
	text := ""
	for i := 0; i < columns; {
		end := i + 1
		for end < columns && looks[end] == looks[i] {
			end++
		}
		text += looks[i].Inherit(row).Render(string(cells[i:end]))
		i = end
	}
	return text
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}
