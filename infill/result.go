package infill

import (
	"math"
	"slices"
	"time"

	"infill/lm"
	"infill/samplers"
)

// Result is the result of filling one template. Its JSON is part of the command's contract: fields may be added,
// never renamed.
type Result struct {
	// Format is the version of this form, 4.
	Format    int    `json:"format"`
	Template  string `json:"template"`
	Model     Model  `json:"model"`
	Signature string `json:"signature"`
	// Seed is the seed of the random numbers; nil if none were needed.
	Seed *uint64 `json:"seed,omitempty"`
	// Method is MethodSearch, MethodDraws, or the sampler's name.
	Method string `json:"method"`
	// Proven, of a search, reports whether no fill that the blanks may take is likelier than those listed.
	// LeftOutAtMost bounds the probability of every other fill.
	Proven        *bool    `json:"proven,omitempty"`
	LeftOutAtMost *float64 `json:"left_out_at_most,omitempty"`
	Fills         []Fill   `json:"fills"`
	// Alone lists the likeliest tokens of each blank while all blanks are masked, among those that it may take,
	// [blanks][values], five at most. It is empty for a blank that has more than one piece at its shortest.
	Alone [][]Value `json:"alone"`
	Stats Stats     `json:"stats"`
	// Unfinished reports whether the run was interrupted: the fills are the likeliest found by then.
	Unfinished bool `json:"unfinished,omitempty"`
	// Warnings are sentences for the user about this result.
	Warnings []string `json:"warnings"`
	// Blanks holds the byte range of every blank as typed, such as "[MASK]" or "[MASK:2]", in Template.
	Blanks [][2]int `json:"-"`
	// Draws holds U of every draw in nats, [chains][draws]. Only Progress.Result sets it.
	Draws [][]float64 `json:"-"`
}

// Value is a token that a blank may hold, with the model's probability of it.
type Value struct {
	Text        string  `json:"text"`
	TokenID     int     `json:"token_id"`
	Probability float64 `json:"probability"`
}

// Fill is one ranked fill of all blanks.
type Fill struct {
	Rank int    `json:"rank"` // from 1
	Text string `json:"text"` // the template with the blanks filled
	// Values holds the text of each blank, as it stands in Text, [blanks].
	Values []string `json:"values"`
	// Spans holds the byte range of each of Values in Text, [blanks].
	Spans    [][2]int `json:"spans"`
	TokenIDs []int    `json:"token_ids"` // [slots]
	// Pieces is the number of tokens of each blank, [blanks], if the blanks may have several; else nil.
	Pieces []int `json:"pieces,omitempty"`
	// Probability is P of the chain rule over the whole vocabulary; nil for a sampler, which computes none.
	Probability *float64 `json:"probability,omitempty"`
	// LogLikelihood is log P, or U of a sampler's fill, in nats.
	LogLikelihood float64 `json:"log_likelihood"`
	// Share is the fill's part of the probability of all fills of the lists, if every blank has a list and all were
	// scored. For a sampler it is the fill's share of the draws. ShareError is its standard error between chains; nil
	// for a single chain, or if only one or two of more chains met the fill.
	Share      *float64 `json:"share,omitempty"`
	ShareError *float64 `json:"share_error,omitempty"`
	// ShareInterval holds the fill's probability in 95 % of cases where the chains have converged: Wilson's, over
	// EffectiveDraws.
	ShareInterval *[2]float64 `json:"share_interval,omitempty"`
	// Count is how often the fill was drawn, and FinalCount how many chains ended with it.
	Count      int `json:"count,omitempty"`
	FinalCount int `json:"final_count,omitempty"`
	// SplitRHat is near 1 if the chains agree on the share, as in ChainStats; nil beyond the first 100 fills, and where
	// it is not defined.
	SplitRHat *float64 `json:"split_r_hat,omitempty"`
	// EffectiveDraws is the number of independent draws that would tell as much of the share, or of U if that is less.
	EffectiveDraws *float64 `json:"effective_draws,omitempty"`
}

