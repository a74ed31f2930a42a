package infill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"infill/lm"
	"infill/tokenize"
)

// problem is a layout that the model was asked about: what may be filled, and how likely it is.
type problem struct {
	filler  *Filler
	model   LanguageModel
	options Options // settled
	adapts  bool    // the kernel is tuned in the warm-up
	layout
	label  string    // of the random streams
	target lm.Target // nil in the answer for a single slot
	rows   int64     // model rows beside the target's
	hints  []string
	// logp are the log-probabilities of all tokens with every slot masked,
	// [slots][vocabulary].
	logp  [][]float32
	began time.Time // the fill
}

// prepare asks the model what is likely. weights are its log-probabilities of each variable's
// categories with all slots masked.
func (f *Filler) prepare(ctx context.Context, model LanguageModel, p *layout, o Options,
	start time.Time) (r *problem, weights [][]float32, err error) {
	if !o.answers() {
		o = o.Chained()
	}
	r = &problem{filler: f, model: model, layout: *p, label: p.typed.Text, began: start}
	r.options, r.adapts = o.settled()
	if p.places > 1 {
		// No template holds a NUL, so no other run's streams are these.
		r.label += "\x00" + fmt.Sprint(r.pieces())
	}
	for _, text := range o.Together {
		r.label += "\x00" + text
	}
	logp, err := model.MaskedLogProbabilities(ctx, r.template.IDs, r.template.Slots)
	if err != nil {
		return nil, nil, err
	}
	r.rows, r.logp = 1, logp
	if err := r.withTogether(ctx); err != nil {
		return nil, nil, err
	}
	logp = r.logp
	weights = make([][]float32, len(r.variables))
	r.variables = slices.Clone(r.variables)
	shortest := p.place == 0 // longer rows would rather have commas where one mask has a word
	if shortest {
		r.foreign()
	}
	for n := range r.variables {
		v := &r.variables[n]
		if v.find != nil {
			if v.words, err = v.find(logp); err != nil {
				return nil, nil, err
			}
		}
		if shortest {
			r.hint(v, logp)
		}
		if v.words == nil && !v.listed {
			v.support = r.narrowed(v.support, sumOver(v.slots, logp))
		}
		weights[n] = v.logWeights(logp)
	}
	if o.answers() && len(r.template.Slots) == 1 && r.together() == "" && o.Joint != JointFilled {
		_, err := o.energy(p) // an order that does not fit
		return r, nil, err    // the row that has run says it all
	}
	r.target, err = r.targets(o)
	return r, weights, err
}

// foreign says so where the words of a template are mostly unknown to the model, or cut into
// so many pieces that it can hardly have learned their language.
func (r *problem) foreign() {
	words, cut, unknown := 0, 0, 0
	for position, id := range r.template.IDs {
		switch class := r.filler.classes()[id]; {
		case slices.Contains(r.template.Slots, position):
		case id == r.filler.tokenizer.UnknownID():
			words++
			unknown++
		case class&continuingToken != 0:
			cut++
		case class&wordToken != 0:
			words++
		}
	}
	const few = 4 // words that tell nothing of a language
	switch {
	case words < few:
	case 2*unknown >= words:
		r.hints = append(r.hints, fmt.Sprintf("the model does not know %d of the text's %d words: take one of its "+
			"language, see infill models pull --help", unknown, words))
	case 3*cut >= 2*words:
		r.hints = append(r.hints, fmt.Sprintf("the model cuts the text's %d words into %d pieces, as words of a "+
			"language that it has hardly seen: take a model of it, see infill models pull --help", words, words+cut))
	}
}

// hint says so where the tokens that a blank may not take hold most of the probability of
// its first slot, and one of them a tenth at least.
func (r *problem) hint(v *variable, logp [][]float32) {
	if r.others != nil || r.options.Fill == FillAny || r.options.Pins != nil || v.listed || v.words != nil {
		return
	}
	blank := slices.IndexFunc(r.template.Blanks, func(b tokenize.Blank) bool { return b.First == v.slots[0] })
	if blank < 0 {
		return
	}
	b, row := r.template.Blanks[blank], logp[v.slots[0]]
	if b.Pattern != "" {
		return
	}
	next := v.support
	highest, best := row[0], -1 // best is the likeliest token that is left out
	for token, l := range row {
		highest = max(highest, l)
		if len(next) > 0 && next[0] == token {
			next = next[1:]
		} else if best < 0 || l > row[best] {
			best = token
		}
	}
	// the model's table is often longer than the vocabulary
	if best < 0 || best >= r.filler.tokenizer.VocabularySize() {
		return
	}
	least := math.Log(0.1)
	if float64(row[best]-highest) < least { // the sum is 1 at least, by the highest
		return
	}
	sum, taken := 0.0, 0.0
	next = v.support
	for token, l := range row {
		p := math.Exp(float64(l - highest))
		sum += p
		if len(next) > 0 && next[0] == token {
			taken, next = taken+p, next[1:]
		}
	}
	if taken >= sum/2 || float64(row[best]-highest) < least+math.Log(sum) {
		return
	}
	if kind := (&rules{fill: r.options.Fill, vocabulary: r.filler.vocabulary}); kind.takes(best) &&
		kind.begins(b, best) {
		return // another constraint leaves it out
	}
	where := "here"
	if len(r.template.Blanks) > 1 {
		where = fmt.Sprintf("in blank %d", blank+1)
	}
	share := math.Exp(float64(row[best]-highest)) / sum
	class := r.filler.classes()[best]
	advice := "--fill any takes it"
	switch text := r.filler.tokenizer.Token(best); {
	case b.TouchesLeft:
		advice = "write a blank after the word on its left, or --fill any"
	case class&continuingToken != 0:
		advice = "write the blank onto the word that it goes on with, or --fill any"
	case r.options.Fill == fillWords && strings.Contains(".!?", text):
		advice = "end the sentence, or --fill tokens"
	case r.options.Fill == fillWords:
		advice = "--fill tokens takes it"
	}
	r.hints = append(r.hints,
		fmt.Sprintf("the model would rather put %q %s (%.0f %%): %s", strings.TrimSpace(r.filler.tokenizer.Token(best)),
			where, 100*share, advice))
}

