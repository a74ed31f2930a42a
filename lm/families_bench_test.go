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
			const chains, tokens, width, mask = 4, 24, 1000, 4
			slots := []int{5, 9, 14}
			rng, ids, support := rand.New(rand.NewPCG(1, 1)), make([]int, tokens), make([][]int, len(slots))
			for i := range ids {
				ids[i] = 5 + rng.IntN(20000)
			}
			for j := range support {
				support[j] = make([]int, width)
				for k := range support[j] {
					support[j][k] = 100 + k
				}
			}
			states, energy, gradient := make([]int, chains*len(slots)), make([]float64, chains), make([]float64, chains*len(slots)*width)
			evaluate := func(b *testing.B, m *lm.MaskedLM, slope bool) {
				// A target of its own: rows are not remembered from the last time.
				target, err := m.NewTarget(ids, slots, lm.TargetOptions{Support: support})
				if err != nil {
					b.Fatal(err)
				}
				for k := range states {
					states[k] = rng.IntN(width)
				}
				if slope {
					err = target.EnergyGradient(context.Background(), states, energy, gradient)
				} else {
					err = target.Energy(context.Background(), states, energy)
				}
				if err != nil {
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
					b.ReportMetric(float64(b.N*chains*len(slots))/b.Elapsed().Seconds(), "rows/s")
				})
			}
		})
	}
}
