package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"infill/internal/logmath"
	"infill/lm"
	"infill/samplers"
)

// MethodChains stands for all samplers where methods are named. The Method of a
// Result is the sampler's own name.
const MethodChains = "chains"

// Chains moves Markov chains of a sampler over the slots of a layout.
type Chains struct {
	// Sampler moves the chains: one of package samplers, or of another module.
	Sampler samplers.Sampler `option:"sampler" word:"NAME" list:"true" help:"run chains of a sampler, see infill help samplers"`
	// StepSize is the sampler's, if it has one.
	StepSize float64 `option:"step-size" default:"auto" words:"auto=0" exclusiveMinimum:"0" examples:"auto,0.1,0.2,0.5,1,2,5,10,50" word:"{auto|ALPHA}" help:"changing a slot costs 1/ALPHA nats; auto: adapted in the warm-up, if the sampler rejects"`
	// Balance weighs energy differences in proposals.
	Balance samplers.Balance `option:"balance" default:"auto" word:"{auto|BETA|NAME}" list:"true" help:"what an energy difference weighs in a proposal: a power from 0.5 to 1"`
	// Energy is what the chains draw from.
	Energy Energy `option:"energy" default:"pll" enum:"pll,filled" word:"{pll|filled}" help:"U of the chains: the pseudo-log-likelihood, or with nothing masked, for comparison"`
	// Gradient is what proposals look at.
	Gradient Gradient `option:"gradient" default:"auto" enum:"auto,local,full" words:"auto=" word:"{auto|local|full}" help:"what proposals look at; auto is the sampler's own choice"`
	// Candidates are the tokens that every slot, and so the target, keeps.
	Candidates int `option:"candidates" default:"250" words:"0=-1,all=-1" minimum:"0" examples:"10,50,100,250,500,1000,0" word:"N" help:"keep a slot to the model's N most probable tokens; 0, or all, is the whole vocabulary"`
	// Temperature T draws from exp(U/T).
	Temperature float64 `option:"temperature" default:"1"`
	// Samples is the number of chains.
	Samples int `option:"samples" default:"25"`
	// Steps is the length of each chain.
	Steps int `option:"steps" default:"50" words:"0=-1" minimum:"0" maximum:"16777216" examples:"0,10,20,50,100,200,500,1000" word:"N" help:"steps of each chain, the warm-up included"`
	// WarmUp is the part of the steps that gives no draws.
	WarmUp int `option:"warm-up" default:"half" words:"half=0,0=-1,none=-1" minimum:"0" maximum:"16777216" examples:"half" word:"{half|N}" help:"first steps that are not drawn from; half is half of the steps, and none none"`
	// Initial says where the chains start.
	Initial Start `option:"initial" default:"model" examples:"model,random,shared,mask" word:"NAME" help:"where chains start, see infill help samplers: model, random, shared, mask or fill:WORD,..."`
	// Rank says which states are listed.
	Rank Rank `option:"rank" default:"distinct"`
	// Energies says that an observer wants U of every state, also where the
	// sampler does not need it. That costs rows, and changes no result.
	Energies bool
}

// Energy is the energy U of chains, in nats; "" is the pseudo-log-likelihood.
type Energy lm.Energy

// Gradient is the gradient that a sampler uses; "" is the sampler's default.
type Gradient lm.Gradient

// None is the value of Steps and WarmUp that stands for no step, and that of
// Candidates for the whole vocabulary: 0 is the default.
const None = -1

func (Chains) Name() string { return MethodChains }

func (Chains) random() bool { return true }

func (Chains) heavy() bool { return true }

// settled also takes the sampler's own gradient and balance for automatic ones,
// and makes options of its settings that are options.
func (c Chains) settled() Method {
	if c.Sampler != nil {
		c.lift()
	}
	declared.Settle(&c)
	if c.WarmUp == 0 {
		c.WarmUp = max(0, c.Steps) / 2
	}
	if c.WarmUp == 0 {
		c.WarmUp = None
	}
	if c.Sampler == nil {
		return c
	}
	kind := c.Sampler.Describe()
	if c.Gradient == "" && kind.OnText != nil {
		c.Gradient = Gradient(kind.OnText.Gradient)
	}
	suited, err := samplers.Suited(c.Sampler)
	if err == nil && c.Balance == "" {
		c.Balance = samplers.Balance(samplers.Value(suited, "balance"))
	}
	return c
}

