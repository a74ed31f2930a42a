package infill

import (
	"fmt"
	"math"
	"testing"

	"infill/tokenize"
)

// The errors of weighted marginals cover what no draw has met, and a value has no less than the
// fills that are listed with it.
func TestErrorsOfWeightedMarginals(t *testing.T) {
	words := fakeWords()
	for i := range 60 {
		words = append(words, fmt.Sprintf("word%c%c", 'a'+i/26, 'a'+i%26))
	}
	tokenizer, err := tokenize.New(words, tokenize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model := &fakeModel{positions: 16, bond: 2, deaf: true, tokens: len(words)}
	f := New(model, tokenizer)
	o := DefaultOptions()
	o.Joint, o.Candidates, o.Top, o.Error, o.Budget.Rows = JointPLL, 0, 10, 0.05, 4000
	held, far, all := 0, 0, 0
	var want [2]map[int]float64
	for seed := range uint64(20) {
		o.Seed = seed + 1
		r := fill(t, f, "the [MASK] [MASK] .", o)
		if r.Method != MethodImportance {
			t.Fatalf("method %s", r.Method)
		}
		if want[0] == nil {
			want = marginalsOf(f, model)
		}
		for blank, values := range r.Marginals {
			for _, v := range values {
				listed := 0.0
				for _, fill := range r.Fills {
					if fill.TokenIDs[blank] == v.TokenIDs[0] {
						listed += *fill.Probability
					}
				}
				if v.Probability < listed-1e-9 {
					t.Errorf("seed %d, blank %d: %s has %v, and the listed fills with it %v", o.Seed, blank+1, v.Text,
						v.Probability, listed)
				}
				all++
				if d := math.Abs(v.Probability - want[blank][v.TokenIDs[0]]); d <= 1.96*v.StandardError {
					held++
				} else if d > 5*v.StandardError {
					far++
				}
			}
		}
	}
	if far > 0 || held < all*95/100 {
		t.Errorf("of %d intervals of 95 %% %d hold, and %d are more than five errors off", all, held, far)
	}
}

// marginalsOf are those of two blanks that take words, by summing over all fills.
func marginalsOf(f *Filler, model *fakeModel) [2]map[int]float64 {
	of := [2]map[int]float64{{}, {}}
	total := 0.0
	target := &fakeTarget{model: model}
	for _, a := range f.fillable {
		for _, b := range f.fillable {
			if !takesWord(f, a) || !takesWord(f, b) {
				continue
			}
			p := math.Exp(target.energyOf([]int{a, b}))
			total += p
			of[0][a] += p
			of[1][b] += p
		}
	}
	for _, blank := range of {
		for token := range blank {
			blank[token] /= total
		}
	}
	return of
}

func takesWord(f *Filler, token int) bool {
	return f.classes()[token]&(wordToken|continuingToken) == wordToken
}

// Values of differing numbers of pieces are in one list, and none has less than the listed fills
// with it.
func TestMarginalsOfSeveralLengths(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Top = 50
	r := fill(t, f, "the [MASK:1-2] sat", o)
	listed, lengths := map[string]float64{}, map[int]bool{}
	for _, fill := range r.Fills {
		listed[fill.Values[0]] += *fill.Probability
	}
	for _, v := range r.Marginals[0] {
		lengths[len(v.TokenIDs)] = true
		if v.Probability < listed[v.Text]-1e-9 || *v.AtMost < v.Probability {
			t.Errorf("%s: %v, at most %v, and the listed fills hold %v", v.Text, v.Probability, *v.AtMost,
				listed[v.Text])
		}
	}
	if !lengths[1] || !lengths[2] {
		t.Errorf("values of %v pieces, want of 1 and 2", lengths)
	}
}
