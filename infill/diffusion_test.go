package infill

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infill/internal/modelstest"
	"infill/lm"
)

// diffusion is the config.json of a masked diffusion checkpoint that began as ModernBERT-base, of less width.
const diffusion = `{"architectures": ["ModernBertForMaskedLM"], "attention_bias": false, "attention_dropout": 0.0,
  "bos_token_id": 303, "classifier_activation": "gelu", "classifier_bias": false, "classifier_dropout": 0.0,
  "classifier_pooling": "mean", "cls_token_id": 303, "decoder_bias": true, "deterministic_flash_attn": false,
  "dtype": "bfloat16", "embedding_dropout": 0.0, "eos_token_id": 304, "global_attn_every_n_layers": 3,
  "global_rope_theta": 160000.0, "gradient_checkpointing": false, "hidden_activation": "gelu", "hidden_size": 24,
  "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 36, "layer_norm_eps": 1e-05,
  "local_attention": 128, "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": false,
  "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": false, "norm_eps": 1e-05, "num_attention_heads": 2,
  "num_hidden_layers": 22, "pad_token_id": 305, "position_embedding_type": "absolute", "repad_logits_with_grad": false,
  "sep_token_id": 304, "sparse_pred_ignore_index": -100, "sparse_prediction": false, "transformers_version": "4.57.1",
  "vocab_size": 320}`

// TestMaskedDiffusion: a masked diffusion model runs as the masked model that it is. A likelihood is the product in the
// order in which it fills the masks, and confidence fills them too.
func TestMaskedDiffusion(t *testing.T) {
	dir := t.TempDir()
	if err := modelstest.Write(dir, diffusion, modelstest.Options{DType: "BF16", Spread: 0.3, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	const words = "tokenizer.json" // of 315 tokens: the table is longer, as ModernBERT's is
	content, err := os.ReadFile(filepath.Join("../lm/internal/bert/testdata/modernbert", words))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, words), content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"vocab.txt", "tokenizer_config.json"} {
		if err := os.Remove(filepath.Join(dir, other)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Open(OpenOptions{Model: dir, Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	const question = "why? [MASK] [MASK] [MASK] [MASK]"
	template, err := f.Template(question)
	if err != nil {
		t.Fatal(err)
	}
	for order, slots := range map[Order][][]int{
		orderBoth: {{0, 1, 2, 3}, {3, 2, 1, 0}}, orderLeftToRight: {{0, 1, 2, 3}}, "3,1,4,2": {{2, 0, 3, 1}},
	} {
		o := DefaultOptions()
		o.Order, o.Fill, o.Budget.Rows, o.Top = order, FillAny, 300, 2
		r, err := f.Fill(t.Context(), question, o, nil)
		if err != nil {
			t.Fatal(err)
		}
		model, err := f.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, fill := range r.Fills {
			p := 0.0
			for _, order := range slots {
				ids := slices.Clone(template.IDs)
				log := 0.0
				for _, slot := range order {
					at := template.Slots[slot]
					logp, err := model.LogProbabilities(t.Context(), []lm.Row{{IDs: ids, Position: at}})
					if err != nil {
						t.Fatal(err)
					}
					ids = slices.Clone(ids)
					ids[at] = fill.TokenIDs[slot]
					log += float64(logp[0][ids[at]])
				}
				p += math.Exp(log) / float64(len(slots))
			}
			if math.Abs(fill.LogLikelihood-math.Log(p)) > 1e-4 {
				t.Errorf("%s: %q has %v, want %v", order, fill.Text, fill.LogLikelihood, math.Log(p))
			}
		}
	}
	o := DefaultOptions()
	o.Mode, o.Fill, o.Top = ModeDecode, FillAny, 1
	r, err := f.Fill(t.Context(), question, o, nil)
	if err != nil || len(r.Fills) != 1 || len(r.Fills[0].TokenIDs) != 4 {
		t.Errorf("by confidence: %+v, %v", r, err)
	}
}
