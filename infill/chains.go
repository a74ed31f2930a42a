package infill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"infill/lm"
	"infill/samplers"
)

// chains move over a problem; the pool holds what they visited.
type chains struct {
	*problem
	*pool
	kernel  samplers.Kernel // nil in a decoding
	streams []*rand.Rand
	start   []int // initial states, [chains × variables]
	// preview holds, for an observer, states that do not count: of the warm-up, or before the final
	// ones where they alone count; nil if there are others.
	preview *pool
	warming bool // whether preview is of the warm-up
	// The books: steps, changed slots, and accepted proposals by chain, of the warm-up and after it.
	books    [2]book
	stepSize float64 // at the end; NaN or 0 for samplers without
	swaps    []float64
	finds    finds
}

// book counts what steps did.
type book struct {
	steps    int
	changed  int
	accepted []float64 // by chain
}

// count adds a step.
func (b *book) count(info *samplers.Info) {
	b.steps++
	for c, accepted := range info.Accepted {
		if accepted {
			b.accepted[c]++
		}
		b.changed += info.Changed[c]
	}
}

// newChains makes the kernel and the starts. asked are the options before they were settled:
// what they leave open the warm-up tunes. weights are the model's log-probabilities of each
// variable's categories with all slots masked.
func newChains(ctx context.Context, r *problem, asked Options, weights [][]float32) (*chains, error) {
	o := asked.Chained()
	c := &chains{problem: r, pool: newPool(o.Chains, len(r.variables)),
		streams: samplers.Streams(o.Seed, r.label, o.Chains)}
	for i := range c.books {
		c.books[i].accepted = make([]float64, o.Chains)
	}
	c.finds.chains = c
	if o.Mode == ModeDecode {
		return c, nil
	}
	var err error
	if c.start, err = c.initial(ctx, weights); err != nil {
		return nil, err
	}
	spec := o.spec()
	if o.Gradient == lm.Stochastic {
		spec = spec.With("terms", (len(r.template.Slots)+1)/2)
	}
	c.kernel, err = spec.New(r.target, samplers.Streams(o.Seed, r.label+"\x00terms", 1)[0])
	if err != nil && o.Settings != nil {
		return nil, misfit("sampler", "%v", err)
	}
	return c, err
}

// sample runs the chains, which and calls the observer, if it is not nil, with each step.
func (c *chains) sample(ctx context.Context, observe func(Progress)) error {
	switch c.options.Mode {
	case ModeBest:
		return c.anneal(ctx, observe)
	case ModeDecode:
		return c.decode(ctx, observe)
	}
	return c.draw(ctx, observe)
}

// step keeps the books of a step, and pools its states where they count.
func (c *chains) step(at samplers.Step, stepSize float64, counts bool, observe func(Progress)) {
	c.finds.observe(at)
	warming := at.WarmUp && c.options.WarmUp > 0
	if at.Number > 0 {
		c.books[map[bool]int{true: 0, false: 1}[at.WarmUp]].count(at.Info)
	}
	switch {
	case counts:
		c.preview = nil
		c.add(at.State, at.Temperature)
	case observe != nil && (warming || at.Number > 0):
		if c.preview == nil || c.warming != warming {
			c.preview, c.warming = newPool(c.pool.chains, c.slots), warming
		}
		c.preview.add(at.State, at.Temperature)
	}
	if observe != nil {
		observe(c.progress(at, stepSize))
	}
}

// draw samples the target, and pools what is drawn from.
func (c *chains) draw(ctx context.Context, observe func(Progress)) error {
	o := c.options
	plan := samplers.Plan{Streams: c.streams, WarmUp: o.WarmUp, Steps: o.Steps - o.WarmUp, Ladder: o.Ladder}
	if plan.Ladder == nil {
		plan.Ladder = []float64{o.Temperature}
	}
	end, err := samplers.Sample(ctx, c.kernel, c.start, plan, func(at samplers.Step) error {
		c.step(at, at.StepSize, !at.WarmUp && (o.Rank == rankDistinct || at.Number == o.Steps), observe)
		return nil
	})
	if err != nil {
		return err
	}
	c.stepSize, c.swaps, c.preview = end.StepSize, end.Swaps, nil
	if len(c.draws) == 0 {
		// Nothing follows the warm-up: its last states are the draws.
		c.add(end.State, o.Temperature)
	}
	return nil
}

// The temperatures between which ModeBest falls.
const (
	hottest = 2
	coldest = 0.1
)

// anneal searches, and pools every state that was seen. With Rank "final" it
// pools the best state of each chain alone.
func (c *chains) anneal(ctx context.Context, observe func(Progress)) error {
	o := c.options
	c.stepSize = o.StepSize
	best, err := samplers.Anneal(ctx, c.kernel, c.start, c.streams,
		samplers.AnnealOptions{Steps: o.Steps, Start: hottest, End: coldest}, func(at samplers.Step) error {
			if at.Number > 0 {
				c.step(at, o.StepSize, o.Rank == rankDistinct, observe)
			}
			return nil
		})
	if err != nil {
		return err
	}
	c.preview = nil
	// Last, so that they are the final states; a chain's best may be its start.
	c.add(&samplers.State{Positions: best.Positions, Energy: best.Energy}, 1)
	return nil
}

