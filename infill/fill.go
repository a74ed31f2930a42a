package infill

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"infill/lm"
	"infill/samplers"
	"infill/tokenize"
)

// Fill samples the slots of a template and ranks the fills. observe, which may
// be nil, hears the initial states and every step, in order, and delays the run
// while it works; of a decoding it hears the end alone.
//
// A template whose blanks have several possible lengths is filled once for each
// combination of them, see Result.Lengths.
//
// Errors: *OptionError for the options, those that do not fit the template among
// them, *tokenize.InputError for the template; ctx.Err() when the run was
// cancelled, which stops a running call of the model. The same options, template,
// model, machine and number of threads give the same result but for its Seconds,
// whatever was filled before.
func (f *Filler) Fill(ctx context.Context, template string, o Options, observe func(Progress)) (*Result, error) {
	start := time.Now()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	typed, plans, err := f.plans(template, o)
	if err != nil {
		return nil, err
	}
	model, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]*Result, len(plans))
	for i, p := range plans {
		r, err := newRun(ctx, f, model, typed, p, o, i, len(plans))
		if err != nil {
			return nil, cancelled(ctx, err)
		}
		r.observe = observe
		if err := r.sample(ctx); err != nil {
			return nil, cancelled(ctx, err)
		}
		if results[i], err = r.result(ctx); err != nil {
			return nil, cancelled(ctx, err)
		}
	}
	result := results[0]
	if len(plans) > 1 {
		result = merge(plans, results, o)
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

// run is one template of known lengths on its way through the pipeline.
type run struct {
	filler  *Filler
	model   LanguageModel
	typed   *tokenize.Template // as the user wrote it
	options Options            // settled
	adapt   bool               // tune the kernel in the warm-up
	plan
	label   string // of the random streams
	target  lm.Target
	kernel  samplers.Kernel // nil in a decoding
	streams []*rand.Rand
	start   []int // initial states, [chains × variables]
	observe func(Progress)
	// place is the number of this run among those of the template's lengths.
	place, places int

	pool         *pool
	accepted     []float64 // accepted proposals after the warm-up, [chains]
	changed      int       // slots changed after the warm-up, over all chains
	stepSize     float64   // at the end; NaN or 0 for samplers without
	swaps        []float64
	warmAccepted int
	warmChanged  int
	extraRows    int64 // model rows beside the target's
}

// newRun makes a run of a plan, the one of that place among the plans of several
// lengths, which have random numbers of their own.
func newRun(ctx context.Context, f *Filler, model LanguageModel, typed *tokenize.Template, p *plan, o Options, place, places int) (*run, error) {
	r := &run{filler: f, model: model, typed: typed, plan: *p, label: typed.Text, place: place, places: places}
	r.options, r.adapt = o.settled()
	if places > 1 {
		// No template holds a NUL, so no other run's streams are these.
		r.label += "\x00" + fmt.Sprint(r.pieces())
	}
	r.streams = samplers.Streams(o.Seed, r.label, o.Chains)

	logp, err := model.MaskedLogProbabilities(ctx, r.template.IDs, r.template.Slots)
	if err != nil {
		return nil, err
	}
	r.extraRows = 1
	support := make([][]int, len(r.template.Slots))
	weights := make([][]float32, len(r.variables))
	r.variables = slices.Clone(r.variables)
	for n := range r.variables {
		v := &r.variables[n]
		if v.words == nil && !v.listed && o.Candidates < len(v.support) {
			v.support = Candidates(v.support, sumOver(v.slots, logp), o.Candidates)
		}
		weights[n] = v.logWeights(logp)
		for i, slot := range v.slots {
			support[slot] = v.supportOf(i)
		}
	}
	r.target, err = model.NewTarget(r.template.IDs, r.template.Slots, lm.TargetOptions{
		Energy: o.Energy, Gradient: r.options.Gradient, Support: support, Distances: samplers.Describe(o.Sampler).Distances,
	})
	if err != nil {
		return nil, err
	}
	if r.together() != "" {
		if r.target, err = newVariableTarget(r.target, r.variables, r.allowed); err != nil {
			return nil, err
		}
	}
	if o.Mode == ModeDecode {
		return r, nil
	}
	if r.start, err = r.initial(ctx, weights); err != nil {
		return nil, err
	}
	spec, terms := o.spec(), (*rand.Rand)(nil)
	if o.Gradient == lm.Stochastic {
		spec = spec.With("terms", (len(r.template.Slots)+1)/2)
		terms = samplers.Streams(o.Seed, r.label+"\x00terms", 1)[0]
	}
	r.kernel, err = spec.New(r.target, terms)
	return r, err
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

// sample runs the chains and fills the pool.
func (r *run) sample(ctx context.Context) error {
	r.pool = newPool(r.options.Chains, len(r.variables))
	r.accepted = make([]float64, r.options.Chains)
	switch r.options.Mode {
	case ModeBest:
		return r.anneal(ctx)
	case ModeDecode:
		return r.decode(ctx)
	}
	o := r.options
	plan := samplers.Plan{Streams: r.streams, WarmUp: o.WarmUp, Steps: o.Steps - o.WarmUp, Ladder: o.Ladder}
	if plan.Ladder == nil {
		plan.Ladder = []float64{o.Temperature}
	}
	energy := make([]float64, o.Chains)
	draw := func(state *samplers.State) {
		for c, u := range state.Energy {
			energy[c] = u * o.Temperature
		}
		r.pool.add(state.Positions, energy)
	}
	sampled, err := samplers.Sample(ctx, r.kernel, r.start, plan, func(s samplers.Step) error {
		r.report(s, s.StepSize)
		if s.Number > 0 {
			r.count(s)
		}
		if !s.WarmUp && (o.Rank == RankDistinct || s.Number == o.Steps) {
			draw(s.State)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.stepSize, r.swaps = sampled.StepSize, sampled.Swaps
	if len(r.pool.draws) == 0 {
		// Nothing follows the warm-up: its last states are the draws.
		draw(sampled.State)
	}
	return nil
}

// count keeps the books of a step.
func (r *run) count(s samplers.Step) {
	for c, accepted := range s.Info.Accepted {
		switch {
		case s.WarmUp && accepted:
			r.warmAccepted++
		case accepted:
			r.accepted[c]++
		}
		if s.WarmUp {
			r.warmChanged += s.Info.Changed[c]
		} else {
			r.changed += s.Info.Changed[c]
		}
	}
}

// tokens are the ids that a state puts into the slots, [slots].
func (r *run) tokens(state []int) []int {
	return fillSlots(make([]int, len(r.template.Slots)), r.variables, state)
}

// report tells the observer of a step; stepSize is NaN for samplers without.
func (r *run) report(s samplers.Step, stepSize float64) {
	if r.observe == nil {
		return
	}
	p := Progress{
		Template:       r.typed.Text,
		Step:           r.place*r.options.Steps + s.Number,
		Steps:          r.places * r.options.Steps,
		WarmUp:         s.WarmUp && r.options.WarmUp > 0,
		Pieces:         r.pieces(),
		TokenIDs:       make([]int, 0, s.State.Chains()*len(r.template.Slots)),
		LogLikelihoods: make([]float64, s.State.Chains()),
	}
	if !math.IsNaN(stepSize) {
		p.StepSize = stepSize
	}
	for c, u := range s.State.Energy {
		p.TokenIDs = append(p.TokenIDs, r.tokens(s.State.Position(c))...)
		p.LogLikelihoods[c] = u * s.Temperature
	}
	if s.Info != nil {
		p.Accepted, p.Changed = slices.Clone(s.Info.Accepted), slices.Clone(s.Info.Changed)
	}
	r.observe(p)
}

// result ranks the pool. Of several lengths it rates more fills than are asked
// for, since the order by score is another than that by likelihood.
func (r *run) result(ctx context.Context) (*Result, error) {
	if err := r.pool.evaluate(ctx, r.target); err != nil {
		return nil, err
	}
	model := r.filler.Model()
	result := &Result{
		Template: r.typed.Text,
		Model:    model,
		Seed:     r.options.Seed,
		Stats:    r.stats(model.Device),
		Blanks:   make([][2]int, len(r.typed.Blanks)),
	}
	for i, blank := range r.typed.Blanks {
		result.Blanks[i] = [2]int{blank.Start, blank.End}
	}
	if math.IsNaN(result.Stats.MeanLogLikelihood) || math.IsInf(result.Stats.MeanLogLikelihood, 0) {
		return nil, fmt.Errorf("model %s gives a drawn fill the log-likelihood %v: its weights may be unusable", model.Name, result.Stats.MeanLogLikelihood)
	}
	top := r.options.Top
	if r.places > 1 {
		top = max(4*top, 50)
	}
	var order []ranked
	if r.options.Rank == RankFinal {
		order = r.pool.finals(top)
	} else {
		order = r.legible(r.pool.distinct(), top)
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
		fill := Fill{
			Rank: i + 1, Text: filled.Text, Values: filled.Fills, Spans: filled.Spans, TokenIDs: ids,
			LogLikelihood: r.pool.energy[entry.fill],
			Count:         counts[entry.fill],
			FinalCount:    finalCounts[entry.fill],
		}
		if r.options.Mode == ModeSample {
			for c := range frequencies[i] {
				frequencies[i][c] /= rounds
			}
			fill.Frequency = float64(fill.Count) / float64(len(r.pool.draws))
			_, fill.FrequencyStandardError = meanAndError(frequencies[i])
		}
		if r.places > 1 {
			score, err := r.score(ctx, ids)
			if err != nil {
				return nil, err
			}
			fill.Pieces, fill.Score = r.pieces(), &score
		}
		result.Fills = append(result.Fills, fill)
	}
	result.Stats.ModelRows = r.target.Counts().Rows + r.extraRows // with what scoring took
	result.Signature = r.signature(model)
	result.Warnings = r.warnings(result)
	return result, nil
}

// legible keeps the best fills that read differently: "un" "##seen" and "uns"
// "##een" give one text, of which the likelier stays.
func (r *run) legible(order []ranked, top int) []ranked {
	var kept []ranked
	seen := map[string]bool{}
	for _, entry := range order {
		if len(kept) == top {
			break
		}
		if text := r.template.Fill(r.tokens(r.pool.state(entry.fill))).Text; !seen[text] {
			seen[text] = true
			kept = append(kept, entry)
		}
	}
	return kept
}

func (r *run) stats(device string) Stats {
	o := r.options
	s := Stats{
		Mode: o.Mode, Sampler: o.Sampler, Slots: len(r.variables), Chains: o.Chains, Steps: o.Steps,
		WarmUp: WarmUp{Steps: o.WarmUp},
		Draws:  len(r.pool.draws), DistinctFills: len(r.pool.energy),
		Device: device,
	}
	s.StepSize = finite(r.stepSize)
	if o.Mode != ModeSample {
		s.Law = NoLaw
	}
	if o.Ladder != nil {
		s.Ladder, s.SwapRates = o.Ladder, r.swaps
	}
	if o.Mode == ModeDecode {
		s.Sampler, s.Steps = "mask-predict", r.rounds()
	}
	chains := float64(o.Chains)
	if steps := float64(o.Steps - o.WarmUp); steps > 0 && o.Mode != ModeDecode {
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

// finite is a step size as a result holds it: nil for none, and for +Inf, which JSON
// has no word for: adaptation may find that no penalty at all is best.
func finite(size float64) *float64 {
	if size > 0 && !math.IsInf(size, 1) {
		return &size
	}
	return nil
}

// adjusted tells whether a sampler accepts or rejects, so that a rate of
// acceptance says something.
func adjusted(sampler string) bool { return samplers.Describe(sampler).Exact }

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
	} else if s.ChangedSlotsPerStep == 0 && s.Steps > s.WarmUp.Steps && s.Mode != ModeDecode {
		warnings = append(warnings, "no slot changed after the warm-up: the fills are those that the chains had reached by then")
	}
	if w := tooFew(len(result.Fills), r.options.Top); w != "" && r.places == 1 {
		warnings = append(warnings, w)
	}
	return warnings
}

func tooFew(found, wanted int) string {
	if found >= wanted {
		return ""
	}
	return fmt.Sprintf("%d fills were asked for and %d found: draw more (samples, steps), or raise the temperature", wanted, found)
}
