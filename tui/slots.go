package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// conditionals are the model's own log-probabilities of each slot, the others as
// in one fill, [slots][vocabulary], nats.
type conditionals struct {
	template string
	fill     string // the key of the fill
	rows     [][]float32
}

// are tells whether they are those of a fill of the run: two templates can have
// the same fill, in different slots.
func (c conditionals) are(p *Snapshot, f *Fill) bool {
	return c.rows != nil && f != nil && !f.Kept && c.fill == f.key() && c.template == p.Template.Text &&
		len(c.rows) == len(p.Template.Slots) && len(f.TokenIDs) == len(p.Template.Slots)
}

// probability is the model's of a blank's value in the fill; known is false where
// it was not asked yet, or the blank has several pieces, whose joint probability
// one conditional does not tell.
func (c conditionals) probability(p *Snapshot, blank int, f *Fill) (_ float64, known bool) {
	b := p.Template.Blanks[blank]
	if !c.are(p, f) || b.Slots != 1 {
		return 0, false
	}
	return c.of(b.First, f.TokenIDs[b.First])
}

func (c conditionals) of(slot, token int) (float64, bool) {
	if slot >= len(c.rows) || token < 0 || token >= len(c.rows[slot]) {
		return 0, false
	}
	return math.Exp(float64(c.rows[slot][token])), true
}

// slotRow is one value of a blank: as sampled, and as the model sees it.
type slotRow struct {
	Value
	model float64 // NaN where unknown
}

// slotRows joins the sampled values of a blank with those that the model finds
// most probable, the most frequent first, or the model's favourite.
func slotRows(p *Snapshot, blank int, given conditionals, f *Fill, byModel bool) []slotRow {
	if p == nil || blank >= len(p.Values) {
		return nil
	}
	b := p.Template.Blanks[blank]
	known := given.are(p, f) && b.Slots == 1
	rows := make([]slotRow, 0, len(p.Values[blank]))
	sampled := map[int]bool{}
	for _, v := range p.Values[blank] {
		row := slotRow{v, math.NaN()}
		if known {
			row.model, _ = given.of(b.First, v.TokenIDs[0])
			sampled[v.TokenIDs[0]] = true
		}
		rows = append(rows, row)
	}
	if known {
		const unsampled = 40 // of the model's best, if no chain drew them
		for _, token := range best(given.rows[b.First], unsampled) {
			if sampled[token] {
				continue
			}
			ids := slices.Clone(f.TokenIDs)
			ids[b.First] = token
			probability, _ := given.of(b.First, token)
			rows = append(rows, slotRow{Value{[]int{token}, p.Template.Fill(ids).Fills[blank], 0, math.NaN()}, probability})
		}
		if byModel {
			slices.SortStableFunc(rows, func(a, b slotRow) int { return cmp.Compare(b.model, a.model) })
		}
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

// slotTable shows what one blank was filled with.
type slotTable struct {
	styles  *styles
	blank   int
	values  []slotRow
	rows    int // with the two head lines
	offset  int
	chosen  int // row, -1 where another slot is chosen
	pin     *pin
	pieces  int
	waiting bool // for the model's conditionals
}

// Render draws the table.
func (t *slotTable) Render(columns int) string {
	s := t.styles
	look := s.slot(t.blank)
	head := look.Render(fmt.Sprintf("slot %d", t.blank+1))
	if t.chosen >= 0 {
		head = s.marker.Render("▸ ") + look.Underline(true).Render(fmt.Sprintf("slot %d", t.blank+1))
	} else {
		head = "  " + head
	}
	if t.pin != nil {
		head += s.faint.Render("  pinned to ") + s.slot(t.blank).Underline(true).Render(harmless(t.pin.text))
	}
	const numbers, model = 11, 9
	wordWidth := 6
	scale := 0.0
	end := min(t.offset+t.rows-2, len(t.values))
	for _, v := range t.values[min(t.offset, end):end] {
		wordWidth = max(wordWidth, width(v.Text))
		scale = max(scale, orZero(v.Frequency)+orZero(v.Error), orZero(v.model))
	}
	wordWidth = min(wordWidth, max(columns/3, 8))
	barWidth := columns - 2 - wordWidth - 1 - 1 - numbers - model
	if barWidth < 3 {
		barWidth = 0
	}
	lines := []string{head, s.title.Render("  " + fit("word", columns-2-numbers-model) + right("sampled %", numbers) + right("model %", model))}
	if len(t.values) == 0 {
		lines = append(lines, "", s.faint.Render("  nothing was drawn yet"))
	}
	for i := t.offset; i < end; i++ {
		v := t.values[i]
		row, marker := s.text, "  "
		if i == t.chosen {
			row, marker = s.selected, "▸ "
		}
		sampled := "–"
		if v.Frequency > 0 {
			sampled = fmt.Sprintf("%.1f", 100*v.Frequency)
			if !math.IsNaN(v.Error) {
				sampled = fmt.Sprintf("%.1f ±%4.1f", 100*v.Frequency, 100*v.Error)
			}
		}
		modelText := "–"
		switch {
		case t.pieces > 1:
		case !math.IsNaN(v.model):
			modelText = fmt.Sprintf("%.1f", 100*v.model)
		case t.waiting:
			modelText = "…"
		}
		text := ansi.Truncate(harmless(v.Text), wordWidth, "…")
		lines = append(lines, s.marker.Inherit(row).Render(marker)+look.Inherit(row).Render(text)+row.Render(strings.Repeat(" ", wordWidth-width(text)+1))+
			t.bullet(v, scale, barWidth, row)+row.Bold(false).Render(" "+right(sampled, numbers))+s.faint.Inherit(row).Bold(false).Render(right(modelText, model)))
	}
	return stack(columns, t.rows, strings.Join(lines, "\n"))
}

// bullet draws the sampled share as a bar, its standard error as a line after it,
// and the model's probability as a mark.
func (t *slotTable) bullet(v slotRow, scale float64, columns int, row lipgloss.Style) string {
	if columns == 0 {
		return ""
	}
	s := t.styles
	if !(scale > 0) {
		return row.Render(strings.Repeat(" ", columns))
	}
	cells := []rune(bar(orZero(v.Frequency)/scale, columns))
	looks := make([]*lipgloss.Style, columns)
	for i, r := range cells {
		looks[i] = &s.bar
		if r == ' ' {
			looks[i] = &s.text
		}
	}
	if !math.IsNaN(v.Error) {
		for i := range cells[:min(int((v.Frequency+v.Error)/scale*float64(columns)+0.5), columns)] {
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

// slotColumns is how many slots are shown side by side, and from which on.
func slotColumns(blanks, chosen, columns int) (from, number int) {
	const narrowest = 46
	number = min(max(columns/narrowest, 1), blanks)
	return min(max(chosen-number/2, 0), blanks-number), number
}