// narrowed are the candidates of a slot: as many of the likeliest tokens as the options
// say. Where they leave it to us, a single slot keeps all, since one row knows them, and
// others keep no more than hold nearly all of the probability.
func (r *problem) narrowed(support []int, logp []float32) []int {
	number := r.options.Candidates
	if number != AutoCandidates {
		return Candidates(support, logp, number)
	}
	if len(r.template.Slots) == 1 {
		return support
	}
	support = Candidates(support, logp, defaultCandidates)
	if r.others != nil { // products of distributions do not sum to one
		shift := float32(floats.LogSumExp(doubles(logp)))
		logp = slices.Clone(logp)
		for token := range logp {
			logp[token] -= shift
		}
	}
	best := slices.Clone(support)
	slices.SortFunc(best, func(a, b int) int { return cmp.Or(cmp.Compare(logp[b], logp[a]), a-b) })
	held := 0.0
	for i, token := range best {
		if held += math.Exp(float64(logp[token])); held >= enough {
			return Candidates(support, logp, i+1)
		}
	}
	return support
}

// sumOver adds the slots' log-probabilities of every token; that of one slot is
// not copied.
func sumOver(slots []int, logp [][]float32) []float32 {
	if len(slots) == 1 {
		return logp[slots[0]]
	}
	sum := slices.Clone(logp[slots[0]])
	for _, slot := range slots[1:] {
		for token, l := range logp[slot] {
			sum[token] += l
		}
	}
	return sum
}

// Candidates returns the tokens that a slot may take, ascending: all fillable
// ones, or the given number of those the model finds most probable. Equal
// probabilities go to the smaller id.
func Candidates(fillable []int, logp []float32, number int) []int {
	if number == 0 || number >= len(fillable) {
		return fillable
	}
	best := largestAmong(slices.Values(fillable), logp, number)
	slices.Sort(best)
	return best
}

// withTogether asks the model for the further texts too, and adds their log-probabilities to
// those of the first: r.logp of a variable's first slots is then that of all texts.
func (r *problem) withTogether(ctx context.Context) error {
	if len(r.others) == 0 {
		return nil
	}
	for i := range r.logp {
		r.logp[i] = slices.Clone(r.logp[i])
	}
	for _, other := range r.others {
		logp, err := r.model.MaskedLogProbabilities(ctx, other.template.IDs, other.template.Slots)
		if err != nil {
			return err
		}
		r.rows++
		for n := range r.variables {
			own := r.variables[n].slots
			pieces := r.piecesOf(n)
			for i, slot := range other.variables[n].slots {
				sum := r.logp[own[i%pieces]]
				for token, l := range logp[slot] {
					sum[token] += l
				}
			}
		}
	}
	return nil
}

// otherTokens are the ids in the slots of a further text, where the first has the given ones.
func (r *problem) otherTokens(other *layout, tokens []int) []int {
	list := make([]int, len(other.template.Slots))
	for n := range r.variables {
		pieces := r.piecesOf(n)
		for i, slot := range other.variables[n].slots {
			list[slot] = tokens[r.variables[n].slots[i%pieces]]
		}
	}
	return list
}

// filled is what the tokens of all slots read as, in the further texts, too.
func (r *problem) filled(tokens []int, logLikelihood float64) Fill {
	of := r.template.Fill(tokens)
	fill := Fill{Text: of.Text, Values: of.Fills, Spans: of.Spans, TokenIDs: tokens, LogLikelihood: logLikelihood}
	for _, other := range r.others {
		fill.Together = append(fill.Together, other.template.Fill(r.otherTokens(other, tokens)).Text)
	}
	return fill
}

// tokens are the ids that a state puts into the slots, [slots].
func (r *problem) tokens(state []int) []int {
	return fillSlots(make([]int, len(r.template.Slots)), r.variables, state)
}

// temperature is T of exp(U/T), of which the answer is: that of the options, times the
// model's own where U is the pseudo-log-likelihood of several slots.
func (r *problem) temperature() float64 { return r.options.Temperature * r.pllTemperature() }

// pllTemperature is what was fitted to the model, 1 where that does not enter.
func (r *problem) pllTemperature() float64 {
	return 1
}

// rounds is how often a decoding predicts.
func (r *problem) rounds() int { return min(r.options.Steps, len(r.variables)) }
