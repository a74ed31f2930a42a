package infill

import (
	"math"
	"testing"

	"infill/internal/lmtest"
)

// TestPlanAlone: each slot has the model's own probabilities, with all blanks
// masked, of what its blank may take.
func TestPlanAlone(t *testing.T) {
	f, model := newFake(t)
	const text = "the [MASK] sat [MASK~.at] on [MASK:2] ."
	p, err := f.Plan(t.Context(), Request{Template: text, Fit: Fit{Fill: FillAny}})
	if err != nil {
		t.Fatal(err)
	}
	template := p.Template()
	logp := expected(t, model, template.IDs, template.Slots...)
	alone, err := p.Alone(t.Context(), 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A bare blank takes every token, special ones included; the pattern has
	// cat, mat and sat.
	for slot, want := range []int{len(fakeWords()), 3, len(fakeWords()), len(fakeWords())} {
		if len(alone[slot]) != want {
			t.Errorf("slot %d has %d values, want %d", slot+1, len(alone[slot]), want)
		}
		for i, v := range alone[slot] {
			if math.Abs(v.Probability-math.Exp(float64(logp[slot][v.TokenID]))) > 1e-12 {
				t.Errorf("slot %d: %d has %v", slot+1, v.TokenID, v.Probability)
			}
			if i > 0 && v.Probability > alone[slot][i-1].Probability {
				t.Errorf("slot %d: value %d is likelier than the one before", slot+1, i+1)
			}
		}
	}
	const cat, dog = 7, 8
	alone, err = p.Alone(t.Context(), 1, []int{cat, dog})
	if err != nil {
		t.Fatal(err)
	}
	if len(alone[0]) != 1 || len(alone[1]) != 1 || alone[1][0].TokenID != cat ||
		alone[1][0].Text != "cat" || p.Written(1, cat) != "the [MASK] sat cat on [MASK:2] ." ||
		p.Written(2, dog) != "the [MASK] sat [MASK~.at] on dog [MASK] ." {
		t.Errorf("of two targets: %+v", alone)
	}
}

// TestAloneTexts: the lists of a result have five texts, each once, also where
// likely tokens spell the same.
func TestAloneTexts(t *testing.T) {
	f, model := newFake(t)
	const piece, word = 15, 18 // ##seen, seen
	model.Weight = func(token int) float64 {
		if token == piece || token == word {
			return 9
		}
		return lmtest.Weight(token)
	}
	r := fill(t, f, "the [MASK] sat", asked{Fill: FillAny})
	texts := map[string]bool{}
	for _, v := range r.Alone[0] {
		texts[v.Text] = true
	}
	if len(r.Alone[0]) != 5 || len(texts) != 5 || r.Alone[0][0].Text != "seen" {
		t.Errorf("alone: %+v", r.Alone[0])
	}
}

// TestAloneTop: the lists of a result have as many values as fills were asked
// for, and five where fewer were.
func TestAloneTop(t *testing.T) {
	f, _ := newFake(t)
	for top, want := range map[int]int{1: 5, 5: 5, 7: 7, 1000: 11} { // 11 tokens begin a word, or are none
		r := fill(t, f, "the [MASK] [MASK] sat", asked{Top: top, Fill: FillTokens})
		for blank, values := range r.Alone {
			if len(values) != want {
				t.Errorf("top %d: blank %d has %d values, want %d", top, blank+1, len(values), want)
			}
		}
	}
}