// lift makes options of the sampler's settings that are options and not given.
func (c *Chains) lift() {
	rest, size := samplers.Take(c.Sampler, "step-size")
	x, err := strconv.ParseFloat(size, 64)
	if err == nil && c.StepSize == 0 {
		c.Sampler = rest
		c.StepSize = x
	}
	rest, balance := samplers.Take(c.Sampler, "balance")
	if balance != "" && c.Balance == "" {
		c.Sampler = rest
		c.Balance = samplers.Balance(balance)
	}
}

func (c Chains) kernel(target samplers.Target) (samplers.Kernel, error) {
	s := c.Sampler
	var err error
	if c.StepSize != 0 {
		s, err = samplers.With(s, "step-size", strconv.FormatFloat(c.StepSize, 'g', -1, 64))
	}
	if err == nil && c.Balance != "" {
		s, err = samplers.With(s, "balance", string(c.Balance))
	}
	if err != nil {
		return nil, err
	}
	return samplers.TextKernel(s, target, nil)
}

// steps returns the length of each chain, and warmUp that of its warm-up.
func (c *Chains) steps() int  { return max(0, c.Steps) }
func (c *Chains) warmUp() int { return max(0, c.WarmUp) }

func (c Chains) check(_ *Request, m Model) error {
	if c.Sampler == nil {
		return wrong("sampler", "chains need one: name one, such as dmala")
	}
	kind := c.Sampler.Describe()
	name := kind.Name
	_, err := samplers.Suited(c.Sampler)
	err = cmp.Or(err, samplers.Check(c.Sampler))
	if err != nil {
		return wrong("sampler", "%q is not a sampler with its settings: %v", samplers.Text(c.Sampler), err)
	}
	_, known := samplers.Parse(name)
	isMethod := slices.Contains([]string{MethodSearch, MethodDraws, MethodChains}, name)
	has := samplers.Settings(c.Sampler)
	_, size := samplers.Take(c.Sampler, "step-size")
	_, balance := samplers.Take(c.Sampler, "balance")
	switch {
	case name == "" || !samplers.BuiltIn(c.Sampler) && (known == nil || isMethod):
		return wrong("sampler", "a sampler of another module is called %q: give it a name of its own", name)
	case size != "":
		return wrong("step-size", "it is given twice, as %v and by the sampler as %s: leave one out", c.StepSize, size)
	case balance != "":
		return wrong("balance", "it is given twice, as %s and by the sampler as %s: leave one out", c.Balance, balance)
	case c.warmUp() > c.steps():
		return wrong("warm-up", "%d is not a whole number from 0 to the number of steps, %d", c.warmUp(), c.steps())
	case c.StepSize != 0 && !slices.Contains(has, "step-size"):
		return wrong("step-size", "%s has none: leave it out", name)
	case c.Balance != "" && !slices.Contains(has, "balance"):
		return wrong("balance", "%s has none to choose: leave it out", name)
	case c.Gradient != "" && kind.OnText != nil && kind.OnText.Gradient == "":
		return wrong("gradient", "%s uses none: leave it out", name)
	case lm.Gradient(c.Gradient) == lm.Full && m.NoGradient != "":
		return wrong("gradient", "model %s has none: %s; take local, or a sampler without gradients", m.Name,
			m.NoGradient)
	}
	return nil
}

func (c Chains) cost(p *Plan) (rows int, bytes float64) {
	n := float64(p.Slots())
	chains := float64(c.Samples)
	steps := float64(c.steps())
	r := float64(p.roots()) + chains*(steps+1)*n
	candidates := float64(c.Candidates)
	if c.Candidates == None {
		candidates = float64(p.filler.tokenizer.VocabularySize())
	}
	bytes = p.common() + min(4*keptNumbers, 4*r*n*candidates)*3/2 + chains*n*candidates*8*6 + chains*(steps+1)*4 +
		r/n*(bytesOfState+8*n)
	return int(min(r, math.MaxInt32)), bytes
}

func (c Chains) likely(p *Plan) (rows int, bytes float64) { return c.cost(p) }

func (c Chains) solve(ctx context.Context, w *work) (*answer, error) {
	r := &chainRun{work: w, options: c, layout: w.plan.layouts[0]}
	start, err := r.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return r.run(ctx, start)
}

