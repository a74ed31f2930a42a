package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"infill/lm"
	"infill/samplers"
)

// chainRun is the method that moves Markov chains over the slots of a layout.
type chainRun struct {
	work        *work
	options     Chains // as Chains.settled returns them
	chains      int
	layout      *layout
	variables   []variable
	target      lm.Target
	temperature float64
	kernel      samplers.Kernel
	streams     []*rand.Rand
	// pool holds the states that count as draws. early holds states that do not count: those of the warm-up, or all but
	// the final states if only final states count. Observers see early while early is not nil.
	pool, early *pool
	warming     bool // whether early holds states of the warm-up
	// books count the steps of the warm-up (books[0]), and the steps after it (books[1]).
	books    [2]book
	stepSize float64 // after the last step; NaN or 0 if the sampler has no step size
	step     int
}

// book counts steps of the chains, and the changed slots and accepted proposals in these steps.
type book struct {
	steps    int
	changed  int
	accepted []float64 // accepted proposals, [chains]
}

// count adds the step that info describes.
func (b *book) count(info *samplers.Info) {
	b.steps++
	for c, accepted := range info.Accepted {
		if accepted {
			b.accepted[c]++
		}
		b.changed += info.Changed[c]
	}
}

func (c *chainRun) solve(ctx context.Context, w *work) error {
	start, err := c.prepare(ctx, w)
	if err != nil {
		return err
	}
	w.answer.place = "before the first step"
	o := w.plan.Options
	plan := samplers.Plan{Streams: c.streams, WarmUp: c.options.WarmUp, Steps: c.options.Steps - c.options.WarmUp}
	end, err := samplers.Sample(ctx, c.kernel, start, plan, func(at samplers.Step) error {
		c.observe(at, !at.WarmUp && (o.Rank == rankDistinct || at.Number == c.options.Steps))
		return nil
	})
	if err != nil {
		c.interrupted(ctx)
		return err
	}
	c.stepSize, c.early = end.StepSize, nil
	if len(c.pool.draws) == 0 {
		// Nothing follows the warm-up: its last states are the draws.
		c.pool.add(end.State, c.temperature)
	}
	if err := c.pool.evaluate(ctx, c.target); err != nil {
		c.interrupted(ctx)
		return err
	}
	order := c.report(o.Top)
	if u := w.answer.chains.MeanLogLikelihood; math.IsNaN(u) || math.IsInf(u, 0) {
		return fmt.Errorf("model %s gives a drawn fill the log-likelihood %v: its weights may be unusable",
			w.plan.filler.Model().Name, u)
	}
	c.pool.believe(&w.answer, order)
	return nil
}

// prepare makes the target and the kernel, and returns the starts of the chains, [chains × variables].
func (c *chainRun) prepare(ctx context.Context, w *work) ([]int, error) {
	o := &w.plan.Options
	*c = chainRun{work: w, options: o.Chains.settled(), chains: w.plan.chains(), layout: w.plan.layouts[0],
		temperature: o.Temperature}
	c.variables = c.layout.variables(w.roots[0], c.options.Candidates)
	for n := range c.variables {
		if c.variables[n].categories() == 0 {
			return nil, errNoFill
		}
	}
	var err error
	c.target, err = newTarget(w.model, c.layout, c.variables,
		lm.TargetOptions{Energy: c.options.Energy, Gradient: c.options.Gradient})
	if err != nil {
		return nil, err
	}
	c.pool = newPool(c.chains, len(c.variables))
	for i := range c.books {
		c.books[i].accepted = make([]float64, c.chains)
	}
	c.streams = samplers.Streams(o.Seed, w.plan.Template, c.chains)
	start, err := c.initial(ctx)
	if err != nil {
		return nil, err
	}
	target := samplers.Target(c.target)
	if c.temperature != 1 {
		if target, err = samplers.Temper(target, c.temperature); err != nil {
			return nil, err
		}
	}
	c.kernel, err = o.Chains.spec().New(target, nil)
	if err != nil && (o.Chains.Settings != nil || errors.Is(err, samplers.ErrUnsupported)) {
		return nil, misfit("sampler", "%v", err)
	}
	return start, err
}

// observe counts the step in a book. It adds the states to pool if they count as draws, else to early.
func (c *chainRun) observe(at samplers.Step, counts bool) {
	c.step, c.stepSize = at.Number, at.StepSize
	warming := at.WarmUp && c.options.WarmUp > 0
	if at.Number > 0 {
		book := &c.books[1]
		if at.WarmUp {
			book = &c.books[0]
		}
		book.count(at.Info)
	}
	if counts {
		c.early = nil
		c.pool.add(at.State, c.temperature)
	} else {
		if c.early == nil || c.warming != warming {
			c.early, c.warming = newPool(c.chains, len(c.variables)), warming
		}
		c.early.add(at.State, c.temperature)
	}
	if observe := c.work.observe; observe != nil {
		observe(c.progress(at, warming))
	}
}

