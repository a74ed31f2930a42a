package infill

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"infill/internal/lines"
	"infill/samplers"
	"infill/tokenize"
)

// Result is the result of filling one template. Its JSON is part of the
// command's contract: new fields may come, but no field is renamed.
type Result struct {
	// Format is the version of the JSON of a Result, 5.
	Format    int    `json:"format"`
	Template  string `json:"template"`
	Model     Model  `json:"model"`
	Signature string `json:"signature"`
	// Seed is the seed of the random numbers; nil if the method needed no random numbers.
	Seed *uint64 `json:"seed,omitempty"`
	// Method is MethodSearch, MethodDraws, or the sampler's name.
	Method string `json:"method"`
	// Proven reports, for a search, whether every allowed fill that is not
	// listed is at most as likely as those in Fills. LeftOutAtMost is an upper
	// bound of the probability of every fill that is not listed.
	Proven        *bool    `json:"proven,omitempty"`
	LeftOutAtMost *float64 `json:"left_out_at_most,omitempty"`
	Fills         []Fill   `json:"fills"`
	// Alone lists, for each blank, the likeliest tokens that the blank may take
	// while all blanks are masked, [blanks][values], as many as fills were asked
	// for, and five or more where there are so many. The list is empty for a
	// blank that has more than one piece at its shortest.
	Alone [][]Value `json:"alone"`
	// Entropy is, for each blank, the entropy in bits of what the model expects
	// there while all blanks are masked, over the whole vocabulary, [blanks]. It
	// is nil for a blank that has more than one piece at its shortest.
	Entropy []*float64 `json:"entropy"`
	Stats   Stats      `json:"stats"`
	// Unfinished reports whether the run was interrupted. Fills then holds the
	// likeliest fills found so far.
	Unfinished bool `json:"unfinished,omitempty"`
	// Place is where an unfinished run stood, as in "at step 3 of 50"; else "".
	Place string `json:"-"`
	// Excluded reports whether FillKind alone keeps the likeliest token out of a blank:
	// a proof then takes many rows.
	Excluded bool `json:"-"`
	// Warnings are sentences for the user about this result. The first Ends of them say how
	// the run ended: interrupted, or with fewer fills than were asked for.
	Warnings []string `json:"warnings"`
	Ends     int      `json:"-"`
	// Typed is the one of Warnings that signs are typed in two ways, which holds for many
	// texts at once, or empty.
	Typed string `json:"-"`
	// Blanks holds the range of characters of every blank as typed, such as "[MASK]"
	// or "[MASK:2]", in Template.
	Blanks [][2]int `json:"-"`
	// Draws holds U of every draw in nats, [chains][draws]. Only the results of
	// Progress.Result have Draws.
	Draws [][]float64 `json:"-"`
}

// Drawn reports whether the fills are independent draws.
func (r *Result) Drawn() bool { return r.Stats.Draws > 0 && r.Stats.Chains == nil }

// ProvenFills returns how many fills of a search, from the first, are proven to be the
// likeliest: those that are at least as likely as any other fill can be.
func (r *Result) ProvenFills() (n int) {
	for _, f := range r.Fills {
		if r.LeftOutAtMost == nil || f.Probability == nil || *f.Probability < *r.LeftOutAtMost {
			break
		}
		n++
	}
	return n
}

