package lm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

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
	dir, err := os.MkdirTemp("", "infill-chunk")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	if err := modelstest.Write(dir, base, modelstest.Options{}); err != nil {
		b.Fatal(err)
	}
	for name, place := range map[string]string{"built-in": "", "base": dir} {
		bundle, err := models.Open(place)
		if err != nil {
			b.Fatal(err)
		}
		m, err := Open(context.Background(), bundle, Options{Device: "cpu", MaskID: 103})
		if err != nil {
			b.Fatal(err)
		}
		for _, gradient := range []bool{false, true} {
			for _, tokens := range []int{240, 480, 960, 1440, 3000} {
				b.Run(fmt.Sprintf("%s/gradient=%t/tokens=%d", name, gradient, tokens), func(b *testing.B) {
					m.chunk.tokens = tokens
					benchmarkChunk(b, m, 25, gradient)
				})
			}
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkChunk(b *testing.B, m *MaskedLM, chains int, gradient bool) {
	ctx, rng := context.Background(), rand.New(rand.NewPCG(3, 4))
	ids, slots, support := make([]int, 24), []int{3, 7, 11, 15, 19}, make([][]int, 5)
	for i := range ids {
		ids[i] = 1000 + rng.IntN(20000)
	}
	for j := range support {
		for range 250 {
			support[j] = append(support[j], 1000+rng.IntN(20000))
		}
	}
	states, energy, slopes := make([]int, 5*chains), make([]float64, chains), make([]float64, 5*chains*250)
	evaluate := func() {
		for i := range states { // fresh states: nothing is remembered
			states[i] = rng.IntN(250)
		}
		target, err := m.NewTarget(ids, slots, TargetOptions{Support: support})
		if err != nil {
			b.Fatal(err)
		}
		if gradient {
			err = target.(samplers.GradientTarget).EnergyGradient(ctx, states, energy, slopes)
		} else {
			err = target.Energy(ctx, states, energy)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	evaluate()
	for b.Loop() {
		evaluate()
	}
	b.ReportMetric(float64(b.N*len(states))/b.Elapsed().Seconds(), "rows/s")
}
