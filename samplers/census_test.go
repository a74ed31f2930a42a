package samplers

import (
	"context"
	"math"
	"slices"
	"testing"
)

// Probabilities by a census lie as far from the exact ones as its errors say,
// whichever states are listed.
func TestCensus(t *testing.T) {
	ctx := context.Background()
	target := foreignTable(t)
	w := newWorld(t, target)
	order := ascending(w.Len())
	slices.SortFunc(order, func(a, b int) int {
		if w.Energy[a] > w.Energy[b] {
			return -1
		}
		return 1
	})
	repetitions := 150
	if testing.Short() {
		repetitions = 40
	}
	for _, size := range []int{1, 4, 12} {
		var states []int
		var energy []float64
		for _, i := range append(order[:size:size], order[0]) { // one of them twice
			states, energy = append(states, w.State(i)...), append(energy, w.Energy[i])
		}
		const chains, steps = 4, 250
		covered := 0.0
		for seed := range uint64(repetitions) {
			kernel := makeKernel(t, "chain-block", target)
			streams := Streams(seed, "census", chains)
			census := NewCensus(3, states, energy)
			_, err := Sample(ctx, kernel, RandomPositions(target, streams), Plan{Streams: streams, WarmUp: 20, Steps: steps}, func(s Step) error {
				if !s.WarmUp {
					census.Observe(s.State)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			z := census.Normaliser()
			if p, e := z.Probability(w.Energy[order[0]]); math.Abs(p-w.Probability[order[0]]) <= 1.96*e {
				covered++
			}
			if z.Draws != chains*steps || !(census.RHat() < 1.1) || z.Error > 0.5 {
				t.Errorf("%+v, R-hat %v", z, census.RHat())
			}
		}
		if share := covered / float64(repetitions); !(share > 0.88) {
			t.Errorf("%d states listed: %.3f of the intervals hold the exact value, want 0.95", size, share)
		}
	}
	// What was never seen is not known.
	empty := NewCensus(3, w.State(0), []float64{math.Inf(-1)})
	empty.Observe(&State{Positions: slices.Clone(w.State(0)), Energy: []float64{w.Energy[0]}})
	if z := empty.Normaliser(); !math.IsNaN(z.Log) || !math.IsInf(z.Error, 1) || z.Believable() {
		t.Errorf("nothing listed: %+v", z)
	}
}
