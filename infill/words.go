package infill

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"

	"infill/tokenize"
)

// By default the only blank of a template holds one word, whatever number of pieces the
// vocabulary cuts it into. What is known of the words of one piece takes one model row; words
// of more are looked for only where they may come among the fills that are listed.
const (
	wordPieces = 3 // of a word at most
	wordBeam   = 8 // ends of words that are followed at each piece
	// boundBeam is their number where characters are bounded, which most may miss.
	boundBeam = 32
)

// piecesPrior is how likely words of so many pieces are before the text around them is seen,
// against those of one: an exp U that sums to one over the fills of each length says nothing
// of it. Fitted to held-out words by lab pieces, see docs/probabilities.md.
var piecesPrior = [wordPieces + 1]float64{1: 1, 2: 0.50, 3: 0.20}

// A longWord is a word of several pieces.
type longWord struct {
	template *tokenize.Template // with that many slots
	tokens   []int
	energy   float64 // U, nats
	weighted float64 // log of exp(U) times the prior of its pieces, which words are compared by
}

// oneWord tells whether the only blank of a template may hold a word of several pieces: it
// stands by itself, and nothing is said of what it takes but what all of its words can be asked.
func (r *rules) oneWord(t *tokenize.Template, o *Options) bool {
	b := t.Blanks[0]
	return len(t.Blanks) == 1 && o.answers() && o.Joint == JointChain && o.Fill == FillWords && o.Pins == nil && r.MinPieces == 0 && r.MaxPieces == 0 &&
		b.High == 0 && b.Pattern == "" && !b.TouchesLeft && !b.TouchesRight && r.lists[0] == nil
}

// wordSearch looks for likely words of one number of pieces.
type wordSearch struct {
	run      *run
	rules    *rules
	template *tokenize.Template
	openers  []int
	prior    float64 // log
	// rows are the log-probabilities of the masked slots by the pieces that are in the
	// others, each its token + 1, [slots][vocabulary].
	rows map[spelled][][]float32
}

// spelled are pieces of a word, each its token + 1, 0 for a mask.
type spelled [wordPieces]int

func (s *wordSearch) row(ctx context.Context, pieces spelled) ([][]float32, error) {
	if row, ok := s.rows[pieces]; ok {
		return row, nil
	}
	ids := slices.Clone(s.template.IDs)
	var masked []int
	for i, slot := range s.template.Slots {
		if pieces[i] == 0 {
			masked = append(masked, slot)
		} else {
			ids[slot] = pieces[i] - 1
		}
	}
	logp, err := s.run.model.MaskedLogProbabilities(ctx, ids, masked)
	if err != nil {
		return nil, err
	}
	s.run.rows++
	row := make([][]float32, len(s.template.Slots))
	for i := range row {
		if pieces[i] == 0 {
			row[i], logp = logp[0], logp[1:]
		}
	}
	s.rows[pieces] = row
	return row, nil
}

// chain is the log-probability of a word by the chain rule over its pieces, in their order or
// against it.
func (s *wordSearch) chain(ctx context.Context, word spelled, back bool) (sum float64, err error) {
	n := len(s.template.Slots)
	var pieces spelled
	for i := range n {
		if back {
			i = n - 1 - i
		}
		row, err := s.row(ctx, pieces)
		if err != nil {
			return 0, err
		}
		sum += float64(row[i][word[i]-1])
		pieces[i] = word[i]
	}
	return sum, nil
}

// likeliest follows the best ends of words towards their beginnings: a piece that goes on with
// a word is seldom expected but at the end of a word, while what begins one may be a word itself. Those below
// least, nats with the prior, are given up; ends tells whether a last piece is not.
func (s *wordSearch) likeliest(ctx context.Context, least float64) (words []spelled, ends bool, err error) {
	type ending struct {
		pieces spelled
		energy float64
	}
	width := wordBeam
	if s.rules.length != nil {
		width = boundBeam
	}
	beam := []ending{{energy: s.prior}}
	for i := len(s.template.Slots) - 1; i >= 0; i-- {
		tokens := s.run.filler.going()
		if i == 0 {
			tokens = s.openers
		}
		var next []ending
		for _, b := range beam {
			row, err := s.row(ctx, b.pieces)
			if err != nil {
				return nil, false, err
			}
			for _, token := range Candidates(tokens, row[i], width) {
				more := ending{b.pieces, b.energy + float64(row[i][token])}
				more.pieces[i] = token + 1
				if more.energy >= least && (i > 0 || s.allows(more.pieces)) {
					next = append(next, more)
				}
			}
		}
		slices.SortStableFunc(next, func(a, b ending) int { return cmp.Compare(b.energy, a.energy) })
		beam = next[:min(len(next), width)]
		ends = ends || len(beam) > 0
	}
	for _, b := range beam {
		words = append(words, b.pieces)
	}
	return words, ends, nil
}

