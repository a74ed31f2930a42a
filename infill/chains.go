package infill

import (
	"context"
	"math"
	"slices"

	"infill/samplers"
)

const (
	// believedAfter is after how many draws their weights are asked whether they can be
	// believed; where they cannot, chains take over.
	believedAfter = 256
	// walkers are the chains, and walkWarmUp their first steps, which are not counted.
	walkers, walkWarmUp = 16, 20
	// walkerMoves draws blocks of any size by the chain rule: of the samplers of
	// docs/answers.md it makes the most effective draws a row.
	walkerMoves = "chain-block"
	// mixedBelow is the R-hat up to which chains agree.
	mixedBelow = 1.05
	// beamWidth is how many likely fills a beam searches in each order, where the budget
	// affords it.
	beamWidth = 32
)

// found are fills whose energies are known, each once.
type found struct {
	slots  int
	seen   map[string]bool
	states []int
	energy []float64 // U/T
}

func newFound(slots int) *found { return &found{slots: slots, seen: map[string]bool{}} }

func (f *found) add(states []int, energy []float64) {
	var key []byte
	for i, u := range energy {
		state := states[i*f.slots : (i+1)*f.slots]
		key = key[:0]
		for _, v := range state {
			key = append(key, byte(v), byte(v>>8), byte(v>>16))
		}
		if f.seen[string(key)] || math.IsNaN(u) || math.IsInf(u, 0) {
			continue
		}
		f.seen[string(key)] = true
		f.states, f.energy = append(f.states, state...), append(f.energy, u)
	}
}

// state is the i-th fill.
func (f *found) state(i int) []int { return f.states[i*f.slots : (i+1)*f.slots] }

// best are the n likeliest fills, the likeliest first.
func (f *found) best(n int) []int { return largest(f.energy, min(n, len(f.energy))) }

// search looks for likely fills with a beam in each order, so that they are listed
// whether they are drawn or not.
func (r *run) search(ctx context.Context, target samplers.Target, orders [][]int, width int, known *found) error {
	for _, order := range orders {
		rule, err := samplers.NewChainRule(target, order)
		if err != nil {
			return err
		}
		states, logq, err := rule.Likeliest(ctx, width)
		if err != nil {
			return err
		}
		energy := logq // overwritten
		if err := target.Energy(ctx, states, energy); err != nil {
			return err
		}
		known.add(states, energy)
	}
	return nil
}

// walk runs chains from weighted draws that cannot be believed.
func (r *run) walk(ctx context.Context, target samplers.Target, known *found, draws *samplers.Importance, observe func(Progress)) (*answer, error) {
	o, n := &r.options, len(r.variables)
	kernel, err := samplers.New(walkerMoves, target)
	if err != nil {
		return nil, err
	}
	var starts []int
	for i := 0; len(starts) < walkers*n; i++ {
		if !math.IsInf(draws.LogWeight(i%draws.Len()), -1) {
			starts = append(starts, draws.State(i%draws.Len())...)
		}
	}
	streams := samplers.Streams(o.Seed, r.label+" chains", walkers)
	state, err := kernel.Init(ctx, starts)
	if err != nil {
		return nil, err
	}
	var census *samplers.Census
	var info samplers.Info
	visited := &visits{slots: n}
	for step := 1; ; step++ {
		if err := kernel.Step(ctx, state, streams, &info); err != nil {
			return nil, err
		}
		known.add(state.Positions, state.Energy)
		if step < walkWarmUp {
			continue
		}
		if census == nil {
			census = samplers.NewCensus(n, slices.Clone(known.states), slices.Clone(known.energy))
			continue
		}
		census.Observe(state)
		visited.states = append(visited.states, state.Positions...)
		visited.energy = append(visited.energy, state.Energy...)
		if step%4 != 0 {
			continue
		}
		z := census.Normaliser()
		done := z.Error <= o.Error && census.RHat() < mixedBelow
		spent, share := r.spent()
		if done || spent {
			a := r.walked(census, z, known, visited)
			a.missed = !done
			return a, nil
		}
		if observe != nil {
			observe(r.advance(int(share*100), 100, func() *answer { return r.walked(census, z, known, visited) }))
		}
	}
}

// visits are what chains were at, draw by draw.
type visits struct {
	slots  int
	states []int
	energy []float64
}

// State is that of a draw.
func (v *visits) State(i int) []int { return v.states[i*v.slots : (i+1)*v.slots] }

// walked is what chains say.
func (r *run) walked(census *samplers.Census, z samplers.Normaliser, known *found, visited *visits) *answer {
	t := r.temperature()
	rHat := census.RHat()
	a := &answer{method: MethodChains, logZ: z.Log, relative: z.Error, draws: z.Draws, effective: finiteOrNil(z.EffectiveSampleSize), rHat: finiteOrNil(rHat), distinct: len(known.energy)}
	for _, i := range known.best(4*r.options.Top + 64) {
		a.states, a.energy = append(a.states, known.state(i)), append(a.energy, known.energy[i]*t)
	}
	weights := slices.Repeat([]float64{1 / float64(z.Draws)}, z.Draws)
	for _, u := range visited.energy {
		a.mean += u * t / float64(z.Draws)
	}
	spread := 0.0
	for _, u := range visited.energy {
		spread += (u*t - a.mean) * (u*t - a.mean) / float64(z.Draws)
	}
	// What the draws are worth; those of chains that are always in the census, or
	// never, are not known to be worth more than one a chain.
	worth := float64(walkers)
	if a.effective != nil {
		worth = *a.effective
	}
	a.meanError = math.Sqrt(spread / worth)
	margins := r.weighedMargins(visited, weights)
	for _, blank := range margins {
		for _, m := range blank {
			m.squares *= float64(z.Draws) / worth
		}
	}
	a.marginals = r.listed(margins, 1/worth)
	return a
}
