package infill

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
)

// Weights that cannot be believed hand over to chains, whose probabilities lie as far
// from the exact ones as their errors say; the likeliest fills are all listed.
func TestChainsTakeOver(t *testing.T) {
	model := &fakeModel{positions: 64, bond: 3, deaf: true}
	filler := New(model, newTokenizer(t))
	o := DefaultOptions()
	o.Joint, o.Temperature, o.Top, o.Candidates, o.Error, o.Budget.Rows = JointPLL, 1.2, 10, 0, 0.1, 100000
	target := &fakeTarget{model: model}
	covered, runs, walked := 0, 8, 0
	if testing.Short() {
		runs = 4
	}
	for seed := range uint64(runs) {
		o.Seed = seed + 1
		r, err := filler.Fill(context.Background(), "the [MASK] [MASK] [MASK] .", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if t.Log(r.Method, r.Stats.ParetoK, r.Stats.Candidates); r.Method != MethodChains {
			continue
		}
		walked++
		if len(r.Warnings) > 0 || r.Stats.SplitRHat == nil || *r.Stats.SplitRHat > mixedBelow || r.Stats.EffectiveDraws == nil {
			t.Errorf("seed %d: warnings %q, R-hat %v", o.Seed, r.Warnings, r.Stats.SplitRHat)
		}
		var tokens []int // the candidates: all that are whole words
		for token, word := range vocabulary() {
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
	if walked < runs/2 {
		t.Fatalf("%d of %d runs took chains", walked, runs)
	}
	if share := float64(covered) / float64(walked); share < 0.6 {
		t.Errorf("%.2f of %d intervals hold the exact value, want 0.95", share, walked)
	}
	o.Budget.Rows = 1200
	r, err := filler.Fill(context.Background(), "the [MASK] [MASK] [MASK] .", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Method == MethodChains && !strings.Contains(strings.Join(r.Warnings, "\n"), "--budget") {
		t.Errorf("a budget that is too small: warnings %q", r.Warnings)
	}
}