// progress describes the step at for the observer.
func (c *chainRun) progress(at samplers.Step, warming bool) Progress {
	p := Progress{Template: c.work.plan.Template, Step: at.Number, Steps: c.options.Steps, WarmUp: warming,
		Pieces: c.layout.pieces(), TokenIDs: make([]int, 0, c.chains*len(c.layout.slots)),
		LogLikelihoods: make([]float64, c.chains), Result: c.known}
	if !math.IsNaN(at.StepSize) {
		p.StepSize = at.StepSize
	}
	for chain, u := range at.State.Energy {
		p.TokenIDs = append(p.TokenIDs, c.tokens(at.State.Position(chain))...)
		p.LogLikelihoods[chain] = u * c.temperature
	}
	if at.Info != nil {
		p.Accepted, p.Changed = slices.Clone(at.Info.Accepted), slices.Clone(at.Info.Changed)
	}
	return p
}

// tokens returns the token ids that a state puts into the slots, [slots].
func (c *chainRun) tokens(state []int) []int {
	return fillSlots(make([]int, len(c.layout.slots)), c.variables, state)
}

// mostKnown is the largest number of fills that known lists, more than anyone reads.
const mostKnown = 2000

// known returns, for an observer, a result of the states visited so far: during the warm-up, a result of the states of
// the warm-up. It makes no model call: where the sampler moves without computing U, U is NaN.
func (c *chainRun) known() *Result {
	c.report(mostKnown)
	p := cmp.Or(c.early, c.pool)
	c.work.answer.series = p.series(func(fill int32) float64 { return p.energy[fill] })
	result := c.work.result()
	c.work.answer.series = nil
	return result
}

// report writes the best visited fills, top at most, into the answer. It returns their numbers in the pool as order.
func (c *chainRun) report(top int) (order []int) {
	p, b := c.pool, &c.books[1]
	if c.early != nil {
		if p = c.early; c.warming {
			b = &c.books[0]
		}
	}
	o := c.options
	rows := c.target.Counts()
	a := &c.work.answer
	*a = answer{method: o.Sampler, seeded: true, draws: len(p.draws), distinct: len(p.energy), place: a.place,
		rows: rows.Rows, chains: &ChainStats{Sampler: o.Sampler, Energy: o.Energy, Chains: c.chains, Steps: o.Steps,
			StepSize: finite(c.stepSize), WarmUp: WarmUp{Steps: o.WarmUp},
			EnergyEvaluations: rows.EnergyEvaluations, GradientEvaluations: rows.GradientEvaluations}}
	s := a.chains
	for i := range c.variables {
		s.Candidates = append(s.Candidates, c.variables[i].categories())
	}
	s.AcceptanceRate, s.AcceptanceStandardError, s.ChangedSlotsPerStep = b.rates(o.Sampler)
	s.WarmUp.AcceptanceRate, _, s.WarmUp.ChangedSlotsPerStep = c.books[0].rates(o.Sampler)
	s.MeanLogLikelihood, s.MeanLogLikelihoodStandardError = samplers.MeanAndError(p.meanEnergies())
	if c.work.plan.Options.Rank == RankFinal && c.early == nil {
		order = p.finals(top)
	} else {
		order = c.legible(p, top)
	}
	counts := p.counts()
	finals := make([]int, len(counts))
	for _, fill := range p.final() {
		finals[fill]++
	}
	shares := p.byChain(order)
	for i, at := range order {
		f := found{tokens: c.tokens(p.state(at)), logLikelihood: p.energy[at], count: counts[at], finals: finals[at],
			share: &share{value: float64(counts[at]) / float64(len(p.draws))}}
		_, f.share.error = samplers.MeanAndError(shares[i])
		a.fills = append(a.fills, f)
	}
	p.diagnose(a, order)
	return order
}

// legible returns the best fills with different texts, top at most. If fills have the same text, as "un" "##seen" and
// "uns" "##een" have, legible keeps the likeliest of them.
func (c *chainRun) legible(p *pool, top int) []int {
	var kept []int
	seen := map[string]bool{}
	for _, fill := range p.distinct() {
		if len(kept) == top {
			break
		}
		if text := c.layout.template.Fill(c.tokens(p.state(fill))).Text; !seen[text] {
			seen[text] = true
			kept = append(kept, fill)
		}
	}
	return kept
}

// patience is how long an interrupted run may take to compute missing energies, too short for people to notice.
const patience = 100 * time.Millisecond

// interrupted writes the visited states into the answer, except those whose energies it cannot compute within patience.
func (c *chainRun) interrupted(ctx context.Context) {
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrUnwanted) {
		return
	}
	a := &c.work.answer
	a.place = fmt.Sprintf("at step %d of %d", c.step, c.options.Steps)
	p := cmp.Or(c.early, c.pool)
	if len(p.draws) == 0 {
		return
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	missing := 0
	for fill, u := range p.energy {
		if math.IsNaN(u) && (own.Err() != nil || c.target.Energy(own, p.state(fill), p.energy[fill:fill+1]) != nil) {
			missing++
			p.energy[fill] = math.Inf(-1)
		}
	}
	c.report(c.work.plan.Options.Top)
	a.fills = slices.DeleteFunc(a.fills, func(f found) bool { return math.IsInf(f.logLikelihood, -1) })
	if a.chains.MeanLogLikelihood = 0; missing == 0 {
		a.chains.MeanLogLikelihood, _ = samplers.MeanAndError(p.meanEnergies())
	}
	if a.place += ": these are the likeliest fills met by then"; missing > 0 {
		a.place += fmt.Sprintf("; %d were not rated in time, and are missing", missing)
	}
}

