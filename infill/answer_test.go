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

// The fixed point has the conditionals of the joint that they are of, and another start
// of compatible conditionals leads nowhere else.
func TestClosest(t *testing.T) {
	p := [][]float64{{0.3, 0.1, 0.05}, {0.05, 0.2, 0.3}} // [a][b]
	first, second := make([][]float64, 3), make([][]float64, 2)
	for b := range 3 {
		for a := range 2 {
			first[b] = append(first[b], math.Log(p[a][b]/(p[0][b]+p[1][b])))
		}
	}
	for a := range 2 {
		for b := range 3 {
			second[a] = append(second[a], math.Log(p[a][b]/(p[a][0]+p[a][1]+p[a][2])))
		}
	}
	joint, change := closest(first, second)
	for a := range 2 {
		for b := range 3 {
			if got := math.Exp(joint[a*3+b]); math.Abs(got-p[a][b]) > 1e-6 {
				t.Errorf("J(%d, %d) is %v, want %v", a, b, got, p[a][b])
			}
		}
	}
	if change > 1e-6 {
		t.Errorf("it still changes by %v", change)
	}
}