// Fill is one ranked fill of all blanks.
type Fill struct {
	Rank int    `json:"rank"` // from 1
	Text string `json:"text"` // the template with the blanks filled
	// Values holds the text of each blank as it is written in Text, [blanks].
	Values []string `json:"values"`
	// Spans holds the range of characters (code points) of each of Values in Text,
	// from 0, [blanks].
	Spans    [][2]int `json:"spans"`
	TokenIDs []int    `json:"token_ids"` // [slots]
	Tokens   []int    `json:"tokens"`    // the number of tokens in each blank, [blanks]
	// Probability is P by the chain rule over the whole vocabulary; nil for a
	// sampler, which computes no such P.
	Probability *float64 `json:"probability,omitempty"`
	// LogLikelihood is log P in nats or, for a sampler's fill, the energy U in nats.
	LogLikelihood float64 `json:"log_likelihood"`
	// Share is, if every blank has a list and a search scored all fills of the
	// lists, the fill's part of their total probability. For a sampler, Share
	// is the fill's share of the draws. ShareError is the standard error of
	// Share between chains. ShareError is nil for a single chain, or if only
	// one or two of more chains met the fill.
	Share      *float64 `json:"share,omitempty"`
	ShareError *float64 `json:"share_error,omitempty"`
	// ShareInterval is a 95 % interval (Wilson's, over EffectiveDraws) for the
	// fill's probability. It holds only if the chains have converged.
	ShareInterval *[2]float64 `json:"share_interval,omitempty"`
	// Count is the number of draws that are this fill. FinalCount is the number
	// of chains that ended with it.
	Count      int `json:"count,omitempty"`
	FinalCount int `json:"final_count,omitempty"`
	// SplitRHat is near 1 if the chains agree on Share, see ChainStats. It is
	// nil beyond the first 100 fills, and if it is not defined.
	SplitRHat *float64 `json:"split_r_hat,omitempty"`
	// EffectiveDraws is how many independent draws would tell as much about
	// Share, or about U if that number is less.
	EffectiveDraws *float64 `json:"effective_draws,omitempty"`
}

// Stats says how a method found a result, and what the work cost.
type Stats struct {
	Slots int `json:"slots"` // slots of the longest fill
	// Lengths is the number of combinations of lengths that the blanks may
	// have, by which every P is divided; 0 for one.
	Lengths int `json:"lengths,omitempty"`
	// Draws is the number of ranked draws. DistinctFills is the number of
	// different fills that the method met.
	Draws int `json:"draws,omitempty"`
	// DrawsWanted is the number of draws that were asked for, if the budget sufficed
	// for fewer; else 0.
	DrawsWanted   int     `json:"draws_wanted,omitempty"`
	DistinctFills int     `json:"distinct_fills"`
	ModelRows     int64   `json:"model_rows"` // rows (token sequences) that went through the model
	Device        string  `json:"device"`
	Seconds       float64 `json:"seconds"` // time from the template to the ranking
	// Seen is how many tokens around the blanks the model saw of a too long
	// text; 0 if it saw the whole text.
	Seen   int         `json:"seen,omitempty"`
	Chains *ChainStats `json:"chains,omitempty"` // nil unless a sampler ran
}

// ChainStats says how the chains of a sampler moved.
type ChainStats struct {
	Sampler string `json:"sampler"`
	Energy  Energy `json:"energy"`
	Chains  int    `json:"chains"`
	Steps   int    `json:"steps"` // steps of each chain, warm-up included
	// Candidates holds the number of tokens, or of words, that each slot
	// may take, [slots].
	Candidates []int `json:"candidates"`
	// StepSize is α after the warm-up. It is nil if the sampler has no step
	// size, or if adaptation found no penalty at all to be best (α is +Inf).
	StepSize *float64 `json:"step_size"`
	// AcceptanceRate is the mean over chains and steps after the warm-up; nil
	// without such steps, or if all proposals are accepted.
	AcceptanceRate          *float64 `json:"acceptance_rate"`
	AcceptanceStandardError *float64 `json:"acceptance_standard_error"`
	// ChangedSlotsPerStep is the mean number of slots that a step after the
	// warm-up changed in a chain.
	ChangedSlotsPerStep float64     `json:"changed_slots_per_step"`
	WarmUp              WarmUpStats `json:"warm_up"`
	// MeanLogLikelihood is the mean U of the draws in nats.
	// MeanLogLikelihoodStandardError is its error between chains.
	MeanLogLikelihood              float64  `json:"mean_log_likelihood"`
	MeanLogLikelihoodStandardError *float64 `json:"mean_log_likelihood_standard_error"`
	// SplitRHat of U is near 1 if the halves of all chains agree. Above 1.1 the
	// result carries a warning; 1000 stands for every larger value.
	// EffectiveDraws is how many independent draws would tell as much about U.
	// Both are nil if they are not defined: if a chain has fewer than 4 draws,
	// or if all draws have the same U.
	SplitRHat      *float64 `json:"split_r_hat"`
	EffectiveDraws *float64 `json:"effective_draws"`
	// EnergyEvaluations and GradientEvaluations count the states whose energy,
	// or gradient, was computed.
	EnergyEvaluations   int64 `json:"energy_evaluations"`
	GradientEvaluations int64 `json:"gradient_evaluations"`
}

