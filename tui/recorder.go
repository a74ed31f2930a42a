package tui

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"time"

	"infill/infill"
	"infill/samplers"
	"infill/tokenize"
)

// Fill is a distinct fill that the chains drew.
type Fill struct {
	infill.Fill
	// NewWords is the number of blanks whose fill no fill of higher
	// log-likelihood has: the novelty.
	NewWords int
	// Kept tells that the fill comes from an earlier run, as a favourite may.
	Kept bool
}

// key tells fills of one template apart.
func (f *Fill) key() string { return f.Text }

// Value is what a blank was filled with.
type Value struct {
	TokenIDs []int
	Text     string
	// Frequency is the share of draws with this value, and Error its standard
	// error between chains, NaN for a single chain.
	Frequency, Error float64
}

// Move is a chain's last change.
type Move struct {
	Step     int
	From, To []string // the fills that changed, and what they became
	Blanks   []int
}

// Snapshot is what is known of a run at one moment. Nothing in it changes once it
// is made.
type Snapshot struct {
	Template *tokenize.Template
	Options  infill.Options
	Pins     map[int]pin
	Step     int
	Steps    int  // of the whole run, where that is more than Options.Steps
	Several  bool // lengths of fills: Fills are those of Result, and Values and chains are empty
	WarmUp   bool // the fills are those of the warm-up, which are no draws
	Rounds   int  // draws of each chain
	Chains   int
	Fills    []Fill    // distinct, the most likely first
	Distinct int       // how many there are; Fills holds the best of them
	Values   [][]Value // of each blank, the most frequent first
	// LogLikelihoods and Accepted are each chain's history from step 0 on,
	// [chains][steps]; NaN where unknown.
	LogLikelihoods, Accepted [][]float32
	StepSizes                []float64 // by step, empty for samplers without
	Moves                    []Move    // of each chain; Step 0 where it has not moved
	Current                  [][]string
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
	template *tokenize.Template
	options  infill.Options
	pins     map[int]pin
	start    time.Time
	now      func() time.Time
	chains   int
	slots    int

	fills       []Fill
	index       map[string]int
	squares     []float64 // Σ over chains of the count's square, [fills]
	byChain     map[chainCount]int
	values      []map[string]*valueCount
	rounds      int
	warmUp      bool
	warmUpSteps int
	step        int

	logLikelihoods, accepted [][]float32
	stepSizes                []float64
	moves                    []Move
	tokens                   []int // the last states, [chains × slots]
	history                  []int32
	buffer                   []byte

	mutex  sync.Mutex // guards what follows
	latest chan *Snapshot
}

// chainCount counts a fill (blank -1) or the value of a blank in one chain.
type chainCount struct {
	blank, entry, chain int
}

type valueCount struct {
	entry   int
	ids     []int
	text    string
	count   int
	squares float64
}

func newRecorder(template *tokenize.Template, o infill.Options, pins map[int]pin, now func() time.Time) *recorder {
	r := &recorder{template: template, options: o, pins: pins, now: now, start: now(), chains: o.Chains, slots: len(template.Slots),
		moves: make([]Move, o.Chains), latest: make(chan *Snapshot, 1)}
	r.logLikelihoods = make([][]float32, r.chains)
	r.accepted = make([][]float32, r.chains)
	r.forget()
	return r
}

// forget drops the counts, as at the end of the warm-up.
func (r *recorder) forget() {
	r.fills, r.squares, r.rounds, r.history = nil, nil, 0, nil
	r.index, r.byChain = map[string]int{}, map[chainCount]int{}
	r.values = make([]map[string]*valueCount, len(r.template.Blanks))
	for blank := range r.values {
		r.values[blank] = map[string]*valueCount{}
	}
}

// add records one step.
func (r *recorder) add(p infill.Progress) {
	if r.warmUp && !p.WarmUp {
		r.forget()
	}
	r.warmUp, r.step = p.WarmUp, p.Step
	if p.WarmUp {
		r.warmUpSteps = p.Step
	}
	for chain := range r.chains {
		r.logLikelihoods[chain] = append(r.logLikelihoods[chain], float32(p.LogLikelihoods[chain]))
		accepted := float32(math.NaN())
		if p.Accepted != nil {
			accepted = 0
			if p.Accepted[chain] {
				accepted = 1
			}
		}
		r.accepted[chain] = append(r.accepted[chain], accepted)
		if r.tokens != nil && p.Changed != nil && p.Changed[chain] > 0 {
			r.move(chain, p)
		}
	}
	if p.StepSize > 0 {
		r.stepSizes = append(r.stepSizes, p.StepSize)
	}
	r.tokens = p.TokenIDs
	if p.Step > 0 || p.WarmUp {
		r.draw(p.LogLikelihoods)
	}
}