type chainRun struct {
	work      *work
	options   Chains // settled
	layout    *layout
	variables []variable
	target    lm.Target
	kernel    samplers.Kernel
	streams   []*rand.Rand
	// draws holds the states that count. Before there are any, seen holds those
	// of the present stage: of the warm-up, or of the steps after it if only the
	// final states count.
	draws, seen *visited
	stage       bool // whether seen is of the warm-up
	// warmUp and after count the steps of the warm-up, and the steps after it.
	warmUp, after samplers.Acceptance
	stepSize      float64 // after the last step; NaN or 0 if the sampler has no step size
	step          int
}

func (c *chainRun) chains() int { return c.options.Samples }

// run moves the chains, and answers with what they met.
func (c *chainRun) run(ctx context.Context, start []int) (*answer, error) {
	steps := c.options.steps()
	warm := c.options.warmUp()
	plan := samplers.Plan{Streams: c.streams, WarmUp: warm, Steps: steps - warm}
	end, err := samplers.Sample(ctx, c.kernel, start, plan, func(at samplers.Step) error {
		return c.observe(ctx, at, !at.WarmUp && (c.options.Rank == RankDistinct || at.Number == steps))
	})
	if err != nil {
		return c.interrupted(ctx), err
	}
	c.stepSize = end.StepSize
	if !c.counting() {
		// Nothing follows the warm-up: its last states are the draws.
		c.draws.add(end.State, c.options.Temperature)
	}
	err = c.draws.evaluate(ctx, c.target)
	if err != nil {
		return c.interrupted(ctx), err
	}
	a, order := c.report(int(c.work.plan.Request.Top))
	u := a.chains.MeanLogLikelihood
	if math.IsNaN(u) || math.IsInf(u, 0) {
		return nil, fmt.Errorf("model %s gives a drawn fill the log-likelihood %v: its weights may be unusable",
			c.work.plan.filler.Model().Name, u)
	}
	c.draws.believe(a, order)
	return a, nil
}

func (c *chainRun) counting() bool { return len(c.draws.draws) > 0 }

// shown returns the fills that an answer is made of now, and the steps counted beside it.
func (c *chainRun) shown() (*visited, *samplers.Acceptance) {
	switch {
	case c.counting():
		return c.draws, &c.after
	case c.stage:
		return c.seen, &c.warmUp
	}
	return c.seen, &c.after
}

// prepare makes target and kernel, and returns the starts, [chains × variables].
func (c *chainRun) prepare(ctx context.Context) ([]int, error) {
	w := c.work
	o := &c.options
	c.variables = c.layout.variables(w.roots[0], max(0, o.Candidates))
	for n := range c.variables {
		if c.variables[n].categories() == 0 {
			return nil, errNoFill
		}
	}
	var err error
	c.target, err = newTarget(w.asker.model, c.layout, c.variables,
		lm.TargetOptions{Energy: lm.Energy(o.Energy), Gradient: lm.Gradient(o.Gradient)})
	if err != nil {
		return nil, err
	}
	c.draws = newVisited(c.chains(), len(c.variables))
	c.seen = newVisited(c.chains(), len(c.variables))
	c.streams = samplers.Streams(uint64(w.plan.Request.Seed), w.plan.Request.Template, c.chains())
	start, err := c.initial(ctx)
	if err != nil {
		return nil, err
	}
	target := samplers.Target(c.target)
	if o.Temperature != 1 {
		target, err = samplers.Temper(target, float64(o.Temperature))
		if err != nil {
			return nil, err
		}
	}
	c.kernel, err = o.kernel(target)
	set := samplers.Text(o.Sampler) != o.Sampler.Describe().Name // the user's settings may be at fault
	if err != nil && (set || errors.Is(err, samplers.ErrUnsupported)) {
		return nil, misfit("sampler", "%v", err)
	}
	return start, err
}

// observe counts the step, and adds states that count to draws, others to seen.
func (c *chainRun) observe(ctx context.Context, at samplers.Step, counts bool) error {
	c.step = at.Number
	c.stepSize = at.StepSize
	warming := at.WarmUp && c.options.warmUp() > 0
	switch {
	case at.Number == 0:
	case at.WarmUp:
		c.warmUp.Observe(at.Info.Accepted, at.Info.Changed)
	default:
		c.after.Observe(at.Info.Accepted, at.Info.Changed)
	}
	own := c.draws
	if !counts {
		if c.stage != warming {
			c.seen = newVisited(c.chains(), len(c.variables))
		}
		c.stage = warming
		own = c.seen
	}
	own.add(at.State, c.options.Temperature)
	if c.work.observe == nil {
		return nil
	}
	if c.options.Energies {
		err := own.evaluate(ctx, c.target)
		if err != nil {
			return err
		}
	}
	c.work.tell(c.progress(at, warming, own))
	return nil
}