// WarmUpStats reports the steps of the warm-up, which ChainStats does not include
// elsewhere.
type WarmUpStats struct {
	Steps               int      `json:"steps"`
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
}

// Progress is the state of a run at one step. The receiver may keep a Progress:
// nothing in it changes afterwards.
type Progress struct {
	Template string
	Method   string // MethodSearch, MethodDraws or MethodChains
	// Step is a step of chains, 0 for their initial states, the draws so far, or the
	// percent of a search's budget.
	Step   int
	Steps  int   // all of these
	Pieces []int // the number of slots of each blank, [blanks]
	WarmUp bool
	// TokenIDs holds the token id in each slot of each chain, [chains × slots].
	TokenIDs []int
	// LogLikelihoods holds U of each chain in nats, [chains]; NaN if neither the
	// sampler nor Chains.Energies needs it.
	LogLikelihoods []float64
	// Accepted says which chains accepted their proposal. Changed holds
	// the number of slots that changed in each chain. Both are [chains],
	// and nil at step 0.
	Accepted []bool
	Changed  []int
	// StepSize is α at this step; 0 if the sampler has no step size.
	StepSize float64

	result func() *Result // nil if there is no result yet
}

// Result returns the result so far; nil if there is none yet. Call Result while
// the observer runs or, at the last step, after Fill has returned. For chains, the
// result lists up to 2,000 of the best fills, whatever Request.Top is. A
// log-likelihood that the sampler did not need is NaN until Fill has returned.
func (p Progress) Result() *Result {
	if p.result == nil {
		return nil
	}
	return p.result()
}

const resultFormat = 5

// answer holds the fills that a method found, and how the method found them.
type answer struct {
	method   string
	law      bool // fills have probabilities by the chain rule
	fills    []found
	proven   bool
	left     float64 // upper bound of log P of every unlisted fill, for a search
	complete bool    // whether every fill of the lists was scored; total is then the sum of their probabilities
	total    float64
	draws    int
	wanted   int // draws, if the budget sufficed for fewer
	distinct int
	place    string // where the run was when it was interrupted, in words
	warnings []string
	chains   *ChainStats // nil unless a sampler ran
	series   [][]float64 // U of the draws, [chains][draws]
	rows     int64       // model rows beside those in asker.rows
}

type found struct {
	layout        int
	tokens        []int // [slots]
	logLikelihood float64
	count         int
	finals        int
	share         *share // share of a sampler's draws; nil for other methods
}

// share is a fill's share of the draws of chains, with the diagnostics of the share.
type share struct {
	value     float64
	error     *float64
	interval  *[2]float64
	rHat      *float64
	effective *float64
}

