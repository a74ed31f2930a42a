package infill

import (
	"context"
	"math"
	"slices"

	"infill/samplers"
)

const (
	// walkers are the chains, and walkWarmUp their first steps, which are not counted.
	walkers, walkWarmUp = 16, 20
	// walkerMoves draws blocks of any size by the chain rule: of the samplers of
	// docs/defaults.md none makes more effective draws a row, but for chance.
	walkerMoves = "chain-block"
	// mixedBelow is the R-hat up to which chains agree.
	mixedBelow = 1.05
)

// walk runs chains from weighted draws that cannot be believed.
func (r *run) walk(ctx context.Context, target samplers.Target, known *found, draws *samplers.Importance, observe func(Progress)) (*answer, error) {
	o, n := &r.options, len(r.variables)
	kernel, err := samplers.New(walkerMoves, target)
	if err != nil {
		return nil, err
	}
	streams := samplers.Streams(o.Seed, r.label+" chains", walkers)
	points := draws.Points()
	cumulative, sum := make([]float64, len(points)), 0.0
	for i, p := range points {
		sum += p.Weight
		cumulative[i] = sum
	}
	var starts []int
	for _, stream := range streams {
		starts = append(starts, points[drawCategory(cumulative, stream)].State...)
	}
	state, err := kernel.Init(ctx, starts)
	if err != nil {
		return nil, err
	}
	var census *samplers.Census
	var info samplers.Info
	visited := &visits{}
	before := r.sofar
	r.sofar = func() *answer {
		if census != nil && visited.rounds > 0 {
			if z := census.Normaliser(); !math.IsNaN(z.Log) && !math.IsInf(z.Error, 0) {
				return r.walked(census, z, known, visited)
			}
		}
		return before()
	}
	for step := 1; ; step++ {
		if err := kernel.Step(ctx, state, streams, &info); err != nil {
			return nil, err
		}
		old := len(known.energy)
		known.add(state.Positions, state.Energy)
		spent := r.left() <= 0
		if news := slices.Max(known.best(climbed)) >= old; news && !spent {
			// What belongs to the likeliest is climbed from, and counting begins anew
			// with what is known now.
			if _, err := r.climb(ctx, target, known); err != nil {
				return nil, err
			}
			census = nil
		}
		if step < walkWarmUp && !spent {
			continue
		}
		if census == nil {
			census = samplers.NewCensus(n, slices.Clone(known.states), slices.Clone(known.energy))
			visited = &visits{}
			if !spent {
				continue
			}
		}
		census.Observe(state)
		visited.add(state)
		if !spent && visited.rounds%4 != 0 {
			continue
		}
		z := census.Normaliser()
		done := z.Error <= o.Error && census.RHat() < mixedBelow
		if done || spent {
			a := r.sofar()
			a.missed = !done
			return a, nil
		}
		if observe != nil {
			observe(r.advance(int(r.share()*100), 100, r.sofar))
		}
	}
}

// visits are what chains were at, draw by draw.
type visits struct {
	points []samplers.Point
	rounds int
}

func (v *visits) add(s *samplers.State) {
	v.rounds++
	for c := range s.Chains() {
		v.points = append(v.points, samplers.Point{State: slices.Clone(s.Position(c)), Energy: s.Energy[c], Drawn: true})
	}
}

// walked is what chains say.
func (r *run) walked(census *samplers.Census, z samplers.Normaliser, known *found, visited *visits) *answer {
	t := r.temperature()
	rHat := census.RHat()
	a := &answer{method: MethodChains, logZ: z.Log, relative: z.Error, draws: z.Draws, effective: finiteOrNil(z.EffectiveSampleSize), rHat: finiteOrNil(rHat), distinct: len(known.energy)}
	for _, i := range known.best(4*r.options.Top + 64) {
		a.states, a.energy = append(a.states, known.state(i)), append(a.energy, known.energy[i]*t)
	}
	n := float64(len(visited.points))
	for i := range visited.points {
		p := &visited.points[i]
		p.Weight = 1 / n
		a.mean += p.Energy * t / n
	}
	spread := 0.0
	for _, p := range visited.points {
		spread += (p.Energy*t - a.mean) * (p.Energy*t - a.mean) / n
	}
	// What the draws are worth; those of chains that are always in the census, or
	// never, are not known to be worth more than one a chain.
	worth := float64(walkers)
	if a.effective != nil {
		worth = *a.effective
	}
	a.meanError = math.Sqrt(spread / worth)
	margins := r.weighedMargins(visited.points)
	for _, blank := range margins {
		for _, m := range blank {
			m.squares *= n / worth
		}
	}
	a.marginals = r.listed(margins, 1/worth, 0)
	return a
}
