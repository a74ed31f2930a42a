package tui

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"infill/infill"
	"infill/samplers"
	"infill/tokenize"
)

// fill is a distinct fill that the chains drew.
type fill struct {
	infill.Fill
	// NewWords is the number of blanks whose fill no fill of higher
	// log-likelihood has: the novelty.
	NewWords int
	// Kept tells that the fill comes from an earlier run, as a favourite may.
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

// value is what a blank was filled with.
type value struct {
	TokenIDs []int
	Text     string
	// Frequency is the share of draws with this value, and Error its standard
	// error between chains, NaN for a single chain.
	Frequency, Error float64
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
	Answer   bool // no chains: Fills and Values have probabilities in the place of shares of draws
	WarmUp   bool // the fills are those of the warm-up, which are no draws
	Rounds   int  // draws of each chain
	Chains   int
	Fills    []fill    // distinct, the most likely first
	Distinct int       // how many there are; Fills holds the best of them
	Values   [][]value // of each blank, the most frequent first
	// LogLikelihoods and Accepted are each chain's history from step 0 on,
	// [chains][steps]; NaN where unknown.
	LogLikelihoods, Accepted [][]float32
	StepSizes                []float64 // by step, empty for samplers without
	Moves                    []move    // of each chain; Step 0 where it has not moved
	WarmUpSteps              int
	// RHat and ESS are those of the log-likelihood after the warm-up, NaN where
	// they are not defined.
	RHat, ESS float64
	// Elapsed is the time of the run so far.
	Elapsed time.Duration
	// Result is what the pipeline made of the run; nil while it runs.
	Result *infill.Result
}

// mostFills is how many fills a snapshot holds: more than anyone reads, and few
// enough to sort for every frame.
const mostFills = 2000

// recorder gathers the steps of one run. It belongs to the sampling goroutine,
// and hands out snapshots.
type recorder struct {
	snapshot // of the last step, but for what is counted
	start    time.Time
	now      func() time.Time
	slots    int
	found    []fill  // distinct
	fills    tally   // of found
	values   []tally // of each blank
	tokens   []int   // the last states, [chains × slots]
	history  []int   // the entry of fills, [rounds × chains]
}

func newRecorder(template *tokenize.Template, o infill.Options, now func() time.Time) *recorder {
	r := &recorder{now: now, start: now(), slots: len(template.Slots), snapshot: snapshot{Template: template, Options: o, Chains: o.Chains,
		Moves: make([]move, o.Chains), LogLikelihoods: make([][]float32, o.Chains), Accepted: make([][]float32, o.Chains)}}
	r.forget()
	return r
}

// forget drops the counts, as at the end of the warm-up.
func (r *recorder) forget() {
	r.found, r.Rounds, r.history, r.fills = nil, 0, nil, newTally()
	r.values = nil
	for range r.Template.Blanks {
		r.values = append(r.values, newTally())
	}
}

// add records one step.
func (r *recorder) add(p infill.Progress) {
	if r.WarmUp && !p.WarmUp {
		r.forget()
	}
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
		if r.tokens != nil && p.Changed != nil && p.Changed[chain] > 0 {
			r.move(chain, p)
		}
	}
	if p.StepSize > 0 {
		r.StepSizes = append(r.StepSizes, p.StepSize)
	}
	r.tokens = p.TokenIDs
	if p.Step > 0 || p.WarmUp {
		r.draw(p.LogLikelihoods)
	}
}

// draw counts the present states.
func (r *recorder) draw(logLikelihoods []float64) {
	r.Rounds++
	for chain := range r.Chains {
		ids := r.tokens[chain*r.slots : (chain+1)*r.slots]
		entry := r.fills.add(ids, chain)
		if entry == len(r.found) {
			filled := r.Template.Fill(ids)
			r.found = append(r.found, fill{Fill: infill.Fill{Text: filled.Text, Values: filled.Fills, Spans: filled.Spans,
				TokenIDs: r.fills.ids[entry], LogLikelihood: logLikelihoods[chain]}})
		}
		f := &r.found[entry]
		if math.IsNaN(f.LogLikelihood) {
			f.LogLikelihood = logLikelihoods[chain]
		}
		r.history = append(r.history, entry)
		for blank, b := range r.Template.Blanks {
			v := &r.values[blank]
			if at := v.add(ids[b.First:b.First+b.Slots], chain); at == len(v.texts) {
				v.texts = append(v.texts, f.Values[blank])
			}
		}
	}
}