// progress describes the step at, whose states are the last draws of own.
func (c *chainRun) progress(at samplers.Step, warming bool, own *visited) Progress {
	p := Progress{Step: at.Number, Steps: c.options.steps(), WarmUp: warming,
		Pieces: c.layout.pieces(), TokenIDs: make([]int, 0, c.chains()*len(c.layout.question.slots)),
		LogLikelihoods: make([]float64, c.chains()), result: c.known}
	if !math.IsNaN(at.StepSize) {
		p.StepSize = at.StepSize
	}
	for chain, fill := range own.final() {
		p.TokenIDs = append(p.TokenIDs, c.tokens(at.State.Position(chain))...)
		p.LogLikelihoods[chain] = own.energy[fill]
	}
	if at.Info != nil {
		p.Accepted = slices.Clone(at.Info.Accepted)
		p.Changed = slices.Clone(at.Info.Changed)
	}
	return p
}

// tokens returns the token ids that a state puts into the slots, [slots].
func (c *chainRun) tokens(state []int) []int {
	return fillSlots(make([]int, len(c.layout.question.slots)), c.variables, state)
}

const mostKnown = 2000

// known returns, for an observer, a result of the states visited so far: during
// the warm-up, a result of the states of the warm-up. It makes no model call: where
// the sampler moves without computing U, U is NaN.
func (c *chainRun) known() *Result {
	a, _ := c.report(mostKnown)
	p, _ := c.shown()
	a.series = p.series(func(fill int32) float64 { return p.energy[fill] })
	return c.work.result(a)
}

// report returns an answer with the best visited fills, top at most, and their
// numbers among the visited as order.
func (c *chainRun) report(top int) (a *answer, order []int) {
	p, b := c.shown()
	o := &c.options
	rows := c.target.Counts()
	kind := o.Sampler.Describe()
	name := kind.Name
	a = &answer{method: name, draws: len(p.draws), distinct: len(p.energy), rows: rows.Rows,
		chains: &ChainStats{Sampler: name, Energy: o.Energy, Chains: c.chains(), Steps: o.steps(),
			StepSize: finite(c.stepSize), WarmUp: WarmUpStats{Steps: o.warmUp()},
			EnergyEvaluations: rows.EnergyEvaluations, GradientEvaluations: rows.GradientEvaluations}}
	s := a.chains
	for i := range c.variables {
		s.Candidates = append(s.Candidates, c.variables[i].categories())
	}
	s.AcceptanceRate, s.AcceptanceStandardError, s.ChangedSlotsPerStep = rates(b, kind.Exact)
	s.WarmUp.AcceptanceRate, _, s.WarmUp.ChangedSlotsPerStep = rates(&c.warmUp, kind.Exact)
	mean, standardError := samplers.MeanAndError(p.meanEnergies())
	s.MeanLogLikelihood = mean
	s.MeanLogLikelihoodStandardError = logmath.Known(standardError)
	if o.Rank == RankFinal && c.counting() {
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
		_, e := samplers.MeanAndError(shares[i])
		f.share.error = logmath.Known(e)
		a.fills = append(a.fills, f)
	}
	p.diagnose(a, order)
	return a, order
}

// legible returns the best fills with different texts, top at most: of "un"
// "##seen" and "uns" "##een" the likelier.
func (c *chainRun) legible(p *visited, top int) []int {
	var kept []int
	seen := map[string]bool{}
	for _, fill := range p.distinct() {
		if len(kept) == top {
			break
		}
		text := c.layout.template.Fill(c.tokens(p.state(fill))).Text
		if !seen[text] {
			seen[text] = true
			kept = append(kept, fill)
		}
	}
	return kept
}

// patience is how long an interrupted run may take to compute missing energies,
// too short for people to notice.
const patience = 100 * time.Millisecond

