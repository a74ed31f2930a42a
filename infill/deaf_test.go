package infill

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
)

// Where the chain rule knows nothing of what binds the blanks, probabilities of weighted
// draws still lie as far from the exact ones as their errors say, and the likeliest fills
// are all listed.
func TestWeighedWhereTheChainRuleIsDeaf(t *testing.T) {
	model := &fakeModel{positions: 64, bond: 3, deaf: true}
	filler := New(model, newTokenizer(t))
	o := DefaultOptions()
	o.Joint, o.Temperature, o.Top, o.Candidates, o.Error, o.Budget.Rows = JointPLL, 1.2, 10, 0, 0.1, 100000
	target := &fakeTarget{model: model}
	covered, runs := 0, 20
	if testing.Short() {
		runs = 4
	}
	for seed := range uint64(runs) {
		o.Seed = seed + 1
		r, err := filler.Fill(context.Background(), "the [MASK] [MASK] [MASK] .", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Method != MethodImportance || len(r.Fills) != o.Top || len(r.Warnings) > 0 ||
			r.Stats.EffectiveDraws == nil || *r.Stats.NormaliserError > o.Error {
			t.Errorf("seed %d: %s, %d fills, warnings %q, error %v", o.Seed, r.Method, len(r.Fills), r.Warnings,
				*r.Stats.NormaliserError)
		}
		var tokens []int // the candidates: all that are whole words
		for token, word := range fakeWords() {
			if slices.Contains(filler.fillable, token) && !strings.HasPrefix(word, "##") && word != "." {
				tokens = append(tokens, token)
			}
		}
		var all []float64
		for _, a := range tokens {
			for _, b := range tokens {
				for _, c := range tokens {
					all = append(all, target.energyOf([]int{a, b, c})/o.Temperature)
				}
			}
		}
		slices.Sort(all)
		slices.Reverse(all)
		total := 0.0
		for _, u := range all {
			total += math.Exp(u)
		}
		for i, f := range r.Fills {
			want := math.Exp(target.energyOf(f.TokenIDs)/o.Temperature) / total
			if got := math.Exp(all[i]) / total; math.Abs(want-got) > 1e-12 {
				t.Errorf("fill %d is %v with %v, and there is one of %v", i+1, f.Text, want, got)
			}
			if d := math.Abs(*f.Probability - want); i == 0 && d <= 1.96**f.ProbabilityError {
				covered++
			} else if d > 5**f.ProbabilityError {
				t.Errorf("%s: %v ± %v, and it is %v", f.Text, *f.Probability, *f.ProbabilityError, want)
			}
		}
		for blank, values := range r.Marginals {
			for _, v := range values {
				if !(v.Probability > 0 && v.StandardError > 0) {
					t.Errorf("blank %d: %+v", blank, v)
				}
			}
		}
	}
	if covered < runs-runs/8 {
		t.Errorf("%d of %d intervals hold the exact value, want 0.95", covered, runs)
	}
	o.Budget.Rows = 600
	r, err := filler.Fill(context.Background(), "the [MASK] [MASK] [MASK] .", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(r.Warnings, "\n"), "--budget") {
		t.Errorf("a budget that is too small: warnings %q", r.Warnings)
	}
}