// Stats tells how a method found a result, and at which cost.
type Stats struct {
	Slots int `json:"slots"` // of the longest fill
	// Draws is the number of ranked states, and DistinctFills the number of different fills met.
	Draws         int     `json:"draws,omitempty"`
	DistinctFills int     `json:"distinct_fills"`
	ModelRows     int64   `json:"model_rows"` // token sequences that went through the model
	Device        string  `json:"device"`
	Seconds       float64 `json:"seconds"` // from the template to the ranking
	// Seen is how many tokens of a longer text the model saw, those around the blanks; 0 if it saw all.
	Seen   int         `json:"seen,omitempty"`
	Chains *ChainStats `json:"chains,omitempty"` // of a sampler
}

// ChainStats tells how chains moved.
type ChainStats struct {
	Sampler string    `json:"sampler"`
	Energy  lm.Energy `json:"energy"`
	Chains  int       `json:"chains"`
	Steps   int       `json:"steps"` // of each chain, warm-up included
	// Candidates are how many tokens, or words, each slot may take, [slots].
	Candidates []int `json:"candidates"`
	// StepSize is α after the warm-up; nil for samplers without a step size, and if adaptation found that no penalty is
	// best (+Inf).
	StepSize *float64 `json:"step_size"`
	// AcceptanceRate is the mean over chains and steps after the warm-up; nil
	// for samplers that accept always, and where no step was made.
	AcceptanceRate          *float64 `json:"acceptance_rate"`
	AcceptanceStandardError *float64 `json:"acceptance_standard_error"`
	// ChangedSlotsPerStep is the mean number of slots that a step after the warm-up changed.
	ChangedSlotsPerStep float64 `json:"changed_slots_per_step"`
	WarmUp              WarmUp  `json:"warm_up"`
	// MeanLogLikelihood is the mean U of the draws, in nats, with its standard error between chains.
	MeanLogLikelihood              float64  `json:"mean_log_likelihood"`
	MeanLogLikelihoodStandardError *float64 `json:"mean_log_likelihood_standard_error"`
	// SplitRHat of U is near 1 if the halves of all chains agree. Above 1.3 the result carries a warning; 1000 stands
	// for more. EffectiveDraws is the number of independent draws that would tell as much of U. Both are nil if they
	// are not defined: fewer than 4 draws a chain, or all the same.
	SplitRHat      *float64 `json:"split_r_hat"`
	EffectiveDraws *float64 `json:"effective_draws"`
	// EnergyEvaluations and GradientEvaluations count states.
	EnergyEvaluations   int64 `json:"energy_evaluations"`
	GradientEvaluations int64 `json:"gradient_evaluations"`
}

// WarmUp reports the warm-up apart from the sampling.
type WarmUp struct {
	Steps               int      `json:"steps"`
	AcceptanceRate      *float64 `json:"acceptance_rate"`
	ChangedSlotsPerStep float64  `json:"changed_slots_per_step"`
}

// Progress is the state of a run at one step. It belongs to the receiver: nothing in it changes afterwards.
//
// A search has no chains: Step and Steps are its progress in percent of the budget.
type Progress struct {
	Template string
	// Result returns the result so far, or nil if there is none. Call it while the observer runs, or for the last step
	// after Fill has returned. Of chains it lists up to 2,000 of the best fills, whatever Options.Top is. A
	// log-likelihood that the sampler did not need is NaN until Fill has returned.
	Result func() *Result
	Step   int   // 0 is the initial states
	Steps  int   // of the whole run
	Pieces []int // the number of slots of each blank, [blanks]
	WarmUp bool
	// TokenIDs holds the tokens of the slots, [chains × slots].
	TokenIDs []int
	// LogLikelihoods is U of each chain in nats, [chains]; NaN if the sampler does not need it.
	LogLikelihoods []float64
	// Accepted says which chains accepted their proposal, and Changed how many of their slots changed, [chains];
	// nil at step 0.
	Accepted []bool
	Changed  []int
	// StepSize is α at this step, 0 for samplers that have none.
	StepSize float64
}

// resultFormat is Result.Format.
const resultFormat = 4