func (w *work) result(a *answer) *Result {
	p := w.plan
	r := &Result{Format: resultFormat, Template: p.Request.Template, Model: p.filler.Model(), Method: a.method,
		Fills: []Fill{},
		Alone: w.valuesAlone(), Entropy: w.entropies(), Warnings: []string{}, Draws: a.series,
		Stats: Stats{Slots: p.Slots(), Draws: a.draws, DrawsWanted: a.wanted,
			DistinctFills: a.distinct,
			ModelRows:     int64(w.asker.rows) + a.rows, Seconds: time.Since(w.began).Seconds(), Seen: p.seen,
			Chains: a.chains}}
	r.Stats.Device = r.Model.Device
	if p.lengths > 1 {
		r.Stats.Lengths = p.lengths
	}
	for _, b := range p.typed.Blanks {
		r.Blanks = append(r.Blanks, [2]int{b.Start, b.End})
	}
	r.Blanks = lines.Characters(r.Template, r.Blanks)
	if p.Request.Method.random() {
		seed := uint64(p.Request.Seed)
		r.Seed = &seed
	}
	if a.method == MethodSearch {
		left := math.Exp(min(0, a.left))
		r.Proven = &a.proven
		r.LeftOutAtMost = &left
	}
	for i, f := range a.fills {
		r.Fills = append(r.Fills, w.fill(a, i+1, f))
	}
	if p.Terse {
		r.Warnings = append(r.Warnings, a.warnings...)
		return r
	}
	r.Signature = w.signature()
	ends := fewer(r, int(p.Request.Top))
	r.Ends = len(ends)
	r.Warnings = append(r.Warnings, slices.Concat(ends, w.warnings(r), a.warnings)...)
	r.Warnings = lines.ShortAll(r.Warnings)
	return r
}

// fill returns a found fill of an answer as a Fill with the given rank.
func (w *work) fill(a *answer, rank int, f found) Fill {
	l := w.plan.layouts[f.layout]
	written := l.template.Fill(f.tokens)
	fill := Fill{Rank: rank, Text: written.Text, Values: written.Fills,
		Spans:    lines.Characters(written.Text, written.Spans),
		TokenIDs: slices.Clone(f.tokens), Tokens: l.pieces(), LogLikelihood: f.logLikelihood, Count: f.count,
		FinalCount: f.finals}
	if a.law {
		probability := math.Exp(min(0, f.logLikelihood))
		fill.Probability = &probability
	}
	if a.complete && a.total > 0 {
		share := min(1, math.Exp(f.logLikelihood)/a.total)
		fill.Share = &share
	}
	s := f.share
	if s != nil {
		fill.Share = &s.value
		fill.ShareError = s.error
		fill.ShareInterval = s.interval
		fill.SplitRHat = s.rHat
		fill.EffectiveDraws = s.effective
	}
	return fill
}

// Value is a token that a blank may hold, with the model's probability.
type Value struct {
	Text        string  `json:"text"`
	TokenID     int     `json:"token_id"`
	Probability float64 `json:"probability"`
}

// leastAlone is how many values a list of Result.Alone has even if fewer fills
// are asked for, as far as there are as many.
const leastAlone = 5

// valuesAlone makes Result.Alone, with the likeliest token of each text.
func (w *work) valuesAlone() [][]Value {
	l := w.plan.shortest
	most := max(int(w.plan.Request.Top), leastAlone)
	list := make([][]Value, len(l.template.Blanks))
	for blank, b := range l.template.Blanks {
		list[blank] = []Value{}
		if b.Slots > 1 {
			continue
		}
		for v := range l.values(b.First, l.alone(b.First), w.alone[b.First], 4*most) {
			if len(list[blank]) == most {
				break
			}
			same := func(other Value) bool { return other.Text == v.Text }
			if !slices.ContainsFunc(list[blank], same) {
				list[blank] = append(list[blank], v)
			}
		}
	}
	return list
}

// values yields those of tokens, ascending, that are likeliest in a slot, top at
// most, the likeliest first. logp is the slot's, [vocabulary].
func (l *layout) values(slot int, tokens []int, logp []float32, top int) iter.Seq[Value] {
	blank := slices.IndexFunc(l.template.Blanks, func(b tokenize.Blank) bool { return slot < b.First+b.Slots })
	return func(yield func(Value) bool) {
		for _, token := range samplers.Likeliest(tokens, logp, top) {
			if !yield(Value{l.with(slot, token).Fills[blank], token, math.Exp(float64(logp[token]))}) {
				return
			}
		}
	}
}

