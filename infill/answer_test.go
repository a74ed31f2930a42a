package infill

import (
	"math"
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