// answer holds the fills that a method found, and how it found them.
type answer struct {
	method   string
	law      bool // fills have probabilities of the chain rule
	seeded   bool // random numbers were drawn
	fills    []found
	proven   bool
	left     float64 // bounds log P of every other fill of a search
	complete bool    // every fill of the lists was scored; total is the sum of their probabilities
	total    float64
	draws    int
	distinct int
	place    string // where an interrupted run was, in words
	warnings []string
	chains   *ChainStats // nil without
	series   [][]float64 // U of the draws of each chain
	rows     int64       // model rows, apart from work.rows
}

// found is a fill.
type found struct {
	layout        int
	tokens        []int // [slots]
	logLikelihood float64
	count         int
	finals        int
	share         *share // of a sampler's draws; nil elsewhere
}

// share is a fill's share of the draws of chains, with its diagnostics.
type share struct {
	value     float64
	error     *float64
	interval  *[2]float64
	rHat      *float64
	effective *float64
}

// result writes the answer.
func (w *work) result() *Result {
	p, a := w.plan, &w.answer
	o := &p.Options
	r := &Result{Format: resultFormat, Template: p.Template, Model: p.filler.Model(), Method: a.method, Fills: []Fill{},
		Alone: w.alone(), Warnings: []string{}, Draws: a.series,
		Stats: Stats{Slots: p.Slots(), Draws: a.draws, DistinctFills: a.distinct, ModelRows: int64(w.rows) + a.rows,
			Seconds: time.Since(w.began).Seconds(), Seen: p.seen, Chains: a.chains}}
	r.Stats.Device = r.Model.Device
	for _, b := range p.typed.Blanks {
		r.Blanks = append(r.Blanks, [2]int{b.Start, b.End})
	}
	if a.seeded {
		r.Seed = &o.Seed
	}
	if a.method == MethodSearch {
		proven, left := a.proven, math.Exp(min(0, a.left)) // copies: the answer goes on changing
		r.Proven, r.LeftOutAtMost = &proven, &left
	}
	for i, f := range a.fills {
		r.Fills = append(r.Fills, w.fill(i+1, f))
	}
	r.Signature = w.signature()
	r.Warnings = append(w.warnings(r), a.warnings...)
	return r
}

// fill returns a found fill in the form of a result, with its rank.
func (w *work) fill(rank int, f found) Fill {
	a, l := &w.answer, w.plan.layouts[f.layout]
	written := l.template.Fill(f.tokens)
	fill := Fill{Rank: rank, Text: written.Text, Values: written.Fills, Spans: written.Spans,
		TokenIDs: slices.Clone(f.tokens), LogLikelihood: f.logLikelihood, Count: f.count, FinalCount: f.finals}
	if len(w.plan.layouts) > 1 {
		fill.Pieces = l.pieces()
	}
	if a.law {
		probability := math.Exp(min(0, f.logLikelihood))
		fill.Probability = &probability
	}
	if a.complete && a.total > 0 {
		share := min(1, math.Exp(f.logLikelihood)/a.total)
		fill.Share = &share
	}
	if s := f.share; s != nil {
		fill.Share, fill.ShareError, fill.ShareInterval = &s.value, s.error, s.interval
		fill.SplitRHat, fill.EffectiveDraws = s.rHat, s.effective
	}
	return fill
}

// mostAlone is the largest number of values in a list of Result.Alone.
const mostAlone = 5

// alone makes Result.Alone.
func (w *work) alone() [][]Value {
	l := w.plan.layouts[0]
	list := make([][]Value, len(l.template.Blanks))
	for blank, b := range l.template.Blanks {
		list[blank] = []Value{}
		if b.Slots > 1 {
			continue
		}
		logp := w.roots[0][b.First]
		for _, token := range samplers.Likeliest(l.alone(b.First), logp, 4*mostAlone) {
			if len(list[blank]) == mostAlone {
				break
			}
			// The other blanks keep their masks, which begin no sentence.
			state := slices.Repeat([]int{w.plan.filler.tokenizer.MaskID()}, len(l.slots))
			state[b.First] = token
			text := l.template.Fill(state).Fills[blank]
			if !slices.ContainsFunc(list[blank], func(v Value) bool { return v.Text == text }) {
				list[blank] = append(list[blank], Value{text, token, math.Exp(float64(logp[token]))})
			}
		}
	}
	return list
}