// rates returns the acceptance rate, its standard error, and the changed slots per step. The rate is nil if the sampler
// accepts every proposal, or if the book has no step.
func (b *book) rates(sampler string) (acceptance, standardError *float64, changed float64) {
	steps, chains := float64(b.steps), float64(len(b.accepted))
	if b.steps == 0 {
		return nil, nil, 0
	}
	if samplers.Describe(sampler).Exact { // the sampler accepts or rejects proposals
		rates := slices.Clone(b.accepted)
		for c := range rates {
			rates[c] /= steps
		}
		rate, e := samplers.MeanAndError(rates)
		acceptance, standardError = &rate, e
	}
	return acceptance, standardError, float64(b.changed) / steps / chains
}

// finite returns a step size for a result: nil if the sampler has no step size (size is 0 or NaN), or if size is +Inf,
// which JSON cannot write. +Inf comes from an adaptation that finds no penalty at all to be best.
func finite(size float64) *float64 {
	if size > 0 && !math.IsInf(size, 1) {
		return &size
	}
	return nil
}

// maxTries is the largest number of draws for one start. A start that the constraints forbid is drawn again.
const maxTries = 1000

// initial returns the starts of the chains, [chains × variables].
func (c *chainRun) initial(ctx context.Context) ([]int, error) {
	weights := make([][]float64, len(c.variables))
	for n := range c.variables {
		weights[n] = c.variables[n].logWeights(c.work.roots[0])
	}
	switch c.options.Initial.Kind {
	case startGiven:
		start, err := c.work.plan.filler.vocabulary.given(c.layout, c.variables, c.options.Initial.Fill)
		return slices.Repeat(start, c.chains), err
	case startRandom:
		return c.drawn(nil, c.streams)
	case StartShared:
		// A stream of its own, because the chains' streams are for their steps alone.
		start, err := c.drawn(weights, samplers.Streams(c.work.plan.Options.Seed, c.work.plan.Template+"\x00start", 1))
		return slices.Repeat(start, c.chains), err
	case StartMask:
		return c.unmasked(ctx)
	}
	return c.drawn(weights, c.streams)
}

// drawn draws the variables independently, each chain with its own stream: by weights, or uniformly if weights is nil.
// If the constraints forbid a state, drawn draws the state again.
func (c *chainRun) drawn(weights [][]float64, streams []*rand.Rand) ([]int, error) {
	cumulative := make([][]float64, len(weights))
	for n, row := range weights {
		// Subtract the largest value, so that the weights of no variable all underflow to 0.
		highest := slices.Max(row)
		sum := 0.0
		for _, w := range row {
			sum += math.Exp(w - highest)
			cumulative[n] = append(cumulative[n], sum)
		}
	}
	start := make([]int, len(streams)*len(c.variables))
	for chain, stream := range streams {
		state := start[chain*len(c.variables):][:len(c.variables)]
		for try := 0; ; try++ {
			if try == maxTries {
				return nil, misfit("initial", "none of %d starts that %s draws keeps to the constraints: loosen "+
					"them, or give a fill as fill:WORD,...", maxTries, c.options.Initial.Kind)
			}
			for n := range state {
				if weights == nil {
					state[n] = stream.IntN(c.variables[n].categories())
				} else {
					state[n] = samplers.DrawCumulative(cumulative[n], stream)
				}
			}
			if c.layout.allows(c.tokens(state)) {
				break
			}
		}
	}
	return start, nil
}

// unmasked draws the slots of each chain one by one in a random order, each from the model with the earlier slots
// filled and the others masked. A Gibbs sampler that starts from masks does the same in its first sweep.
func (c *chainRun) unmasked(ctx context.Context) ([]int, error) {
	target, ok := c.target.(samplers.MaskedConditionalTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no conditionals of several masked slots", c.target)
	}
	categories := target.Categories()
	slots, width := len(categories), slices.Max(categories)
	order := make([][]int, c.chains)
	for chain, stream := range c.streams {
		order[chain] = stream.Perm(slots)
	}
	start := make([]int, c.chains*slots)
	open := slices.Repeat([]bool{true}, c.chains*slots)
	logp := make([]float64, c.chains*slots*width)
	var cumulative []float64
	for round := range slots {
		if err := target.LogMaskedConditionals(ctx, start, open, logp); err != nil {
			return nil, err
		}
		for chain, stream := range c.streams {
			slot := order[chain][round]
			sum := 0.0
			cumulative = cumulative[:0]
			for _, l := range logp[(chain*slots+slot)*width:][:categories[slot]] {
				sum += math.Exp(l)
				cumulative = append(cumulative, sum)
			}
			start[chain*slots+slot] = samplers.DrawCumulative(cumulative, stream)
			open[chain*slots+slot] = false
		}
	}
	return start, nil
}
