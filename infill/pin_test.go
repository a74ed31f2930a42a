package infill

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"infill/tokenize"

	"github.com/google/go-cmp/cmp"
)

func TestPins(t *testing.T) {
	tokenizer := newTokenizer(t)
	f := New(&fakeModel{positions: 32, bond: 1.5}, tokenizer)
	dog, _ := tokenizer.ID("dog")
	for _, sampler := range Samplers() {
		t.Run(sampler, func(t *testing.T) {
			o := chainOptions()
			o.Fill = FillAny
			o.Sampler, o.Steps, o.Chains, o.Candidates, o.Top = sampler, 400, 40, 0, 1000
			observed := 0
			o.Pins = []int{dog, Free}
			result, err := f.Fill(t.Context(), "the [MASK] [MASK] .", o, func(p Progress) {
				observed++
				for i, token := range p.TokenIDs {
					if i%2 == 0 && token != dog {
						t.Fatalf("step %d: the pinned slot holds token %d", p.Step, token)
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if observed != o.Steps+1 {
				t.Errorf("%d steps observed, want %d", observed, o.Steps+1)
			}
			if !strings.Contains(result.Signature, "|pins:8,-") {
				t.Errorf("the signature %q does not tell of the pin", result.Signature)
			}
			// The conditional law given the pin, from the fake's formula: enumerated.
			total, law := 0.0, map[int]float64{}
			for _, token := range f.fillable {
				law[token] = math.Exp(weight(dog) + weight(token) + 1.5*math.Cos(float64(dog*token)))
				total += law[token]
			}
			if sampler == "dula" {
				return // not exact: its law is its own
			}
			distance := 1.0
			for _, s := range result.Fills {
				distance -= math.Min(s.Frequency, law[s.TokenIDs[1]]/total)
				want := weight(dog) + weight(s.TokenIDs[1]) + 1.5*math.Cos(float64(dog*s.TokenIDs[1]))
				if math.Abs(s.LogLikelihood-want) > 1e-9 {
					t.Errorf("%s: U is %v, want %v", s.Text, s.LogLikelihood, want)
				}
			}
			// 8000 draws over 12 tokens: a total variation of some 0.02 is chance.
			if distance > 0.05 {
				t.Errorf("total variation %.3f from the conditional law", distance)
			}
		})
	}
}

func TestPinsRefused(t *testing.T) {
	tokenizer := newTokenizer(t)
	f := New(&fakeModel{positions: 32}, tokenizer)
	dog, _ := tokenizer.ID("dog")
	tests := map[string][]int{
		"2 given, the template has 1 slots": {dog, Free},
		"slot 1 cannot take token 4":        {tokenizer.MaskID()},
		"slot 1 cannot take token 99999":    {99999},
		"every slot is pinned":              {dog},
	}
	for want, pins := range tests {
		o := chainOptions()
		o.Pins = pins
		_, err := f.Fill(t.Context(), "the [MASK] .", o, nil)
		var option *OptionError
		if !errors.As(err, &option) || !strings.Contains(err.Error(), want) {
			t.Errorf("pins %v: got %v, want %q", pins, err, want)
		}
	}
}

func TestFreePins(t *testing.T) {
	f := New(&fakeModel{positions: 32, bond: 1}, newTokenizer(t))
	want, err := f.Fill(t.Context(), "the [MASK] [MASK] .", chainOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	o := chainOptions()
	o.Pins = []int{Free, Free}
	got, err := f.Fill(t.Context(), "the [MASK] [MASK] .", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	got.Stats.Seconds, want.Stats.Seconds = 0, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// rowModel gives log-probabilities that tell which ids were asked about.
type rowModel struct{ fakeModel }

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
	return logp, m.check(ctx)
}

func TestLogConditionals(t *testing.T) {
	tokenizer := newTokenizer(t)
	f := New(&rowModel{fakeModel{positions: 32}}, tokenizer)
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
	model := &fakeModel{positions: 32, bond: 0.7}
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
		want := weight(fill[0]) + weight(fill[1]) + model.bondOf(fill[0], fill[1])
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
