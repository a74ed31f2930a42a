package infill

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"infill/samplers"
	"infill/tokenize"
)

// Fill samples the slots of a template and ranks the fills. observe, which may
// be nil, hears the initial states and every step, in order, and delays the run
// while it works.
//
// Errors: *OptionError for the options, *tokenize.InputError for the template;
// ctx.Err() when the run was cancelled, which stops a running call of the model.
// The same options, template, model, machine and number of threads give the same
// result but for its Seconds, whatever was filled before.
func (f *Filler) Fill(ctx context.Context, template string, o Options, observe func(Progress)) (*Result, error) {
	return f.fill(ctx, template, nil, o, observe)
}

// fill is Fill with pinned slots, see [Filler.FillPinned].
func (f *Filler) fill(ctx context.Context, template string, pins []int, o Options, observe func(Progress)) (*Result, error) {
	start := time.Now()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	parsed, err := f.Template(template)
	if err != nil {
		return nil, err
	}
	if err := f.checkPins(parsed, pins); err != nil {
		return nil, err
	}
	if err := checkTies(parsed, pins, o.Sampler); err != nil {
		return nil, err
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := newRun(ctx, f, model, parsed, pins, o)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	r.observe = observe
	if err := r.sample(ctx); err != nil {
		return nil, cancelled(ctx, err)
	}
	result, err := r.result(ctx)
	if err != nil {
		return nil, cancelled(ctx, err)
	}
	result.Stats.Seconds = time.Since(start).Seconds()
	return result, nil
}

// cancelled gives the plain reason of a run that was called off, without the
// place it happened to be at.
func cancelled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// run is one template on its way through the pipeline.
type run struct {
	filler   *Filler
	model    Model
	template *tokenize.Template
	options  Options // settled
	adapt    bool    // tune the kernel in the warm-up
	// variables are what the chains move, see the function; without slots of
	// one name they are the slots.
	variables [][]int // slots, [variables][slots]
	support   [][]int // token ids, [variables][categories]
	target    Target
	kernel    samplers.Kernel
	streams   []*rand.Rand
	start     []int // initial states, [chains × variables]
	observe   func(Progress)

	pool         *pool
	accepted     []float64 // accepted proposals after the warm-up, [chains]
	changed      int       // slots changed after the warm-up, over all chains
	warmAccepted int
	warmChanged  int
	extraRows    int64 // model rows beside the target's
}

func newRun(ctx context.Context, f *Filler, model Model, template *tokenize.Template, pins []int, o Options) (*run, error) {
	r := &run{filler: f, model: model, template: template}
	r.options, r.adapt = o.settled()
	r.streams = samplers.Streams(o.Seed, template.Text, o.Samples)

	logp, err := model.MaskedLogProbabilities(ctx, template.IDs, template.Slots)
	if err != nil {
		return nil, err
	}
	r.extraRows = 1
	r.variables = variables(len(template.Slots), template.Ties)
	logp = sumOver(r.variables, logp)
	r.support = make([][]int, len(r.variables))
	bySlot := make([][]int, len(template.Slots))
	for v, slots := range r.variables {
		if r.support[v] = Candidates(f.fillable, logp[v], o.Candidates); pins != nil && pins[slots[0]] != Free {
			r.support[v] = []int{pins[slots[0]]}
		}
		for _, slot := range slots {
			bySlot[slot] = r.support[v]
		}
	}
	if o.Initial == "shared" {
		// Its own stream: the chains' are for their steps alone.
		r.start = slices.Repeat(initial(o.Initial, r.support, logp, samplers.Streams(o.Seed, template.Text+"\x00start", 1)), o.Samples)
	} else {
		r.start = initial(o.Initial, r.support, logp, r.streams)
	}

	r.target, err = model.NewTarget(template.IDs, template.Slots, TargetOptions{
		Energy: o.Energy, Gradient: r.options.Gradient, Support: bySlot, Distances: presets()[o.Sampler].metric,
	})
	if err != nil {
		return nil, err
	}
	if len(template.Ties) > 0 {
		if r.target, err = newTiedTarget(r.target, r.variables); err != nil {
			return nil, err
		}
	}
	settings := samplers.Options{StepSize: r.options.StepSize, Temperature: o.Temperature}
	if r.options.Balance != "" {
		if settings.Balance, err = samplers.ParseBalance(r.options.Balance); err != nil {
			return nil, &OptionError{"balance", err.Error()}
		}
	}
	if r.options.Gradient == "stochastic" {
		settings.Terms = (len(template.Slots) + 1) / 2
		// No template holds a NUL, so no chain's stream is this one.
		settings.TermStream = samplers.Streams(o.Seed, template.Text+"\x00terms", 1)[0]
	}
	r.kernel, err = samplers.New(o.Sampler, r.target, settings)
	return r, err
}

// Candidates returns the tokens that a slot may take, ascending: all fillable
// ones, or the given number of those the model finds most probable. Equal
// probabilities go to the smaller id.
func Candidates(fillable []int, logp []float32, number int) []int {
	if number == 0 || number >= len(fillable) {
		return fillable
	}
	best := leastOnTop{logp: logp, tokens: slices.Clone(fillable[:number])}
	heap.Init(&best)
	for _, token := range fillable[number:] {
		// Tokens come in ascending order, so an equal one loses.
		if logp[token] > logp[best.tokens[0]] {
			best.tokens[0] = token
			heap.Fix(&best, 0)
		}
	}
	slices.Sort(best.tokens)
	return best.tokens
}

// leastOnTop is a heap with the token on top that is to go first: the least
// probable, of equals the one of largest id.
type leastOnTop struct {
	logp   []float32
	tokens []int
}

var _ heap.Interface = (*leastOnTop)(nil)

func (h *leastOnTop) Len() int { return len(h.tokens) }
func (h *leastOnTop) Less(i, j int) bool {
	a, b := h.tokens[i], h.tokens[j]
	return h.logp[a] < h.logp[b] || h.logp[a] == h.logp[b] && a > b
}
func (h *leastOnTop) Swap(i, j int) { h.tokens[i], h.tokens[j] = h.tokens[j], h.tokens[i] }
func (h *leastOnTop) Push(x any)    { h.tokens = append(h.tokens, x.(int)) }
func (h *leastOnTop) Pop() any {
	last := h.tokens[len(h.tokens)-1]
	h.tokens = h.tokens[:len(h.tokens)-1]
	return last
}

// initial draws where the chains start, [chains × slots], each with its own stream.
func initial(how string, support [][]int, logp [][]float32, streams []*rand.Rand) []int {
	slots := len(support)
	start := make([]int, len(streams)*slots)
	var cumulative []float64
	for slot, tokens := range support {
		if how != "random" {
			// Shifted by the largest value, so that no slot underflows to nothing.
			highest := math.Inf(-1)
			for _, token := range tokens {
				highest = max(highest, float64(logp[slot][token]))
			}
			cumulative = cumulative[:0]
			sum := 0.0
			for _, token := range tokens {
				sum += math.Exp(float64(logp[slot][token]) - highest)
				cumulative = append(cumulative, sum)
			}
		}
		for chain, stream := range streams {
			category := 0
			if how != "random" {
				u := stream.Float64() * cumulative[len(cumulative)-1]
				// The first category whose sum is above u: never one of weight 0.
				category, _ = slices.BinarySearchFunc(cumulative, u, func(c, u float64) int {
					if c <= u {
						return -1
					}
					return 1
				})
				category = min(category, len(tokens)-1)
			} else {
				category = stream.IntN(len(tokens))
			}
			start[chain*slots+slot] = category
		}
	}
	return start
}

// sample runs the chains and fills the pool.
func (r *run) sample(ctx context.Context) error {
	chains := r.options.Samples
	state, err := r.kernel.Init(ctx, r.start)
	if err != nil {
		return err
	}
	r.pool = newPool(chains, len(r.variables))
	r.accepted = make([]float64, chains)
	r.report(0, state, nil)

	var adaptation samplers.Adaptation // nil: nothing to tune
	if r.adapt {
		if adaptation, err = samplers.AdaptationFor(r.options.Sampler, r.kernel); err != nil {
			return err
		}
	}
	if adaptation != nil {
		if err := adaptation.Begin(r.kernel, state); err != nil {
			return err
		}
	}
	energy := make([]float64, chains)
	draw := func(state *samplers.State) {
		for c, u := range state.Energy {
			energy[c] = u * r.options.Temperature
		}
		r.pool.add(state.Positions, energy)
	}
	err = samplers.Run(ctx, r.kernel, state, r.streams, r.options.Steps, func(step int, state *samplers.State, info *samplers.Info) error {
		r.report(step, state, info)
		if step <= r.options.WarmUp {
			for c, accepted := range info.Accepted {
				if accepted {
					r.warmAccepted++
				}
				r.warmChanged += info.Changed[c]
			}
			if adaptation == nil {
				return nil
			}
			if err := adaptation.Adapt(r.kernel, state, info); err != nil || step < r.options.WarmUp {
				return err
			}
			return adaptation.Freeze(r.kernel)
		}
		for c, accepted := range info.Accepted {
			if accepted {
				r.accepted[c]++
			}
			r.changed += info.Changed[c]
		}
		if r.options.Rank == "distinct" || step == r.options.Steps {
			draw(state)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(r.pool.draws) == 0 {
		// Nothing follows the warm-up: its last states are the draws.
		draw(state)
	}
	return nil
}

// tokens are the ids that a state puts into the slots, [slots].
func (r *run) tokens(state []int) []int {
	ids := make([]int, len(r.template.Slots))
	for v, category := range state {
		for _, slot := range r.variables[v] {
			ids[slot] = r.support[v][category]
		}
	}
	return ids
}

// report tells the observer of a step; step 0 has no info.
func (r *run) report(step int, state *samplers.State, info *samplers.Info) {
	if r.observe == nil {
		return
	}
	p := Progress{
		Template:       r.template.Text,
		Step:           step,
		Steps:          r.options.Steps,
		WarmUp:         step <= r.options.WarmUp && r.options.WarmUp > 0,
		TokenIDs:       make([]int, 0, state.Chains()*len(r.template.Slots)),
		LogLikelihoods: make([]float64, state.Chains()),
	}
	for c, u := range state.Energy {
		p.TokenIDs = append(p.TokenIDs, r.tokens(state.Position(c))...)
		p.LogLikelihoods[c] = u * r.options.Temperature
	}
	if info != nil {
		p.Accepted, p.Changed = slices.Clone(info.Accepted), slices.Clone(info.Changed)
	}
	if sizer, ok := r.kernel.(samplers.StepSizer); ok {
		p.StepSize = sizer.StepSize()
	}
	r.observe(p)
}

// result ranks the pool.
func (r *run) result(ctx context.Context) (*Result, error) {
	if err := r.pool.evaluate(ctx, r.target); err != nil {
		return nil, err
	}
	description := r.model.Description()
	result := &Result{
		Template: r.template.Text,
		Model:    ModelInfo{Name: description.Name, SHA256: description.SHA256},
		Seed:     r.options.Seed,
		Stats:    r.stats(description),
		Blanks:   make([][2]int, len(r.template.Blanks)),
	}
	for i, blank := range r.template.Blanks {
		result.Blanks[i] = [2]int{blank.Start, blank.End}
	}
	if math.IsNaN(result.Stats.MeanLogLikelihood) || math.IsInf(result.Stats.MeanLogLikelihood, 0) {
		return nil, fmt.Errorf("model %s gives a drawn fill the log-likelihood %v: its weights may be unusable", description.Name, result.Stats.MeanLogLikelihood)
	}
	var order []ranked
	if r.options.Rank == "final" {
		order = r.pool.finals(r.options.Top)
	} else {
		order = r.legible(r.pool.distinct())
	}
	counts := r.pool.counts()
	finalCounts := make([]int, len(counts))
	for _, fill := range r.pool.final() {
		finalCounts[fill]++
	}
	rounds := float64(len(r.pool.draws) / r.pool.chains)
	frequencies := r.pool.byChain(order)
	for i, entry := range order {
		ids := r.tokens(r.pool.state(entry.fill))
		filled := r.template.Fill(ids)
		for c := range frequencies[i] {
			frequencies[i][c] /= rounds
		}
		_, standardError := meanAndError(frequencies[i])
		result.Samples = append(result.Samples, Sample{
			Rank: i + 1, Text: filled.Text, Fills: filled.Fills, Spans: filled.Spans, TokenIDs: ids,
			LogLikelihood:          r.pool.energy[entry.fill],
			Count:                  counts[entry.fill],
			Frequency:              float64(counts[entry.fill]) / float64(len(r.pool.draws)),
			FrequencyStandardError: standardError,
			FinalCount:             finalCounts[entry.fill],
		})
	}
	result.Signature = r.signature(description)
	result.Warnings = r.warnings(result)
	return result, nil
}

// legible keeps the Top best fills that read differently: in "high[MASK]" the
// tokens "er" and "##er" give one text, of which the likelier stays.
func (r *run) legible(order []ranked) []ranked {
	var kept []ranked
	seen := map[string]bool{}
	for _, entry := range order {
		if len(kept) == r.options.Top {
			break
		}
		if text := r.template.Fill(r.tokens(r.pool.state(entry.fill))).Text; !seen[text] {
			seen[text] = true
			kept = append(kept, entry)
		}
	}
	return kept
}

func (r *run) stats(description Description) Stats {
	o := r.options
	s := Stats{
		Sampler: o.Sampler, Slots: len(r.variables), Chains: o.Samples, Steps: o.Steps,
		WarmUp: WarmUp{Steps: o.WarmUp},
		Draws:  len(r.pool.draws), DistinctFills: len(r.pool.energy),
		Device: description.Device,
	}
	if sizer, ok := r.kernel.(samplers.StepSizer); ok {
		size := sizer.StepSize()
		s.StepSize = &size
	}
	chains := float64(o.Samples)
	if steps := float64(o.Steps - o.WarmUp); steps > 0 {
		rates := slices.Clone(r.accepted)
		for c := range rates {
			rates[c] /= steps
		}
		if adjusted(o.Sampler) {
			rate, standardError := meanAndError(rates)
			s.AcceptanceRate, s.AcceptanceStandardError = &rate, standardError
		}
		s.ChangedSlotsPerStep = float64(r.changed) / steps / chains
	}
	if steps := float64(o.WarmUp); steps > 0 {
		if adjusted(o.Sampler) {
			rate := float64(r.warmAccepted) / steps / chains
			s.WarmUp.AcceptanceRate = &rate
		}
		s.WarmUp.ChangedSlotsPerStep = float64(r.warmChanged) / steps / chains
	}
	s.MeanLogLikelihood, s.MeanLogLikelihoodStandardError = meanAndError(r.pool.meanEnergies())
	counts := r.target.Counts()
	s.EnergyEvaluations, s.GradientEvaluations = counts.EnergyEvaluations, counts.GradientEvaluations
	s.ModelRows = counts.Rows + r.extraRows
	return s
}

// adjusted tells whether a sampler accepts or rejects, so that a rate of
// acceptance says something.
func adjusted(sampler string) bool {
	for _, d := range samplers.Descriptions() {
		if d.Name == sampler {
			return d.Exact
		}
	}
	return false
}

// warnings are what the numbers of a result ask the user to know.
func (r *run) warnings(result *Result) []string {
	warnings := []string{}
	s := result.Stats
	unknown := 0
	for _, id := range r.template.IDs {
		if id == r.filler.tokenizer.UnknownID() {
			unknown++
		}
	}
	if unknown > 0 {
		warnings = append(warnings, fmt.Sprintf("the template has words outside the model's vocabulary (%d), which it reads as [UNK]", unknown))
	}
	if a := s.AcceptanceRate; a != nil && *a < 0.05 {
		warnings = append(warnings, fmt.Sprintf("only %.1f %% of the proposals were accepted: the chains hardly moved; leave the step size to auto, or take a smaller one", 100**a))
	} else if s.ChangedSlotsPerStep == 0 && s.Steps > s.WarmUp.Steps {
		warnings = append(warnings, "no slot changed after the warm-up: the fills are those that the chains had reached by then")
	}
	if len(result.Samples) < r.options.Top {
		warnings = append(warnings, fmt.Sprintf("%d fills were asked for and %d found: draw more (samples, steps), or raise the temperature", r.options.Top, len(result.Samples)))
	}
	return warnings
}
