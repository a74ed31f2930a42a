package samplers_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"infill/internal/targets"
	"infill/samplers"
)

// DMALA samples a lattice of 25 spins. The mean of a spin lies within 3
// standard errors of the exact one.
func Example() {
	ctx := context.Background()
	target, err := targets.NewIsing(5, 5, 0, 0.3)
	if err != nil {
		log.Fatal(err)
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
