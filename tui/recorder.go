package tui

import (
	"math"
	"slices"
	"time"

	"infill/infill"
	"infill/tokenize"
)

// fill is a distinct fill that the chains drew.
type fill struct {
	infill.Fill
	// NewWords is the number of blanks whose fill no fill of higher
	// log-likelihood has: the novelty.
	NewWords int
	// Kept reports that the fill comes from an earlier run, as a favourite may.
	Kept bool
}

// key tells fills of one template apart.
func (f *fill) key() string { return f.Text }

// rating is what fills are compared by: the score of those that have one, because
// log-likelihoods of several lengths do not compare.
func (f *fill) rating() float64 {
	if f.Score != nil {
		return *f.Score
	}
	return f.LogLikelihood
}

// shares is what the frequencies of a run are; drawn is the word where they are of draws.
func (s *snapshot) shares(drawn string) string {
	if s != nil && s.Answer {
		return "probability"
	}
	return drawn
}

// move is a chain's last change.
type move struct {
	Step     int
	From, To []string // the fills that changed, and what they became
	Blanks   []int
}

// snapshot is what is known of a run at one moment. Nothing in it changes once it
// is made.
type snapshot struct {
	Template *tokenize.Template
	Options  infill.Options
	Step     int
	Steps    int  // of the whole run
	Several  bool // lengths of fills: Fills are those of Result, and Values and chains are empty
	Answer   bool // no chains: Fills and Values have probabilities instead of shares of draws
	WarmUp   bool // the fills are those of the warm-up, which are no draws
	Rounds   int  // draws of each chain
	Chains   int
	Fills    []fill // distinct, the most likely first
	Distinct int    // how many there are; Fills holds the best of them
	// Values are those of each blank, the most frequent first; NaN if a share or its error is not known.
	Values [][]infill.Marginal
	// LogLikelihoods and Accepted are each chain's history from step 0 on,
	// [chains][steps]; NaN if unknown.
	LogLikelihoods, Accepted [][]float32
	StepSizes                []float64 // by step, empty for samplers without
	Moves                    []move    // of each chain; Step 0 if it has not moved
	WarmUpSteps              int
	// RHat and ESS are those of the log-likelihood after the warm-up, NaN where
	// they are not defined.
	RHat, ESS float64
	// Stats are the pipeline's of what is known.
	Stats infill.Stats
	// Elapsed is the time of the run so far.
	Elapsed time.Duration
	// Result is what the pipeline made of the run; nil while it runs.
	Result *infill.Result
}

// recorder gathers what the screen shows of the steps of one run; what they come to is for
// the pipeline to say. It belongs to the sampling goroutine, and hands out snapshots.
type recorder struct {
	snapshot // of the last step, except for what the pipeline knows
	start    time.Time
	now      func() time.Time
	slots    int
	last     infill.Progress
}

func newRecorder(template *tokenize.Template, o infill.Options, now func() time.Time) *recorder {
	return &recorder{now: now, start: now(), slots: len(template.Slots),
		snapshot: snapshot{Template: template, Options: o, Chains: o.Chains,
			Moves: make([]move, o.Chains), LogLikelihoods: make([][]float32, o.Chains),
			Accepted: make([][]float32, o.Chains)}}
}

// add records one step.
func (r *recorder) add(p infill.Progress) {
	r.WarmUp, r.Step, r.Steps = p.WarmUp, p.Step, p.Steps
	if p.WarmUp {
		r.WarmUpSteps = p.Step
	}
	for chain := range r.Chains {
		r.LogLikelihoods[chain] = append(r.LogLikelihoods[chain], float32(p.LogLikelihoods[chain]))
		accepted := float32(math.NaN())
		if p.Accepted != nil {
			accepted = 0
			if p.Accepted[chain] {
				accepted = 1
			}
		}
		r.Accepted[chain] = append(r.Accepted[chain], accepted)
		if r.last.TokenIDs != nil && p.Changed != nil && p.Changed[chain] > 0 {
			r.move(chain, p)
		}
	}
	if p.StepSize > 0 {
		r.StepSizes = append(r.StepSizes, p.StepSize)
	}
	r.last = p
}

