package infill

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/lm/lmtest"
	"infill/tokenize"
)

// rowModel gives log-probabilities that tell which ids were asked about.
type rowModel struct{ *lmtest.Model }

func (m *rowModel) MaskedLogProbabilities(ctx context.Context, ids, slots []int) ([][]float32, error) {
	logp := make([][]float32, len(slots))
	for i, slot := range slots {
		sum := 0
		for position, id := range ids {
			if position != slot {
				sum += id * position
			}
		}
		logp[i] = []float32{float32(slot), float32(sum), float32(len(slots))}
	}
	return logp, m.Begin(ctx)
}

func TestLogConditionals(t *testing.T) {
	tokenizer := newTokenizer(t)
	f := New(&rowModel{newModel(32, 0)}, tokenizer)
	// [CLS] the [MASK] [MASK] . [SEP] is 2 6 4 4 17 3.
	got, err := f.LogConditionals(t.Context(), read(t, f, "the [MASK] [MASK] ."), []int{7, 9})
	if err != nil {
		t.Fatal(err)
	}
	rest := float32(6*1 + 17*4 + 3*5)
	if diff := cmp.Diff([][]float32{{2, rest + 9*3, 1}, {3, rest + 7*2, 1}}, got); diff != "" {
		t.Error(diff)
	}
	masked, err := f.LogConditionals(t.Context(), read(t, f, "the [MASK] [MASK] ."), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float32{{2, rest + 4*3, 2}, {3, rest + 4*2, 2}}, masked); diff != "" {
		t.Error(diff)
	}
	if _, err := f.LogConditionals(t.Context(), read(t, f, "the [MASK] ."), []int{7, 9}); err == nil {
		t.Error("two tokens for one slot were taken")
	}
}

func read(t *testing.T, f *Filler, text string) *tokenize.Template {
	t.Helper()
	template, err := f.Template(text)
	if err != nil {
		t.Fatal(err)
	}
	return template
}
