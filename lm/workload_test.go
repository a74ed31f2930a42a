package lm_test

import (
	"context"
	"math/rand/v2"

	"infill/lm"
	"infill/samplers"
)

// The usual workload of benchmarks.
const benchSlots, benchTokens = 5, 24

// workload is energies, or gradients, of fresh states of a random text.
type workload struct {
	rng                *rand.Rand
	ids, slots, states []int
	support            [][]int
	energy, gradient   []float64
}

func newWorkload(chains, tokens, slots, candidates int) *workload {
	w := &workload{
		rng: rand.New(rand.NewPCG(1, 1)), ids: make([]int, tokens), states: make([]int, chains*slots),
		energy: make([]float64, chains), gradient: make([]float64, chains*slots*candidates),
	}
	for i := range w.ids {
		w.ids[i] = 5 + w.rng.IntN(20000)
	}
	for j := range slots {
		w.slots = append(w.slots, 5+j*4)
		support := make([]int, candidates)
		for k := range support {
			support[k] = 100 + k
		}
		w.support = append(w.support, support)
	}
	return w
}

// run takes a target of its own: rows are not remembered from the last time.
func (w *workload) run(ctx context.Context, m *lm.MaskedLM, gradient bool) error {
	target, err := m.NewTarget(w.ids, w.slots, lm.TargetOptions{Support: w.support})
	if err != nil {
		return err
	}
	for k := range w.states {
		w.states[k] = w.rng.IntN(len(w.support[0]))
	}
	if gradient {
		return target.(samplers.GradientTarget).EnergyGradient(ctx, w.states, w.energy, w.gradient)
	}
	return target.Energy(ctx, w.states, w.energy)
}
