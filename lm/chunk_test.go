package lm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"infill/internal/check"
	"infill/internal/modelstest"
	"infill/models"
	"infill/samplers"
)

// base is the config.json of BERT-base.
const base = `{"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
  "intermediate_size": 3072, "max_position_embeddings": 512}`

// BenchmarkChunk is where the figures of limits come from: the time of 25
// chains with 5 slots in 24 tokens, by how many tokens go into one call.
func BenchmarkChunk(b *testing.B) {
	dir := b.TempDir()
	check.OK(b, modelstest.Write(dir, base, modelstest.Options{}))
	large := check.Must(models.Open(dir))(b)
	for name, bundle := range map[string]*models.Bundle{"built-in": builtIn(b), "base": large} {
		m := engineModel(b, bundle, Options{Device: "cpu"})
		for _, gradient := range []bool{false, true} {
			for _, tokens := range []int{240, 480, 960, 1440, 3000} {
				b.Run(fmt.Sprintf("%s/gradient=%t/tokens=%d", name, gradient, tokens), func(b *testing.B) {
					m.chunk.tokens = tokens
					benchmarkChunk(b, m, gradient)
				})
			}
		}
	}
}

func benchmarkChunk(b *testing.B, m *MaskedLM, gradient bool) {
	const chains, slots, candidates = 25, 5, 250
	rng := rand.New(rand.NewPCG(3, 4))
	tokens := func(n int) []int {
		ids := make([]int, n)
		for i := range ids {
			ids[i] = 1000 + rng.IntN(20000)
		}
		return ids
	}
	ids, support := tokens(24), make([][]int, slots)
	for j := range support {
		support[j] = tokens(candidates)
	}
	states, energy := make([]int, slots*chains), make([]float64, chains)
	slopes := make([]float64, len(states)*candidates)
	evaluate := func() {
		for i := range states { // fresh states: nothing is remembered
			states[i] = rng.IntN(candidates)
		}
		target, err := m.NewTarget(ids, []int{3, 7, 11, 15, 19}, TargetOptions{Support: support})
		check.OK(b, err)
		if gradient {
			err = target.(samplers.GradientTarget).EnergyGradient(b.Context(), states, energy, slopes)
		} else {
			err = target.Energy(b.Context(), states, energy)
		}
		check.OK(b, err)
	}
	evaluate() // makes the session
	for b.Loop() {
		evaluate()
	}
	b.ReportMetric(float64(b.N*len(states))/b.Elapsed().Seconds(), "rows/s")
}
