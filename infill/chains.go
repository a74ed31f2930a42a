package infill

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"infill/samplers"
)

// sampled is what the chains of a run visited, and the books of their steps.
type sampled struct {
	*pool
	// Accepted proposals and changed slots of the warm-up and after it; after it the
	// proposals are by chain, [chains].
	accepted     []float64
	changed      int
	warmAccepted int
	warmChanged  int
	stepSize     float64 // at the end; NaN or 0 for samplers without
	swaps        []float64
}

// sample runs the chains, which the observer, where not nil, hears of.
func (r *run) sample(ctx context.Context, observe func(Progress)) (*sampled, error) {
	s := &sampled{pool: newPool(r.options.Chains, len(r.variables)), accepted: make([]float64, r.options.Chains)}
	m := &met{r: r}
	r.sofar = m.answer
	step := func(at samplers.Step, stepSize float64) {
		m.observe(at)
		if observe != nil {
			observe(r.progress(at, stepSize))
		}
		if at.Number > 0 {
			s.count(at)
		}
	}
	switch r.options.Mode {
	case ModeBest:
		return s, r.anneal(ctx, s, step)
	case ModeDecode:
		return s, r.decode(ctx, s, observe)
	}
	return s, r.draw(ctx, s, step)
}

// draw samples the target, and pools what is drawn from.
func (r *run) draw(ctx context.Context, s *sampled, step func(samplers.Step, float64)) error {
	o := r.options
	plan := samplers.Plan{Streams: r.streams, WarmUp: o.WarmUp, Steps: o.Steps - o.WarmUp, Ladder: o.Ladder}
	if plan.Ladder == nil {
		plan.Ladder = []float64{o.Temperature}
	}
	end, err := samplers.Sample(ctx, r.kernel, r.start, plan, func(at samplers.Step) error {
		step(at, at.StepSize)
		if !at.WarmUp && (o.Rank == RankDistinct || at.Number == o.Steps) {
			s.add(at.State, at.Temperature)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.stepSize, s.swaps = end.StepSize, end.Swaps
	if len(s.draws) == 0 {
		// Nothing follows the warm-up: its last states are the draws.
		s.add(end.State, o.Temperature)
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
func (r *run) anneal(ctx context.Context, s *sampled, step func(samplers.Step, float64)) error {
	o := r.options
	s.stepSize = o.StepSize
	best, err := samplers.Anneal(ctx, r.kernel, r.start, r.streams, samplers.AnnealOptions{Steps: o.Steps, Start: hottest, End: coldest}, func(at samplers.Step) error {
		if at.Number == 0 {
			return nil
		}
		step(at, o.StepSize)
		if o.Rank == RankDistinct {
			s.add(at.State, at.Temperature)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Last, so that they are the final states; a chain's best may be its start.
	s.add(&samplers.State{Positions: best.Positions, Energy: best.Energy}, 1)
	return nil
}

// rounds is how often a decoding predicts.
func (r *run) rounds() int { return min(r.options.Steps, len(r.variables)) }

// decode fills by confidence: the first chain takes the most probable token each
// time, the others draw.
func (r *run) decode(ctx context.Context, s *sampled, observe func(Progress)) error {
	state := &samplers.State{Energy: slices.Repeat([]float64{math.NaN()}, r.options.Chains)}
	for _, part := range []struct {
		from, to    int
		temperature float64
	}{{0, 1, 0}, {1, r.options.Chains, r.options.Temperature}} {
		if part.from == part.to {
			continue
		}
		p, err := samplers.MaskPredict(ctx, r.target, r.streams[part.from:part.to], samplers.MaskPredictOptions{Rounds: r.rounds(), Temperature: part.temperature})
		if err != nil {
			return err
		}
		state.Positions = append(state.Positions, p.Positions...)
	}
	s.add(state, 1)
	if err := s.evaluate(ctx, r.target); err != nil || observe == nil {
		return err
	}
	for chain, fill := range s.final() {
		state.Energy[chain] = s.energy[fill]
	}
	observe(r.progress(samplers.Step{Number: r.options.Steps, State: state, Temperature: 1}, 0))
	return nil
}

// count keeps the books of a step.
func (s *sampled) count(at samplers.Step) {
	for c, accepted := range at.Info.Accepted {
		switch {
		case at.WarmUp && accepted:
			s.warmAccepted++
		case accepted:
			s.accepted[c]++
		}
		if at.WarmUp {
			s.warmChanged += at.Info.Changed[c]
		} else {
			s.changed += at.Info.Changed[c]
		}
	}
}

// progress is a step as the observer hears of it; stepSize is NaN for samplers
// without.
func (r *run) progress(at samplers.Step, stepSize float64) Progress {
	p := Progress{
		Template:       r.typed.Text,
		Step:           r.place*r.options.Steps + at.Number,
		Steps:          r.places * r.options.Steps,
		WarmUp:         at.WarmUp && r.options.WarmUp > 0,
		Pieces:         r.pieces(),
		TokenIDs:       make([]int, 0, at.State.Chains()*len(r.template.Slots)),
		LogLikelihoods: make([]float64, at.State.Chains()),
	}
	if !math.IsNaN(stepSize) {
		p.StepSize = stepSize
	}
	for c, u := range at.State.Energy {
		p.TokenIDs = append(p.TokenIDs, r.tokens(at.State.Position(c))...)
		p.LogLikelihoods[c] = u * at.Temperature
	}
	if at.Info != nil {
		p.Accepted, p.Changed = slices.Clone(at.Info.Accepted), slices.Clone(at.Info.Changed)
	}
	return p
}

// met is what chains have met by now.
type met struct {
	r      *run
	step   int
	last   []int // the chains' states, where their energies are not known, [chains × variables]
	states [][]int
	energy []float64 // in nats, the largest first
}

// mostMet bounds what is kept of one run.
const mostMet = 100

// observe hears of every step.
func (m *met) observe(at samplers.Step) {
	m.step, m.last = at.Number, nil
	for c, u := range at.State.Energy {
		state := at.State.Position(c)
		if u *= at.Temperature; math.IsNaN(u) {
			m.last = append(m.last, state...)
			continue
		}
		m.add(state, u)
	}
}

// add keeps a state if it is among the likeliest.
func (m *met) add(state []int, u float64) {
	if full := len(m.states) == mostMet; full && u <= m.energy[mostMet-1] || slices.ContainsFunc(m.states, func(s []int) bool { return slices.Equal(s, state) }) {
		return
	}
	place, _ := slices.BinarySearchFunc(m.energy, u, func(a, b float64) int { return cmp.Compare(b, a) })
	m.states, m.energy = slices.Insert(m.states, place, slices.Clone(state)), slices.Insert(m.energy, place, u)
	m.states, m.energy = m.states[:min(mostMet, len(m.states))], m.energy[:min(mostMet, len(m.energy))]
}

// patience is how long an interrupted run asks the model for the energies of its last states.
const patience = 2 * time.Second

// answer lists what was met.
func (m *met) answer() *answer {
	if m.last != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		n := len(m.r.variables)
		energy := make([]float64, len(m.last)/n)
		if m.r.target.Energy(ctx, m.last, energy) == nil {
			for c, u := range energy {
				m.add(m.last[c*n:(c+1)*n], u)
			}
		}
	}
	return &answer{found: true, states: m.states, energy: m.energy, distinct: len(m.states), steps: m.step,
		note: fmt.Sprintf("at step %d of %d: these are the likeliest fills met by then, not draws", m.step, m.r.options.Steps)}
}
