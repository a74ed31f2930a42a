package lm_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"infill/lm"
	"infill/models"
	"infill/models/modelstest"
	"infill/models/safetensors"
)

// published are the shapes of well-known models, as their config.json has them.
var published = []struct{ name, config string }{
	{"distilbert-base", `{"model_type": "distilbert", "vocab_size": 30522, "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512}`},
	{"electra-base-generator", `{"model_type": "electra", "vocab_size": 30522, "embedding_size": 768, "hidden_size": 256, "num_hidden_layers": 12,
		"num_attention_heads": 4, "intermediate_size": 1024, "max_position_embeddings": 512}`},
	{"roberta-base", `{"model_type": "roberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}`},
	{"xlm-roberta-base", `{"model_type": "xlm-roberta", "vocab_size": 250002, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}`},
	{"albert-base", `{"model_type": "albert", "vocab_size": 30000, "embedding_size": 128, "hidden_size": 768, "num_hidden_layers": 12,
		"num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512}`},
	{"mobilebert", `{"model_type": "mobilebert", "vocab_size": 30522, "embedding_size": 128, "hidden_size": 512, "intra_bottleneck_size": 128,
		"num_hidden_layers": 24, "num_attention_heads": 4, "intermediate_size": 512, "max_position_embeddings": 512}`},
	{"deberta-v3-small", `{"model_type": "deberta-v2", "vocab_size": 128100, "hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12,
		"intermediate_size": 3072, "max_position_embeddings": 512, "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
		"share_att_key": true, "pos_att_type": "p2c|c2p", "position_biased_input": false, "type_vocab_size": 0}`},
	{"modernbert-base", `{"model_type": "modernbert", "vocab_size": 50368, "hidden_size": 768, "num_hidden_layers": 22, "num_attention_heads": 12,
		"intermediate_size": 1152, "max_position_embeddings": 8192}`},
}

// BenchmarkFamilies measures models of published shapes with random 16-bit
// weights: opening up to the first energy (the session is made then), and
// masked rows per second of energies, and of energies with full gradients, of
// 4 chains with 3 slots in 24 tokens over 1,000 candidates. Name one:
//
//	go test ./lm -run '^$' -bench Families/albert-base
func BenchmarkFamilies(b *testing.B) {
	for _, p := range published {
		b.Run(p.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), p.name)
			if err := modelstest.WriteJSON(dir, []byte(p.config), modelstest.Options{DType: safetensors.F16}); err != nil {
				b.Fatal(err)
			}
			const mask = 4
			work := newWorkload(4, 24, 3, 1000)
			evaluate := func(b *testing.B, m *lm.MaskedLM, gradient bool) {
				if err := work.run(context.Background(), m, gradient); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("open", func(b *testing.B) {
				for b.Loop() {
					bundle, err := models.OpenDir(dir)
					if err != nil {
						b.Fatal(err)
					}
					m, err := lm.Open(context.Background(), bundle, lm.Options{Device: "cpu", MaskID: mask})
					if err != nil {
						b.Fatal(err)
					}
					evaluate(b, m, false)
					if err := m.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
			bundle, err := models.OpenDir(dir)
			if err != nil {
				b.Fatal(err)
			}
			m, err := lm.Open(context.Background(), bundle, lm.Options{Device: "cpu", MaskID: mask})
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			for _, slope := range []bool{false, true} {
				name := map[bool]string{false: "energy", true: "gradient"}[slope]
				b.Run(name, func(b *testing.B) {
					evaluate(b, m, slope)
					for b.Loop() {
						evaluate(b, m, slope)
					}
					b.ReportMetric(float64(b.N*len(work.states))/b.Elapsed().Seconds(), "rows/s")
				})
			}
		})
	}
}

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
		return target.EnergyGradient(ctx, w.states, w.energy, w.gradient)
	}
	return target.Energy(ctx, w.states, w.energy)
}