// move notes what a chain changed in a step.
func (r *recorder) move(chain int, p infill.Progress) {
	was := r.Template.Fill(r.last.TokenIDs[chain*r.slots : (chain+1)*r.slots]).Fills
	is := r.Template.Fill(p.TokenIDs[chain*r.slots : (chain+1)*r.slots]).Fills
	m := move{Step: p.Step}
	for blank := range is {
		if was[blank] != is[blank] {
			m.Blanks = append(m.Blanks, blank)
			m.From, m.To = append(m.From, was[blank]), append(m.To, is[blank])
		}
	}
	r.Moves[chain] = m
}

// finish ends the warm-up of a run that is over, and writes the log-likelihoods that the
// sampler did not need, and the pipeline now knows, into the chains' histories.
func (r *recorder) finish() {
	r.WarmUp = false
	if r.last.Result == nil {
		return
	}
	for chain, draws := range r.last.Result().Draws {
		// Snapshots share the arrays: a new one, not a change of the old.
		history := slices.Clone(r.LogLikelihoods[chain])
		tail := history[max(len(history)-len(draws), 0):]
		for i := range tail {
			if u := draws[len(draws)-len(tail)+i]; math.IsNaN(float64(tail[i])) {
				tail[i] = float32(u)
			}
		}
		r.LogLikelihoods[chain] = history
	}
}

// snap copies what the screen needs.
func (r *recorder) snap() *snapshot {
	s := r.snapshot
	s.Elapsed, s.RHat, s.ESS = r.now().Sub(r.start), math.NaN(), math.NaN()
	s.Moves, s.LogLikelihoods, s.Accepted = slices.Clone(r.Moves), slices.Clone(r.LogLikelihoods),
		slices.Clone(r.Accepted)
	if r.last.Result != nil {
		s.know(r.last.Result())
	}
	return &s
}

// know takes in what the pipeline knows.
func (s *snapshot) know(known *infill.Result) {
	s.Stats, s.Distinct = known.Stats, known.Stats.DistinctFills
	if s.Answer || s.Several {
		s.Distinct = len(known.Fills)
	} else {
		s.Rounds = known.Stats.Draws / s.Chains
	}
	for _, f := range known.Fills {
		switch {
		case s.Answer:
			f.Frequency, f.FrequencyStandardError = math.NaN(), nil
			if f.Probability != nil {
				f.Frequency = *f.Probability
			}
			if e := f.ProbabilityError; e != nil && *e > 0 {
				f.FrequencyStandardError = e
			}
		case s.Several: // no one law has been drawn from
			f.Frequency, f.FrequencyStandardError = math.NaN(), nil
		}
		s.Fills = append(s.Fills, fill{Fill: f})
	}
	countNewWords(s.Fills)
	if s.Several {
		return
	}
	for _, marginal := range known.Marginals {
		values := slices.Clone(marginal)
		for i := range values {
			v := &values[i]
			if v.StandardError == 0 && (s.Answer || s.Chains < 2) {
				v.StandardError = math.NaN()
			}
		}
		s.Values = append(s.Values, values)
	}
	if s.Answer || s.WarmUp {
		return
	}
	if r := known.Stats.SplitRHat; r != nil {
		s.RHat = *r
	}
	if n := known.Stats.EffectiveDraws; n != nil {
		s.ESS = *n
	}
}

// countNewWords fills in the novelty of fills, the best first.
func countNewWords(fills []fill) {
	type word struct {
		blank int
		text  string
	}
	seen := map[word]bool{}
	for i := range fills {
		for blank, text := range fills[i].Values {
			if w := (word{blank, text}); !seen[w] {
				seen[w] = true
				fills[i].NewWords++
			}
		}
	}
}

// acceptance is the mean share of accepted steps after the warm-up, or in it while it lasts,
// with its standard error between chains; NaN if no step was made, and for samplers
// that take every proposal.
func (s *snapshot) acceptance() (rate, standardError float64) {
	if s.Stats.AcceptanceRate == nil {
		return math.NaN(), math.NaN()
	}
	return *s.Stats.AcceptanceRate, orNaN(s.Stats.AcceptanceStandardError)
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// stepSize is the last one, 0 for samplers that have none.
func (s *snapshot) stepSize() float64 {
	if len(s.StepSizes) == 0 {
		return 0
	}
	return s.StepSizes[len(s.StepSizes)-1]
}
