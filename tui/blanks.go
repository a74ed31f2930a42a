package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	tea "charm.land/bubbletea/v2"

	"infill/internal/phrase"
)

// blanksPage shows the words of each blank by itself, and their shares.
type blanksPage struct {
	m   *model
	row int // index of the chosen word of the chosen blank
}

var _ page = (*blanksPage)(nil)

// value is a word of a blank; NaN if its numbers are unknown.
type value struct {
	text         string
	alone, share float64
}

// values lists a blank's words by their shares, if these are known.
func (p *blanksPage) values(blank int) (list []value, shares bool) {
	s := p.m.run.shown
	if s == nil || blank >= len(s.result.Alone) {
		return nil, false
	}
	at := map[string]int{}
	find := func(text string) *value {
		_, known := at[text]
		if !known {
			at[text] = len(list)
			list = append(list, value{text, math.NaN(), math.NaN()})
		}
		return &list[at[text]]
	}
	total := 0.0
	for _, f := range s.result.Fills {
		if f.Share != nil {
			total += *f.Share
		}
	}
	// If a search lists only some of the fills, the share of a word is unknown.
	shares = total > 0 && (s.stats() != nil || total > 0.9999)
	if shares {
		for _, f := range s.result.Fills {
			v := find(f.Values[blank])
			v.share = orZero(v.share) + *f.Share
		}
	}
	for _, a := range s.result.Alone[blank] {
		find(a.Text).alone = a.Probability
	}
	slices.SortStableFunc(list, func(a, b value) int { return cmp.Compare(orZero(b.share), orZero(a.share)) })
	return list, shares
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

func (p *blanksPage) move(by int) {
	list, _ := p.values(p.m.blank)
	p.row = max(min(p.row+by, len(list)-1), 0)
}

func (p *blanksPage) leaf(by int) { p.move(by) }
func (p *blanksPage) turn(by int) { p.m.turnTo(p.m.blank + by) }

// key pins the chosen word if k is "p". Any other key acts on the selected fill.
func (p *blanksPage) key(k string) tea.Cmd {
	list, _ := p.values(p.m.blank)
	if k == "p" && p.row < len(list) {
		return p.m.pin(list[p.row].text)
	}
	return p.m.fills.key(k)
}

func (p *blanksPage) hints() []hint {
	return []hint{{"→", "blank"}, {"↓", "word"}, p.m.pinHint(), {"o", "options"}, {"i", "write"}}
}

func (p *blanksPage) render(columns, rows int) string {
	m := p.m
	s := m.run.shown
	if s == nil {
		return m.note(m.fills.empty(), columns, rows)
	}
	const narrowest = 46
	blanks := len(s.result.Alone)
	number := min(max(columns/narrowest, 1), blanks)
	from := min(max(m.blank-number/2, 0), blanks-number)
	own := (columns - 3*(number-1) - 1) / number
	var tables []string
	for blank := from; blank < from+number; blank++ {
		tables = append(tables, p.table(blank, own, rows-1, true))
	}
	told := "by itself: the model's, with all blanks masked"
	if number < blanks {
		told = fmt.Sprintf("blank %d of %d · ", m.blank+1, blanks) + told
	}
	return beside(m.line.Render(" │ "), rows-1, tables...) + "\n" + m.faint.Render(" "+cut(told, columns-2))
}

// table draws a blank's words, and marks the chosen row if choose is true.
func (p *blanksPage) table(blank, columns, rows int, choose bool) string {
	m := p.m
	list, shares := p.values(blank)
	look := m.styles.blankLook(blank)
	head := "  " + look.Render(fmt.Sprintf("blank %d", blank+1))
	chosen := -1
	offset := 0
	if blank == m.blank && choose {
		head = m.accent.Render("▸ ") + look.Underline(true).Render(fmt.Sprintf("blank %d", blank+1))
		chosen = max(min(p.row, len(list)-1), 0)
		offset = scroll(0, chosen, rows-2, len(list))
	}
	if word, ok := m.pins[blank]; ok {
		head += m.faint.Render("  pinned to ") + look.Underline(true).Render(harmless(word))
	}
	const number = 10
	shown := list[offset:min(offset+max(rows-2, 0), len(list))]
	word := 6
	most := 0.0
	numbers := number
	of := func(v value) float64 { return orZero(v.alone) }
	if shares {
		numbers = 2 * number
		of = func(v value) float64 { return orZero(v.share) }
	}
	for _, v := range shown {
		word, most = max(word, width(harmless(v.text))), max(most, of(v))
	}
	bars := 10
	word = max(min(word, columns-2-2-bars-numbers), 4)
	bars = max(columns-2-word-2-numbers, 0)
	titles := right("by itself", number)
	if shares {
		titles = right("drawn", number) + titles
		if p.m.run.shown.stats() == nil {
			titles = right("share", number) + right("by itself", number)
		}
	}
	lines := []string{head, m.faint.Render("  " + fit("word", word) + "  " + scale(most, bars) + titles)}
	if len(list) == 0 {
		lines = []string{head, "", m.faint.Render("  a blank of several tokens has no word by itself")}
	}
	for i, v := range shown {
		row := m.text
		marker := "  "
		if offset+i == chosen {
			row = m.selected
			marker = "▸ "
		}
		text := cut(harmless(v.text), word)
		plain := row.Bold(false)
		line := m.accent.Inherit(row).Render(marker) + look.Inherit(row).Render(text) +
			row.Render(spaces(word-width(text)+2)) + m.bar.Inherit(plain).Render(bar(of(v)/most, bars))
		if shares {
			line += plain.Render(right(phrase.Percent(v.share), number))
		}
		lines = append(lines, line+m.faint.Inherit(plain).Render(right(phrase.Percent(v.alone), number)))
	}
	return stack(columns, rows, lines...)
}