// draw counts the present states.
func (r *recorder) draw(logLikelihoods []float64) {
	r.rounds++
	for chain := range r.chains {
		ids := r.tokens[chain*r.slots : (chain+1)*r.slots]
		entry, known := r.index[string(r.bytes(ids))]
		if !known {
			entry = len(r.fills)
			r.index[string(r.buffer)] = entry
			filled := r.template.Fill(ids)
			r.fills = append(r.fills, Fill{Fill: infill.Fill{Text: filled.Text, Values: filled.Fills, Spans: filled.Spans,
				TokenIDs: slices.Clone(ids), LogLikelihood: logLikelihoods[chain]}})
			r.squares = append(r.squares, 0)
		}
		f := &r.fills[entry]
		if math.IsNaN(f.LogLikelihood) {
			f.LogLikelihood = logLikelihoods[chain]
		}
		f.Count++
		r.squares[entry] += r.count(chainCount{-1, entry, chain})
		r.history = append(r.history, int32(entry))
		for blank, b := range r.template.Blanks {
			part := ids[b.First : b.First+b.Slots]
			v := r.values[blank][string(r.bytes(part))]
			if v == nil {
				v = &valueCount{entry: len(r.values[blank]), ids: slices.Clone(part), text: f.Values[blank]}
				r.values[blank][string(r.buffer)] = v
			}
			v.count++
			v.squares += r.count(chainCount{blank, v.entry, chain})
		}
	}
}

// count adds one to a chain's count and returns by how much its square grew.
func (r *recorder) count(k chainCount) float64 {
	n := r.byChain[k]
	r.byChain[k] = n + 1
	return float64(2*n + 1)
}

func (r *recorder) bytes(ids []int) []byte {
	r.buffer = r.buffer[:0]
	for _, id := range ids {
		r.buffer = binary.LittleEndian.AppendUint32(r.buffer, uint32(id))
	}
	return r.buffer
}

// move notes what a chain changed in a step.
func (r *recorder) move(chain int, p infill.Progress) {
	was := r.template.Fill(r.tokens[chain*r.slots : (chain+1)*r.slots]).Fills
	is := r.template.Fill(p.TokenIDs[chain*r.slots : (chain+1)*r.slots]).Fills
	m := Move{Step: p.Step}
	for blank := range is {
		if was[blank] != is[blank] {
			m.Blanks = append(m.Blanks, blank)
			m.From, m.To = append(m.From, was[blank]), append(m.To, is[blank])
		}
	}
	r.moves[chain] = m
}

// unknown returns the fills whose log-likelihood the sampler did not need.
func (r *recorder) unknown() (entries []int, ids [][]int) {
	for entry := range r.fills {
		if math.IsNaN(r.fills[entry].LogLikelihood) {
			entries, ids = append(entries, entry), append(ids, r.fills[entry].TokenIDs)
		}
	}
	return entries, ids
}

// learn takes log-likelihoods for the fills that unknown named, and writes them
// into the chains' histories.
func (r *recorder) learn(entries []int, logLikelihoods []float64) {
	for i, entry := range entries {
		r.fills[entry].LogLikelihood = logLikelihoods[i]
	}
	first := len(r.logLikelihoods[0]) - r.rounds
	for chain := range r.chains {
		// Snapshots share the arrays: a new one, not a change of the old.
		history := slices.Clone(r.logLikelihoods[chain])
		for round := range r.rounds {
			if step := first + round; math.IsNaN(float64(history[step])) {
				history[step] = float32(r.fills[r.history[round*r.chains+chain]].LogLikelihood)
			}
		}
		r.logLikelihoods[chain] = history
	}
}

// finish makes the last states the draws where nothing followed the warm-up.
func (r *recorder) finish() {
	if !r.warmUp && r.rounds > 0 || r.tokens == nil {
		return
	}
	r.forget()
	r.warmUp = false
	last := make([]float64, r.chains)
	for chain, history := range r.logLikelihoods {
		last[chain] = float64(history[len(history)-1])
	}
	r.draw(last)
}

// adopt takes in what the pipeline found where no step showed it: of the best of a
// chain, its start may be the best.
func (r *recorder) adopt(found []infill.Fill) {
	for _, f := range found {
		if _, known := r.index[string(r.bytes(f.TokenIDs))]; !known {
			r.index[string(r.buffer)] = len(r.fills)
			f.Count = 0
			r.fills, r.squares = append(r.fills, Fill{Fill: f}), append(r.squares, 0)
		}
	}
}

// publish makes a snapshot the latest; one that was not fetched is dropped.
func (r *recorder) publish(s *Snapshot) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	publish(r.latest, s)
}

func publish(latest chan *Snapshot, s *Snapshot) {
	select {
	case <-latest:
	default:
	}
	latest <- s
}