// tokens are those of a word.
func (s *wordSearch) tokens(word spelled) []int {
	ids := make([]int, len(s.template.Slots))
	for i := range ids {
		ids[i] = word[i] - 1
	}
	return ids
}

// allows tells whether the constraints allow a word, and the tokenizer would cut it so.
func (s *wordSearch) allows(word spelled) bool {
	ids, blank := s.tokens(word), s.template.Blanks[0]
	return s.rules.allows(blank, ids) && s.run.filler.cutSo(blank, ids)
}

// lengthen looks for words of several pieces that are likelier than the last fill that will be
// listed, and makes an answer for words of one piece one for all of them.
func (r *run) lengthen(ctx context.Context, a *answer) error {
	o := &r.options
	a.note = "while words of several pieces were looked for"
	r.sofar = func() *answer { return a }
	// Of equal weight a word would be listed after those of one piece.
	least := math.Inf(-1)
	if len(a.energy) >= o.Top {
		least = a.energy[o.Top-1]
	}
	for n := 2; n <= wordPieces && len(r.template.IDs)+n-1 <= r.filler.maxPositions; n++ {
		if b := o.Budget; b.Seconds > 0 && time.Since(r.began).Seconds() >= b.Seconds || b.Seconds == 0 && r.rows >= int64(b.Rows) {
			break
		}
		templates, err := r.typed.Expand([][2]int{{n, n}})
		if err != nil {
			return err
		}
		t := templates[0]
		t.KeepCase, t.KeepEscapes = r.template.KeepCase, r.template.KeepEscapes
		s := wordSearch{run: r, rules: r.rules, template: t, openers: r.rules.openings(t.Blanks[0]), prior: math.Log(piecesPrior[n]), rows: map[spelled][][]float32{}}
		words, ends, err := s.likeliest(ctx, least-math.Ln2) // exp U is the mean of two directions
		if err != nil {
			return err
		}
		if !ends {
			break // a text that asks for no second piece asks for no third
		}
		for _, w := range words {
			u, err := s.energy(ctx, w)
			if err != nil {
				return err
			}
			a.longer = append(a.longer, longWord{t, s.tokens(w), u, u + s.prior})
		}
	}
	a.lengthened(r.temperature())
	return nil
}

// lengthened weighs the words of several pieces together with those of one.
func (a *answer) lengthened(temperature float64) {
	if len(a.longer) == 0 {
		return
	}
	slices.SortStableFunc(a.longer, func(x, y longWord) int { return cmp.Compare(y.weighted, x.weighted) })
	logs, energies := []float64{a.logZ}, []float64{a.mean}
	for _, w := range a.longer {
		logs, energies = append(logs, w.weighted/temperature), append(energies, w.energy)
	}
	before := a.logZ
	a.logZ = floats.LogSumExp(logs)
	a.mean = 0
	for i, l := range logs {
		a.mean += math.Exp(l-a.logZ) * energies[i]
	}
	a.distinct += len(a.longer)
	values := a.marginals[0]
	for i := range values {
		values[i].Probability *= math.Exp(before - a.logZ)
	}
	for _, w := range a.longer {
		values = append(values, Marginal{Text: w.template.Fill(w.tokens).Fills[0], TokenIDs: w.tokens, Probability: math.Exp(w.weighted/temperature - a.logZ)})
	}
	slices.SortStableFunc(values, func(x, y Marginal) int { return cmp.Compare(y.Probability, x.Probability) })
	a.marginals[0] = values[:min(len(values), mostMarginals)]
}

// listing are the fills that an answer knows, the likeliest first, at being their numbers among
// its states, -1 for words of several pieces.
func (r *run) listing(a *answer) (fills []longWord, at []int) {
	longer := a.longer
	for i, state := range a.states {
		for len(longer) > 0 && longer[0].weighted > a.energy[i] {
			fills, at, longer = append(fills, longer[0]), append(at, -1), longer[1:]
		}
		fills, at = append(fills, longWord{template: r.template, tokens: r.tokens(state), energy: a.energy[i]}), append(at, i)
	}
	for _, w := range longer {
		fills, at = append(fills, w), append(at, -1)
	}
	return fills, at
}

// energy is U of a word: that of Options.Order over its pieces.
func (s *wordSearch) energy(ctx context.Context, word spelled) (float64, error) {
	order := s.run.options.Order
	forth, back := math.Inf(-1), math.Inf(-1)
	var err error
	if order != OrderRightToLeft {
		if forth, err = s.chain(ctx, word, false); err != nil {
			return 0, err
		}
	}
	if order == OrderRightToLeft || order == OrderBoth {
		if back, err = s.chain(ctx, word, true); err != nil {
			return 0, err
		}
	}
	if order == OrderBoth {
		return floats.LogSumExp([]float64{forth, back}) - math.Ln2, nil
	}
	return max(forth, back), nil
}