// interrupted returns an answer of the visited states, except those whose energies
// it cannot compute within patience; nil if nobody reads it, or there are none.
func (c *chainRun) interrupted(ctx context.Context) *answer {
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrUnwanted) {
		return nil
	}
	p, _ := c.shown()
	if len(p.draws) == 0 {
		return nil
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
	a, _ := c.report(int(c.work.plan.Request.Top))
	a.fills = slices.DeleteFunc(a.fills, func(f found) bool { return math.IsInf(f.logLikelihood, -1) })
	a.chains.MeanLogLikelihood = 0
	if missing == 0 {
		a.chains.MeanLogLikelihood, _ = samplers.MeanAndError(p.meanEnergies())
	}
	a.place = fmt.Sprintf("at step %d of %d: these are the likeliest fills met by then", c.step, c.options.steps())
	if missing > 0 {
		a.place += fmt.Sprintf("; %d were not rated in time, and are missing", missing)
	}
	return a
}

// rates returns the acceptance rate, nil without steps or rejections, its standard
// error, and the changed slots per step.
func rates(a *samplers.Acceptance, exact bool) (acceptance, standardError *float64, changed float64) {
	if a.Steps() == 0 {
		return nil, nil, 0
	}
	changed, _ = samplers.MeanAndError(a.ChangedSlots())
	if !exact { // the sampler accepts every proposal
		return nil, nil, changed
	}
	rate, e := samplers.MeanAndError(a.Rates())
	return &rate, logmath.Known(e), changed
}

// finite returns a step size for a result: nil if the sampler has no step size
// (size is 0 or NaN), or if size is +Inf, which JSON cannot write. +Inf comes
// from an adaptation that finds no penalty at all to be best.
func finite(size float64) *float64 {
	if size > 0 && !math.IsInf(size, 1) {
		return &size
	}
	return nil
}

// maxTries is the largest number of draws for one start. A start that the
// constraints forbid is drawn again.
const maxTries = 1000

func (c *chainRun) initial(ctx context.Context) ([]int, error) {
	weights := make([][]float64, len(c.variables))
	for n := range c.variables {
		weights[n] = c.variables[n].logWeights(c.work.roots[0])
	}
	switch c.options.Initial.Kind {
	case StartGiven:
		start, err := c.work.plan.filler.vocabulary.given(c.layout, c.variables, c.options.Initial.Fill)
		return slices.Repeat(start, c.chains()), err
	case StartRandom:
		return c.drawn(nil, c.streams)
	case StartShared:
		// A stream of its own, because the chains' streams are for their steps alone.
		r := &c.work.plan.Request
		start, err := c.drawn(weights, samplers.Streams(uint64(r.Seed), r.Template+"\x00start", 1))
		return slices.Repeat(start, c.chains()), err
	case StartMask:
		return c.unmasked(ctx)
	}
	return c.drawn(weights, c.streams)
}

// drawn draws the variables independently, each chain with its own stream: by
// weights, or uniformly if weights is nil. If the constraints forbid a state,
// drawn draws the state again.
func (c *chainRun) drawn(weights [][]float64, streams []*rand.Rand) ([]int, error) {
	cumulative := make([][]float64, len(weights))
	for n, row := range weights {
		// Less the largest value, so that not all weights of a variable underflow.
		highest := slices.Max(row)
		for _, w := range row {
			cumulative[n] = append(cumulative[n], math.Exp(w-highest))
		}
		samplers.Accumulate(cumulative[n])
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

// unmasked draws the slots of each chain one by one in a random order, each
// from the model with the earlier slots filled and the others masked. A Gibbs
// sampler that starts from masks does the same in its first sweep.
func (c *chainRun) unmasked(ctx context.Context) ([]int, error) {
	target, ok := c.target.(samplers.MaskedConditionalTarget)
	if !ok {
		return nil, fmt.Errorf("%T has no conditionals of several masked slots", c.target)
	}
	categories := target.Categories()
	slots := len(categories)
	width := slices.Max(categories)
	order := make([][]int, c.chains())
	for chain, stream := range c.streams {
		order[chain] = stream.Perm(slots)
	}
	start := make([]int, c.chains()*slots)
	open := slices.Repeat([]bool{true}, c.chains()*slots)
	logp := make([]float64, c.chains()*slots*width)
	var cumulative []float64
	for round := range slots {
		if err := target.LogMaskedConditionals(ctx, start, open, logp); err != nil {
			return nil, err
		}
		for chain, stream := range c.streams {
			slot := order[chain][round]
			cumulative = cumulative[:0]
			for _, l := range logp[(chain*slots+slot)*width:][:categories[slot]] {
				cumulative = append(cumulative, math.Exp(l))
			}
			samplers.Accumulate(cumulative)
			start[chain*slots+slot] = samplers.DrawCumulative(cumulative, stream)
			open[chain*slots+slot] = false
		}
	}
	return start, nil
}