// tally counts what the chains draw: whole fills, or the values of a blank.
type tally struct {
	index   map[string]int
	ids     [][]int
	texts   []string // of the values
	counts  []int
	met     []int          // how many chains met it
	squares []float64      // Σ over chains of the count's square
	byChain map[[2]int]int // entry and chain
	buffer  []byte
}

func newTally() tally { return tally{index: map[string]int{}, byChain: map[[2]int]int{}} }

// entry finds tokens among those counted, and makes a place for new ones.
func (t *tally) entry(ids []int) int {
	t.buffer = t.buffer[:0]
	for _, id := range ids {
		t.buffer = binary.LittleEndian.AppendUint32(t.buffer, uint32(id))
	}
	entry, known := t.index[string(t.buffer)]
	if !known {
		entry = len(t.counts)
		t.index[string(t.buffer)] = entry
		t.ids, t.counts, t.met, t.squares = append(t.ids, slices.Clone(ids)), append(t.counts, 0), append(t.met, 0), append(t.squares, 0)
	}
	return entry
}

// add counts one draw of a chain.
func (t *tally) add(ids []int, chain int) (entry int) {
	entry = t.entry(ids)
	k := [2]int{entry, chain}
	n := t.byChain[k]
	if t.byChain[k] = n + 1; n == 0 {
		t.met[entry]++
	}
	t.counts[entry]++
	t.squares[entry] += float64(2*n + 1)
	return entry
}

// share of an entry in the draws, with its standard error from the spread of the
// chains' own shares n_c/rounds: chains are independent, the states of one chain
// are not. It is NaN for a single chain.
func (t *tally) share(entry, chains, rounds int) (share, standardError float64) {
	c, n := float64(chains), float64(t.counts[entry])
	share = n / (c * float64(rounds))
	if chains < 2 {
		return share, math.NaN()
	}
	variance := max(t.squares[entry]/c-n/c*n/c, 0) * c / (c - 1)
	return share, math.Sqrt(variance/c) / float64(rounds)
}

