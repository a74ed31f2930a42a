package infill

import (
	"infill/tokenize"
)

// wordPieces is how many pieces the word of an only blank has at most.
const wordPieces = 3

// piecesPrior weighs words of so many pieces against those of one: the probabilities of each
// number of pieces sum to one by themselves and say nothing of the number. Fitted to
// held-out words by lab pieces, see docs/probabilities.md.
var piecesPrior = [wordPieces + 1]float64{1: 1, 2: 0.50, 3: 0.20}

// oneWord tells whether the only blank of a template may hold a word of several pieces: it
// stands by itself, and nothing is said of what it takes but what all of its words can be asked.
func (r *rules) oneWord(t *tokenize.Template, o *Options) bool {
	b := t.Blanks[0]
	return len(t.Blanks) == 1 && o.searches() && o.Fill == FillWords && o.Pins == nil && o.Together == nil && r.MinPieces == 0 && r.MaxPieces == 0 &&
		b.High == 0 && b.Pattern == "" && !b.TouchesLeft && !b.TouchesRight && r.lists[0] == nil
}

// longWord is the plan whose only blank holds a word of n pieces.
func (r *rules) longWord(p *plan, n int) (*plan, error) {
	templates, err := p.typed.Expand([][2]int{{n, n}})
	if err != nil {
		return nil, err
	}
	t := templates[0]
	t.KeepCase, t.KeepEscapes = p.template.KeepCase, p.template.KeepEscapes
	b := t.Blanks[0]
	longer := &plan{typed: p.typed, template: t, cut: func(tokens []int) bool { return r.allows(b, tokens) && r.filler.cutSo(b, tokens) }}
	for slot := range n {
		support := r.filler.going()
		if slot == 0 {
			support = r.openings(b)
		}
		longer.variables = append(longer.variables, variable{slots: []int{slot}, support: support})
	}
	return longer, nil
}
