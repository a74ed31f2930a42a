package infill

import (
	"context"
	"math"
	"slices"

	"infill/samplers"
)

// The temperatures between which ModeBest falls.
const (
	hottest = 2
	coldest = 0.1
)

// anneal searches, and pools every state that was seen. With Rank "final" it
// pools the best state of each chain alone.
func (r *run) anneal(ctx context.Context) error {
	o := r.options
	energy := make([]float64, o.Chains)
	r.stepSize = o.StepSize
	best, err := samplers.Anneal(ctx, r.kernel, r.start, r.streams, samplers.AnnealOptions{Steps: o.Steps, Start: hottest, End: coldest}, func(s samplers.Step) error {
		if s.Number == 0 {
			return nil
		}
		r.report(s, o.StepSize)
		r.count(s)
		if o.Rank == RankDistinct {
			for c, u := range s.State.Energy {
				energy[c] = u * s.Temperature
			}
			r.pool.add(s.State.Positions, energy)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Last, so that they are the final states; a chain's best may be its start.
	r.pool.add(best.Positions, best.Energy)
	return nil
}

// rounds is how often a decoding predicts.
func (r *run) rounds() int { return min(r.options.Steps, len(r.variables)) }

// decode fills by confidence: the first chain takes the most probable token each
// time, the others draw.
func (r *run) decode(ctx context.Context) error {
	var positions []int
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
		positions = append(positions, p.Positions...)
	}
	r.pool.add(positions, slices.Repeat([]float64{math.NaN()}, r.options.Chains))
	if err := r.pool.evaluate(ctx, r.target); err != nil || r.observe == nil {
		return err
	}
	p := Progress{Template: r.typed.Text, Step: (r.place + 1) * r.options.Steps, Steps: r.places * r.options.Steps, Pieces: r.pieces()}
	for _, fill := range r.pool.final() {
		p.TokenIDs = append(p.TokenIDs, r.tokens(r.pool.state(int(fill)))...)
		p.LogLikelihoods = append(p.LogLikelihoods, r.pool.energy[fill])
	}
	r.observe(p)
	return nil
}