func (w *work) entropies() []*float64 {
	l := w.plan.shortest
	list := make([]*float64, len(l.template.Blanks))
	for blank, b := range l.template.Blanks {
		if b.Slots == 1 {
			h := entropy(w.alone[b.First])
			list[blank] = &h
		}
	}
	return list
}

// entropy returns -Σ p log₂ p in bits, given the natural logarithms of p. Every
// row of a run has one, over the whole vocabulary, so that exp is written out:
// e^x = 2^(k/64) e^r, with less than log(2)/64 for r, to a relative 1e-11.
func entropy(logp []float32) (bits float64) {
	const step = math.Ln2 / 64
	const steps = 1 / step
	const least = -700 // below it p is 0 in effect, and 2^(k/64) would underflow
	for _, lp := range logp {
		x := float64(lp)
		if !(x > least) {
			continue
		}
		k := int(x * steps)
		r := x - float64(k)*step
		whole := math.Float64frombits(uint64(1023+k>>6) << 52)
		bits -= whole * roots[k&63] * (1 + r*(1+r*(1./2+r*(1./6+r*(1./24))))) * x
	}
	return bits / math.Ln2
}

// roots holds 2^(k/64).
var roots = func() (list [64]float64) {
	for k := range list {
		list[k] = math.Exp2(float64(k) / 64)
	}
	return list
}()

func (l *layout) with(slot, token int) tokenize.Filled {
	state := slices.Repeat([]int{samplers.Open}, len(l.template.Slots))
	state[slot] = token
	return l.template.Fill(state)
}

// Written returns the template, with its blanks at their shortest, with a token in
// one slot. The other blanks stay as typed.
func (p *Plan) Written(slot, token int) string { return p.shortest.with(slot, token).Text }

// Alone returns, for each slot, the likeliest tokens that it may take while all
// blanks are masked, top at most, the likeliest first, [slots][values]. Tokens that
// spell the same text stay apart. If targets is not nil, only these tokens are
// rated; they are ascending. A blank without limits takes every token under
// FillAny, special ones included, as in the pipelines of others. Alone runs one
// row.
func (p *Plan) Alone(ctx context.Context, top int, targets []int) ([][]Value, error) {
	asker, err := p.filler.asker(ctx, false)
	if err != nil {
		return nil, err
	}
	l := p.shortest
	root, err := asker.root(ctx, l.question)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	list := make([][]Value, len(root))
	for slot, logp := range root {
		list[slot] = slices.AppendSeq([]Value{}, l.values(slot, l.rated(slot, targets), logp, top))
	}
	return list, nil
}

// rated returns the tokens, ascending, that a slot may take and that targets has.
func (l *layout) rated(slot int, targets []int) []int {
	if l.limitless(slot) {
		if targets != nil {
			return targets
		}
		return l.rules.vocabulary.all()
	}
	tokens := l.alone(slot)
	if targets == nil {
		return tokens
	}
	return slices.DeleteFunc(slices.Clone(targets), func(token int) bool {
		_, ok := slices.BinarySearch(tokens, token)
		return !ok
	})
}

// alone returns what a slot may take, ascending, while all others are open.
func (l *layout) alone(slot int) []int {
	return l.choices(slices.Repeat([]int{samplers.Open}, len(l.template.Slots)), slot)
}

// limitless reports whether no rule limits what a slot may take.
func (l *layout) limitless(slot int) bool {
	r := l.rules
	if r.fill != FillAny || !r.bans.none() {
		return false
	}
	for _, blank := range l.groups[l.groupOf[slot]].blanks {
		b := r.blanks[blank]
		if b.list != nil || b.pattern != nil || b.part != nil {
			return false
		}
	}
	return true
}