// move notes what a chain changed in a step.
func (r *recorder) move(chain int, p infill.Progress) {
	was := r.Template.Fill(r.tokens[chain*r.slots : (chain+1)*r.slots]).Fills
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

// unknown returns the fills whose log-likelihood the sampler did not need.
func (r *recorder) unknown() (entries []int, ids [][]int) {
	for entry, f := range r.found {
		if math.IsNaN(f.LogLikelihood) {
			entries, ids = append(entries, entry), append(ids, f.TokenIDs)
		}
	}
	return entries, ids
}

// learn takes log-likelihoods for the fills that unknown named, and writes them
// into the chains' histories.
func (r *recorder) learn(entries []int, logLikelihoods []float64) {
	for i, entry := range entries {
		r.found[entry].LogLikelihood = logLikelihoods[i]
	}
	first := len(r.LogLikelihoods[0]) - r.Rounds
	for chain := range r.Chains {
		// Snapshots share the arrays: a new one, not a change of the old.
		history := slices.Clone(r.LogLikelihoods[chain])
		for round := range r.Rounds {
			if step := first + round; math.IsNaN(float64(history[step])) {
				history[step] = float32(r.found[r.history[round*r.Chains+chain]].LogLikelihood)
			}
		}
		r.LogLikelihoods[chain] = history
	}
}

// finish makes the last states the draws where nothing followed the warm-up.
func (r *recorder) finish() {
	if !r.WarmUp && r.Rounds > 0 || r.tokens == nil {
		return
	}
	r.forget()
	r.WarmUp = false
	last := make([]float64, r.Chains)
	for chain, history := range r.LogLikelihoods {
		last[chain] = float64(history[len(history)-1])
	}
	r.draw(last)
}

// adopt takes in what the pipeline found where no step showed it: of the best of a
// chain, its start may be the best.
func (r *recorder) adopt(found []infill.Fill) {
	for _, f := range found {
		if r.fills.entry(f.TokenIDs) == len(r.found) {
			r.found = append(r.found, fill{Fill: f})
		}
	}
}

// snap copies what the screen needs.
func (r *recorder) snap() *snapshot {
	s := r.snapshot
	s.Distinct, s.Elapsed, s.RHat, s.ESS = len(r.found), r.now().Sub(r.start), math.NaN(), math.NaN()
	s.Moves, s.LogLikelihoods, s.Accepted = slices.Clone(r.Moves), slices.Clone(r.LogLikelihoods), slices.Clone(r.Accepted)
	// What was not drawn from the distribution has no share of draws.
	drawn := r.Options.Mode == infill.ModeSample
	shares := func(t *tally, entry int) (share, standardError float64) {
		if !drawn {
			return math.NaN(), math.NaN()
		}
		return t.share(entry, r.Chains, r.Rounds)
	}
	s.Fills = slices.Clone(r.found)
	for entry := range s.Fills {
		f := &s.Fills[entry]
		share, e := shares(&r.fills, entry)
		f.Count, f.FinalCount, f.Frequency, f.FrequencyStandardError = r.fills.counts[entry], 0, share, nil
		// One or two of many chains tell no error between chains: the result has none either.
		if few := r.Chains > 2 && r.fills.met[entry] <= 2; !few && !math.IsNaN(e) {
			f.FrequencyStandardError = &e
		}
	}
	for _, entry := range r.history[max(len(r.history)-r.Chains, 0):] {
		s.Fills[entry].FinalCount++
	}
	slices.SortFunc(s.Fills, func(a, b fill) int {
		return cmp.Or(
			// NaN compares below all numbers: what is not known comes last.
			cmp.Compare(b.LogLikelihood, a.LogLikelihood),
			cmp.Compare(b.Count, a.Count),
			slices.Compare(a.TokenIDs, b.TokenIDs))
	})
	s.Fills = s.Fills[:min(len(s.Fills), mostFills)]
	for i := range s.Fills {
		s.Fills[i].Rank = i + 1
	}
	countNewWords(s.Fills)
	s.Values = make([][]value, len(r.values))
	for blank := range r.values {
		t := &r.values[blank]
		for entry, ids := range t.ids {
			share, e := shares(t, entry)
			s.Values[blank] = append(s.Values[blank], value{ids, t.texts[entry], share, e})
		}
		slices.SortFunc(s.Values[blank], func(a, b value) int {
			return cmp.Or(cmp.Compare(b.Frequency, a.Frequency), slices.Compare(a.TokenIDs, b.TokenIDs))
		})
		s.Values[blank] = s.Values[blank][:min(len(s.Values[blank]), mostFills)]
	}
	if drawn && !r.WarmUp && r.Rounds > 1 {
		draws := make([][]float64, r.Chains)
		for chain, history := range r.LogLikelihoods {
			for _, u := range history[max(len(history)-r.Rounds, 0):] {
				draws[chain] = append(draws[chain], float64(u))
			}
		}
		s.RHat, s.ESS = samplers.SplitRHat(draws), samplers.EffectiveSampleSize(draws)
	}
	return &s
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

// betweenChains is the mean over the chains of the mean of each one's values, with
// its standard error; NaN where a chain has none.
func betweenChains(values [][]float32) (mean, standardError float64) {
	var means []float64
	for _, list := range values {
		mean := 0.0
		if len(list) == 0 {
			mean = math.NaN()
		}
		for _, x := range list {
			mean += float64(x) / float64(len(list))
		}
		means = append(means, mean)
	}
	mean, deviation := stat.MeanStdDev(means, nil)
	return mean, stat.StdErr(deviation, float64(len(means)))
}

// acceptance is the mean share of accepted steps after the warm-up, with its
// standard error between chains; NaN where no step was made, and for samplers
// that take every proposal.
func (s *snapshot) acceptance() (rate, standardError float64) {
	if !samplers.Describe(s.Options.Sampler).Exact {
		return math.NaN(), math.NaN()
	}
	from := s.WarmUpSteps + 1
	if s.WarmUp {
		from = 1
	}
	return betweenChains(since(s.Accepted, from))
}

// meanLogLikelihood is that of the draws, with its standard error between chains.
func (s *snapshot) meanLogLikelihood() (mean, standardError float64) {
	if s.Rounds == 0 {
		return math.NaN(), math.NaN()
	}
	return betweenChains(since(s.LogLikelihoods, len(s.LogLikelihoods[0])-s.Rounds))
}

// since leaves out what each chain had before a step.
func since(histories [][]float32, step int) [][]float32 {
	var list [][]float32
	for _, history := range histories {
		list = append(list, history[min(max(step, 0), len(history)):])
	}
	return list
}

// stepSize is the last one, 0 for samplers that have none.
func (s *snapshot) stepSize() float64 {
	if len(s.StepSizes) == 0 {
		return 0
	}
	return s.StepSizes[len(s.StepSizes)-1]
}