// decode fills by confidence: the first chain takes the most probable token each
// time, the others draw.
func (c *chains) decode(ctx context.Context, observe func(Progress)) error {
	state := &samplers.State{Energy: slices.Repeat([]float64{math.NaN()}, c.options.Chains)}
	for _, part := range []struct {
		from, to    int
		temperature float64
	}{{0, 1, 0}, {1, c.options.Chains, c.options.Temperature}} {
		if part.from == part.to {
			continue
		}
		p, err := samplers.MaskPredict(ctx, c.target, c.streams[part.from:part.to],
			samplers.MaskPredictOptions{Rounds: c.rounds(), Temperature: part.temperature})
		if err != nil {
			return err
		}
		state.Positions = append(state.Positions, p.Positions...)
	}
	c.add(state, 1)
	if err := c.evaluate(ctx, c.target); err != nil || observe == nil {
		return err
	}
	for chain, fill := range c.final() {
		state.Energy[chain] = c.energy[fill]
	}
	observe(c.progress(samplers.Step{Number: c.options.Steps, State: state, Temperature: 1}, 0))
	return nil
}

// progress describes a step for the observer; stepSize is NaN for samplers without
// one.
func (c *chains) progress(at samplers.Step, stepSize float64) Progress {
	p := Progress{
		Template:       c.typed.Text,
		Step:           c.place*c.options.Steps + at.Number,
		Steps:          c.places * c.options.Steps,
		WarmUp:         at.WarmUp && c.options.WarmUp > 0,
		Pieces:         c.pieces(),
		TokenIDs:       make([]int, 0, at.State.Chains()*len(c.template.Slots)),
		LogLikelihoods: make([]float64, at.State.Chains()),
	}
	if !math.IsNaN(stepSize) {
		p.StepSize = stepSize
	}
	for chain, u := range at.State.Energy {
		p.TokenIDs = append(p.TokenIDs, c.tokens(at.State.Position(chain))...)
		p.LogLikelihoods[chain] = u * at.Temperature
	}
	if c.preview != nil || len(c.draws) > 0 {
		p.Result = c.known
	}
	if at.Info != nil {
		p.Accepted, p.Changed = slices.Clone(at.Info.Accepted), slices.Clone(at.Info.Changed)
	}
	return p
}

// finds are the likeliest states that chains have met by now.
type finds struct {
	chains *chains
	step   int
	last   []int // the chains' states, where their energies are not known, [chains × variables]
	states [][]int
	energy []float64 // in nats, the largest first
}

// mostFinds bounds what is kept of one run.
const mostFinds = 100

// observe is called with every step.
func (f *finds) observe(at samplers.Step) {
	f.step, f.last = at.Number, nil
	for c, u := range at.State.Energy {
		state := at.State.Position(c)
		if u *= at.Temperature; math.IsNaN(u) {
			f.last = append(f.last, state...)
			continue
		}
		f.add(state, u)
	}
}

// add keeps a state if it is among the likeliest.
func (f *finds) add(state []int, u float64) {
	if full := len(f.states) == mostFinds; math.IsInf(u, 0) || full && u <= f.energy[mostFinds-1] ||
		slices.ContainsFunc(f.states, func(s []int) bool { return slices.Equal(s, state) }) {
		return
	}
	place, _ := slices.BinarySearchFunc(f.energy, u, func(a, b float64) int { return cmp.Compare(b, a) })
	f.states, f.energy = slices.Insert(f.states, place, slices.Clone(state)), slices.Insert(f.energy, place, u)
	f.states, f.energy = f.states[:min(mostFinds, len(f.states))], f.energy[:min(mostFinds, len(f.energy))]
}

// patience is how long an interrupted run rates its last states: no longer than people notice.
const patience = 100 * time.Millisecond

// answer lists what was met: all that is rated, and of the last states those that are rated in a moment.
func (f *finds) answer() *answer {
	c := f.chains
	for fill, u := range c.energy {
		if !math.IsNaN(u) {
			f.add(c.state(fill), u)
		}
	}
	missing := f.rate()
	a := &answer{found: true, states: f.states, energy: f.energy, distinct: len(f.states), steps: f.step,
		note: fmt.Sprintf("at step %d of %d", f.step, c.options.Steps)}
	if len(f.states) == 0 {
		a.note += ", before a fill was rated"
		return a
	}
	a.note += ": these are the likeliest fills met by then, not draws"
	if missing > 0 {
		a.note += fmt.Sprintf("; %d of the last fills were not rated in time, and are missing", missing)
	}
	return a
}

// rate finds the energies of the chains' last states, and tells how many different ones are missing.
func (f *finds) rate() (missing int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, seen := f.chains, map[string]bool{}
	for state := range slices.Chunk(f.last, c.slots) {
		key := string(appendKey(nil, state))
		if fill, pooled := c.index[key]; seen[key] || pooled && !math.IsNaN(c.energy[fill]) {
			continue
		}
		seen[key] = true
		var u [1]float64
		if ctx.Err() != nil || c.target.Energy(ctx, state, u[:]) != nil {
			missing++
			continue
		}
		f.add(state, u[0])
	}
	return missing
}
