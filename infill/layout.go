package infill

import (
	"fmt"
	"math"
	"slices"

	"infill/tokenize"
)

// layout is a template of known lengths with what its slots may take: all that is
// known before the model runs.
type layout struct {
	typed     *tokenize.Template // as the user wrote it, each blank at its shortest
	template  *tokenize.Template
	variables []variable
	// allowed judges the tokens of all slots where the variables' supports cannot
	// say it all; nil: everything is allowed.
	allowed func(tokens []int) bool
	// cut judges words that are spelled piece by piece: whether the tokenizer would cut
	// them so; nil: there are none.
	cut func(tokens []int) bool
	// others are those of the further texts, their variables in the order of these.
	others []*layout
	// words are the blanks that hold one word of several pieces, and may be asked whether it exists.
	words []tokenize.Blank
	// known reports that all of these words are of a lexicon.
	known bool
	// counted are the pieces of the blanks that hold one word, where these may have another number, and lengths
	// those of the others.
	counted, lengths []int
	// rules are not nil if the only blank may take a word of several pieces, too.
	rules   *rules
	context []int // tokens before the text
	// place is the number of this layout among those of the template's lengths.
	place, places int
}

// pieces are the numbers of pieces of the blanks.
func (p *layout) pieces() []int {
	pieces := make([]int, len(p.template.Blanks))
	for i, b := range p.template.Blanks {
		pieces[i] = b.Slots
	}
	return pieces
}

// together gives the reason why slots do not move one by one, or "".
func (p *layout) together() string {
	for _, v := range p.variables {
		switch {
		case v.words != nil || v.find != nil:
			return "words of several pieces"
		case len(v.slots) > 1:
			return "blanks of one name"
		}
	}
	if p.allowed != nil {
		return "limits on several slots together"
	}
	for _, other := range p.others {
		if why := other.together(); why != "" {
			return why
		}
	}
	return ""
}

// keys name the variables: by the blank's name, or its number among those without one, and
// by the piece and the number of pieces.
func (p *layout) keys() []string {
	keys := make([]string, len(p.variables))
	for n, v := range p.variables {
		unnamed := 0
		for _, b := range p.template.Blanks {
			if b.Name == "" {
				unnamed++
			}
			if first := v.slots[0]; first >= b.First && first < b.First+b.Slots {
				key := b.Name
				if key == "" {
					key = fmt.Sprint(unnamed)
				}
				if b.Slots > 1 {
					key += fmt.Sprintf(" piece %d of %d", first-b.First+1, b.Slots)
				}
				keys[n] = key
			}
		}
	}
	return keys
}

// piecesOf is how many slots of a variable are one blank's: a word's pieces, or one.
func (p *layout) piecesOf(n int) int {
	v := &p.variables[n]
	if v.words == nil && v.find == nil {
		return 1
	}
	for _, b := range p.template.Blanks {
		if v.slots[0] == b.First {
			return b.Slots
		}
	}
	return 1
}

// choices is how many values a list leaves a blank, and 2 without a list.
func (p *layout) choices(b tokenize.Blank) int {
	for i := range p.variables {
		if v := &p.variables[i]; v.listed && slices.Contains(v.slots, b.First) {
			return v.categories()
		}
	}
	return 2
}

// usualWeights are what words of two and of three pieces weigh, times their probability, where nothing tells which
// exist: the probabilities of each number of pieces sum to one by themselves and say nothing of the number. Fitted to
// held-out words, see docs/measured/words.md.
var usualWeights = []float64{0.5, 0.2}

// pieceWeights are what words weigh by their number of pieces.
type pieceWeights struct {
	logs  []float64 // of one piece and more, nats
	share float64   // what they are divided by
}

// newPieceWeights makes them of the weights of two and three pieces; those of one piece weigh 1. The temperature
// changes how likely each number is as it changes how likely each piece is.
func newPieceWeights(weights []float64, temperature float64) pieceWeights {
	w := pieceWeights{[]float64{0}, 1}
	for _, x := range weights {
		w.logs = append(w.logs, math.Log(x)/temperature)
	}
	return w
}

// log is the weight of so many pieces, in nats; beyond the last, each piece counts as the last did.
func (w pieceWeights) log(pieces int) float64 {
	last := len(w.logs) - 1
	if pieces <= last+1 {
		return w.logs[pieces-1] - math.Log(w.share)
	}
	return w.logs[last] + float64(pieces-last-1)*(w.logs[last]-w.logs[last-1]) - math.Log(w.share)
}

// sum is that of all numbers that a word of a lexicon may have.
func (w pieceWeights) sum() (sum float64) {
	for n := 1; n <= listedPieces; n++ {
		sum += math.Exp(w.log(n))
	}
	return sum
}

// measure notes which blanks hold one word, by their patterns and lists.
func (r *rules) measure(p *layout) {
	p.known = true
	for i, b := range p.template.Blanks {
		isWord := b.Pattern != "" || r.listsWords(i, b)
		if isWord && r.fill == fillWords && judges(b) {
			p.words = append(p.words, b)
			p.known = p.known && r.mustExist(i, b)
		}
		if b.Name != "" && slices.ContainsFunc(p.template.Blanks[:i],
			func(other tokenize.Blank) bool { return other.Name == b.Name }) {
			continue // it holds what the first of its name does
		}
		if isWord && (b.High == 0 || b.High > b.Low) {
			p.counted = append(p.counted, b.Slots)
		} else {
			p.lengths = append(p.lengths, b.Slots)
		}
	}
}

// listsWords reports whether the list of a blank has single words alone of that many pieces, and no "New York".
func (r *rules) listsWords(blank int, b tokenize.Blank) bool {
	begins := func(id int) bool {
		return !r.vocabulary.tokenizer.Continues(id) && !r.vocabulary.tokenizer.Unspaced(id)
	}
	return r.lists[blank] != nil && !b.TouchesLeft && !b.TouchesRight && !slices.ContainsFunc(r.lists[blank][b.Slots],
		func(ids []int) bool { return slices.ContainsFunc(ids[1:], begins) })
}

// oneWord reports whether the only blank of a template may hold a word of several pieces: it
// stands by itself, and nothing is said of what it takes but what all of its words can be asked.
func (r *rules) oneWord(t *tokenize.Template, o *Options) bool {
	b := t.Blanks[0]
	return len(t.Blanks) == 1 && o.searches() && o.Fill == fillWords && o.Pins == nil && o.Together == nil &&
		r.MinPieces == 0 && r.MaxPieces == 0 &&
		b.High == 0 && b.Pattern == "" && !b.TouchesLeft && !b.TouchesRight && r.lists[0] == nil &&
		len(r.vocabulary.going())+len(r.vocabulary.unspaced()) > 0
}

// longWord is the layout whose only blank holds a word of n pieces.
func (r *rules) longWord(p *layout, n int) (*layout, error) {
	templates, err := p.typed.Expand([][2]int{{n, n}})
	if err != nil {
		return nil, err
	}
	t := templates[0]
	t.After(p.context)
	t.Spelling = p.template.Spelling
	b := t.Blanks[0]
	longer := &layout{typed: p.typed, template: t, words: t.Blanks, counted: []int{n}}
	longer.cut = func(tokens []int) bool { return r.allows(b, tokens) && r.vocabulary.cutSo(b, tokens) }
	for slot := range n {
		support := r.vocabulary.going()
		switch {
		case b.Unspaced:
			support = r.vocabulary.unspaced()
		case slot == 0:
			support = r.openings(b)
		}
		longer.variables = append(longer.variables, variable{slots: []int{slot}, support: support})
	}
	return longer, nil
}
