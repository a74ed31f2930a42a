package infill

import (
	"context"
	"errors"
	"math"
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

func TestLogLikelihoods(t *testing.T) {
	model := newModel(32, 0.7)
	f := New(model, newTokenizer(t))
	var fills [][]int
	for i := range 100 {
		fills = append(fills, []int{6 + i%12, 6 + i*5%11})
	}
	got, err := f.LogLikelihoods(t.Context(), "the [MASK] [MASK] .", chainOptions(), fills)
	if err != nil {
		t.Fatal(err)
	}
	for i, fill := range fills {
		want := model.Weight(fill[0]) + model.Weight(fill[1]) + model.BondOf(fill[0], fill[1])
		if math.Abs(got[i]-want) > 1e-9 {
			t.Errorf("fill %v: U is %v, want %v", fill, got[i], want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.LogLikelihoods(ctx, "the [MASK] [MASK] .", chainOptions(), fills); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a cancelled call gives %v", err)
	}
	if _, err := f.LogLikelihoods(t.Context(), "the [MASK] .", chainOptions(), fills); err == nil {
		t.Error("two tokens for one slot were taken")
	}
	if _, err := f.LogLikelihoods(t.Context(), "the [MASK] .", Options{}, nil); err == nil {
		t.Error("options that are none were taken")
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