// snapshot copies what the screen needs.
func (r *recorder) snapshot() *Snapshot {
	s := &Snapshot{Template: r.template, Options: r.options, Pins: r.pins, Step: r.step, WarmUp: r.warmUp, Rounds: r.rounds, Chains: r.chains,
		Distinct: len(r.fills), WarmUpSteps: r.warmUpSteps, Moves: slices.Clone(r.moves), StepSizes: r.stepSizes,
		LogLikelihoods: slices.Clone(r.logLikelihoods), Accepted: slices.Clone(r.accepted), Elapsed: r.now().Sub(r.start)}
	draws := float64(r.rounds * r.chains)
	finals := map[int32]int{}
	if r.rounds > 0 {
		for _, entry := range r.history[len(r.history)-r.chains:] {
			finals[entry]++
		}
	}
	s.Fills = slices.Clone(r.fills)
	for entry := range s.Fills {
		f := &s.Fills[entry]
		f.Frequency = float64(f.Count) / draws
		f.FinalCount = finals[int32(entry)]
		if e := r.standardError(f.Count, r.squares[entry]); !math.IsNaN(e) {
			f.FrequencyStandardError = &e
		}
	}
	// What was not drawn from the distribution has no share of draws.
	drawn := r.options.Mode == infill.ModeSample || r.options.Mode == ""
	if !drawn {
		for i := range s.Fills {
			s.Fills[i].Frequency, s.Fills[i].FrequencyStandardError = math.NaN(), nil
		}
	}
	slices.SortFunc(s.Fills, func(a, b Fill) int {
		return cmp.Or(
			// NaN compares below all numbers: what is not known comes last.
			cmp.Compare(b.LogLikelihood, a.LogLikelihood),
			cmp.Compare(b.Count, a.Count),
			slices.Compare(a.TokenIDs, b.TokenIDs))
	})
	s.Fills = s.Fills[:min(len(s.Fills), mostFills)]
	seen := make([]map[string]bool, len(r.template.Blanks))
	for blank := range seen {
		seen[blank] = map[string]bool{}
	}
	for i := range s.Fills {
		s.Fills[i].Rank = i + 1
		for blank, fill := range s.Fills[i].Values {
			if !seen[blank][fill] {
				seen[blank][fill] = true
				s.Fills[i].NewWords++
			}
		}
	}
	s.Values = make([][]Value, len(r.values))
	for blank, values := range r.values {
		for _, v := range values {
			s.Values[blank] = append(s.Values[blank], Value{v.ids, v.text, float64(v.count) / draws, r.standardError(v.count, v.squares)})
		}
		slices.SortFunc(s.Values[blank], func(a, b Value) int {
			return cmp.Or(cmp.Compare(b.Frequency, a.Frequency), slices.Compare(a.TokenIDs, b.TokenIDs))
		})
		if !drawn {
			for i := range s.Values[blank] {
				s.Values[blank][i].Frequency, s.Values[blank][i].Error = math.NaN(), math.NaN()
			}
		}
		s.Values[blank] = s.Values[blank][:min(len(s.Values[blank]), mostFills)]
	}
	for chain := range r.chains {
		if r.tokens != nil {
			s.Current = append(s.Current, r.template.Fill(r.tokens[chain*r.slots:(chain+1)*r.slots]).Fills)
		}
	}
	s.RHat, s.ESS = math.NaN(), math.NaN()
	if drawn && !r.warmUp && r.rounds > 1 {
		draws := make([][]float64, r.chains)
		for chain, history := range r.logLikelihoods {
			for _, u := range history[max(len(history)-r.rounds, 0):] {
				draws[chain] = append(draws[chain], float64(u))
			}
		}
		s.RHat, s.ESS = samplers.SplitRHat(draws), samplers.EffectiveSampleSize(draws)
	}
	return s
}

// standardError of a share of the draws, from the spread of the chains' own
// shares n_c/rounds: chains are independent, the states of one chain are not.
func (r *recorder) standardError(count int, squares float64) float64 {
	chains, rounds := float64(r.chains), float64(r.rounds)
	if r.chains < 2 {
		return math.NaN()
	}
	mean := float64(count) / chains
	variance := max(squares/chains-mean*mean, 0) * chains / (chains - 1)
	return math.Sqrt(variance/chains) / rounds
}

// acceptance is the mean share of accepted steps after the warm-up, with its
// standard error between chains; NaN where no
// step was made, and for samplers that take every proposal.
func (s *Snapshot) acceptance() (rate, standardError float64) {
	if len(s.Accepted) == 0 || !hasRejections(s.Options.Sampler) {
		return math.NaN(), math.NaN()
	}
	sum, squares, n := 0.0, 0.0, float64(len(s.Accepted))
	for _, history := range s.Accepted {
		from := s.WarmUpSteps + 1
		if s.WarmUp {
			from = 1
		}
		if from >= len(history) {
			return math.NaN(), math.NaN()
		}
		mean := 0.0
		for _, a := range history[from:] {
			mean += float64(a) / float64(len(history)-from)
		}
		sum += mean
		squares += mean * mean
	}
	rate = sum / n
	if n < 2 {
		return rate, math.NaN()
	}
	return rate, math.Sqrt(max(squares/n-rate*rate, 0) / (n - 1))
}
