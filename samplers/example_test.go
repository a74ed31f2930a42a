package samplers_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"infill/samplers"
)

// spins are −1 or 1, all in one field: U = field · Σ s.
type spins struct {
	categories []int
	field      float64
}

var _ samplers.GradientTarget = (*spins)(nil)

func (r *spins) Categories() []int { return r.categories }

func (r *spins) Energy(_ context.Context, states []int, energy []float64) error {
	clear(energy)
	for i, spin := range states {
		energy[i/len(r.categories)] += r.field * float64(2*spin-1)
	}
	return nil
}

// EnergyGradient: the derivative by θ_j[v] is that of the linear U, at both values.
func (r *spins) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	for i := range states {
		gradient[2*i] = -r.field
		gradient[2*i+1] = r.field
	}
	return r.Energy(ctx, states, energy)
}

// DMALA samples 25 spins in a field. The mean of a spin lies within 3
// standard errors of the exact one.
func Example() {
	ctx := context.Background()
	target := &spins{categories: make([]int, 25), field: 0.3}
	for i := range target.categories {
		target.categories[i] = 2
	}
	kernel, err := samplers.New("dmala", target)
	if err != nil {
		log.Fatal(err)
	}
	streams := samplers.Streams(7, "example", 4)
	draws := make([][]float64, len(streams))
	plan := samplers.Plan{Streams: streams, WarmUp: 200, Steps: 2000}
	_, err = samplers.Sample(ctx, kernel, samplers.RandomPositions(target, streams), plan, func(s samplers.Step) error {
		for c := range draws {
			if !s.WarmUp {
				draws[c] = append(draws[c], float64(2*s.State.Position(c)[0]-1))
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	sum := 0.0
	for _, chain := range draws {
		for _, spin := range chain {
			sum += spin
		}
	}
	const exact = 0.291313 // tanh 0.3
	mean := sum / 8000
	off := (mean - exact) / math.Sqrt((1-mean*mean)/samplers.EffectiveSampleSize(draws))
	fmt.Println("within 3 standard errors of the exact mean:", off > -3 && off < 3)
	fmt.Println("chains agree:", samplers.SplitRHat(draws) < samplers.LargestRHat)
	// Output:
	// within 3 standard errors of the exact mean: true
	// chains agree: true
}
