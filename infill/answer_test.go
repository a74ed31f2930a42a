package infill

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

// Probabilities of enumerated fills are those of the energy, at any temperature, and
// marginals sum them up.
func TestExactProbabilities(t *testing.T) {
	f, model := newFake(t)
	for _, temperature := range []float64{1, 2} {
		o := DefaultOptions()
		o.Joint, o.Fill, o.Candidates, o.Temperature, o.Top = JointPLL, FillAny, 0, temperature, 1000
		result := fill(t, f, twoSlots, o)
		if result.Method != MethodExact {
			t.Fatalf("method %s", result.Method)
		}
		z := 0.0
		tokens := f.fillable
		energy := func(a, b int) float64 { return (weight(a) + weight(b) + model.bondOf(a, b)) / temperature }
		for _, a := range tokens {
			for _, b := range tokens {
				z += math.Exp(energy(a, b))
			}
		}
		for _, fill := range result.Fills {
			want := math.Exp(energy(fill.TokenIDs[0], fill.TokenIDs[1])) / z
			if math.Abs(*fill.Probability-want) > 1e-9 || *fill.ProbabilityError != 0 {
				t.Errorf("%s: %v ± %v, want %v", fill.Text, *fill.Probability, *fill.ProbabilityError, want)
			}
		}
		for blank, values := range result.Marginals {
			for _, v := range values {
				want := 0.0
				for _, other := range tokens {
					pair := [2]int{v.TokenIDs[0], other}
					if blank == 1 {
						pair = [2]int{other, v.TokenIDs[0]}
					}
					want += math.Exp(energy(pair[0], pair[1])) / z
				}
				if math.Abs(v.Probability-want) > 1e-9 {
					t.Errorf("blank %d, %s: %v, want %v", blank+1, v.Text, v.Probability, want)
				}
			}
		}
	}
}

// Twenty blanks are more than the budget affords draws for: the fill ends within half of it,
// says so, tells of its progress and has an answer on the way.
func TestManyBlanks(t *testing.T) {
	f, _ := newFake(t)
	o := DefaultOptions()
	o.Fill, o.Seed, o.Candidates = FillAny, 1, 0
	o.Order = OrderLeftToRight
	o.Budget = Budget{Rows: 100}
	const template = "the [MASK] sat [MASK] on [MASK] the [MASK]"
	if err := f.Check(template, o); err != nil {
		t.Fatal(err)
	}
	rows, few := f.Rows(template, o)
	if !few || rows > o.Budget.Rows/2 {
		t.Fatalf("before: %d rows, few %v", rows, few)
	}
	var steps, answers int
	var on *Result
	result, err := f.Fill(t.Context(), template, o, func(p Progress) {
		steps++
		if p.Answer != nil {
			answers++
			if on == nil {
				on = p.Answer()
			}
		}
		if p.Step > p.Steps {
			t.Errorf("step %d of %d", p.Step, p.Steps)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if steps < 4 || answers == 0 {
		t.Errorf("%d steps heard, %d with an answer", steps, answers)
	}
	if len(result.Fills) == 0 || !slices.ContainsFunc(result.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "4 slots are too many for the budget of 100 model rows")
	}) {
		t.Errorf("%d fills, warnings %q", len(result.Fills), result.Warnings)
	}
	if on.Method != "" || len(on.Fills) == 0 || on.Fills[0].Probability != nil {
		t.Errorf("on the way: method %q, fills %v", on.Method, on.Fills)
	}
	if _, err := json.Marshal(on); err != nil {
		t.Error(err)
	}
	for slots := 2; slots <= 40; slots++ {
		if e := o.effort(slots, 2, 4000); e.few && (e.rows > 2000 && e.width > 1) || !e.few && e.rows > 4000 || e.few != (slots > 15) {
			t.Errorf("%d slots: %+v", slots, e)
		}
	}
}
