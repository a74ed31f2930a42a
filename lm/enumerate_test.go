package lm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"infill/lm"
)

// bothWays is the mean of the chain rule from left to right and from right to left.
func bothWays() []lm.Term {
	return append(lm.ChainRule([]int{0, 1, 2}, 0), lm.ChainRule([]int{2, 1, 0}, 1)...)
}

func TestEnumerate(t *testing.T) {
	m := tiny(t)
	for i, o := range []lm.TargetOptions{
		{Energy: lm.PLL}, {Energy: lm.Filled}, {Terms: lm.ChainRule([]int{1, 2, 0}, 0)}, {Terms: bothWays()},
		{Terms: []lm.Term{{Slot: 0, Masked: []int{0, 2}, Weight: 0.5}, {Slot: 2, Masked: []int{0, 2}, Weight: -1},
			{Slot: 1, Weight: 0.25}}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			target := newTarget(t, m, o)
			all := target.(lm.EnumerableTarget)
			states := manyStates()
			got, want, rows := make([]float64, len(states)/3), make([]float64, len(states)/3), 0
			if err := all.Enumerate(context.Background(), got, func(done int) { rows = done }); err != nil {
				t.Fatal(err)
			}
			if float64(rows) != all.EnumerationRows() || target.Counts().Rows > int64(rows) {
				t.Errorf("told of %d rows and ran %d: expected %v", rows, target.Counts().Rows, all.EnumerationRows())
			}
			if err := newTarget(t, m, o).Energy(context.Background(), states, want); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if !close32(got[i], want[i]) {
					t.Fatalf("fill %v: %g, its energy is %g", states[3*i:3*i+3], got[i], want[i])
				}
			}
		})
	}
}

// An enumeration that is called off leaves U where it is known: by the orders that are whole, or for the fills whose
// rows all ran.
func TestEnumerateKnown(t *testing.T) {
	m := tiny(t)
	var support []int
	for v := range 20 {
		support = append(support, 5+v)
	}
	enumerate := func(ctx context.Context, terms []lm.Term, energy lm.Energy, progress func(int)) ([]float64, error) {
		target := targetOf(t, m, exampleIDs, exampleSlots[:3],
			lm.TargetOptions{Support: [][]int{support, support, support}, Terms: terms, Energy: energy},
		).(lm.EnumerableTarget)
		u := make([]float64, 20*20*20)
		return u, target.Enumerate(ctx, u, progress)
	}
	for _, c := range []struct {
		name        string
		terms, like []lm.Term // like gives what is known
		energy      lm.Energy
		rows, known int // of which on it is called off, and fills known then
	}{
		{"pll, at first", nil, nil, lm.PLL, 400, 0},
		{"pll, in its last rows", nil, nil, lm.PLL, 800 + 256, 256 * 20},
		{"one order", bothWays(), lm.ChainRule([]int{0, 1, 2}, 0), "", 1 + 20 + 256, 256 * 20},
		{"between orders", bothWays(), lm.ChainRule([]int{0, 1, 2}, 0), "", 1 + 20 + 400, 8000},
		{"in the second", bothWays(), lm.ChainRule([]int{0, 1, 2}, 0), "", 1 + 20 + 400 + 20, 8000},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, err := enumerate(t.Context(), c.like, c.energy, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got, err := enumerate(ctx, c.terms, c.energy, func(rows int) {
				if rows >= c.rows {
					cancel()
				}
			})
			known := 0
			for i, u := range got {
				if math.IsNaN(u) {
					continue
				}
				if known++; !close32(u, want[i]) {
					t.Fatalf("fill %d: %g, want %g", i, u, want[i])
				}
			}
			if !errors.Is(err, context.Canceled) || known != c.known {
				t.Errorf("%d fills known, want %d; error %v", known, c.known, err)
			}
		})
	}
}

// The mean of two orders has the mean of their probabilities, and its gradient is
// that of the orders by their shares.
func TestMeanOfChainRules(t *testing.T) {
	m := tiny(t)
	for _, gradient := range []lm.Gradient{lm.Local, lm.Full} {
		states := manyStates()
		evaluate := func(terms []lm.Term) ([]float64, []float64) {
			return evaluateAll(t, newTarget(t, m, lm.TargetOptions{Gradient: gradient, Terms: terms}), states, 20)
		}
		left, leftGradient := evaluate(lm.ChainRule([]int{0, 1, 2}, 0))
		right, rightGradient := evaluate(lm.ChainRule([]int{2, 1, 0}, 0))
		both, bothGradient := evaluate(bothWays())
		for i := range both {
			a, b := math.Exp(left[i]), math.Exp(right[i])
			if want := math.Log((a + b) / 2); !close32(both[i], want) {
				t.Fatalf("%s, fill %d: %g, want %g", gradient, i, both[i], want)
			}
			for j := i * 15; j < (i+1)*15; j++ {
				if want := (a*leftGradient[j] + b*rightGradient[j]) / (a + b); !close32(bothGradient[j], want) {
					t.Fatalf("%s, fill %d: gradient %g, want %g", gradient, i, bothGradient[j], want)
				}
			}
		}
	}
}

// Over the whole vocabulary a chain rule's probabilities sum to one.
func TestChainRuleSumsToOne(t *testing.T) {
	m := tiny(t)
	all := make([]int, m.Vocabulary())
	for i := range all {
		all[i] = i
	}
	target := targetOf(t, m, exampleIDs, exampleSlots[:2], lm.TargetOptions{
		Support: [][]int{all, all}, Terms: append(lm.ChainRule([]int{0, 1}, 0), lm.ChainRule([]int{1, 0}, 1)...)})
	energy := make([]float64, len(all)*len(all))
	if err := target.(lm.EnumerableTarget).Enumerate(context.Background(), energy, nil); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, u := range energy {
		sum += math.Exp(u)
	}
	if math.Abs(sum-1) > 1e-4 {
		t.Errorf("the probabilities sum to %g", sum)
	}
	terms := lm.ChainRule([]int{0, 1, 2}, 1)
	_, err := m.NewTarget(exampleIDs, exampleSlots, lm.TargetOptions{Support: exampleKinds, Terms: terms})
	if err == nil {
		t.Error("an energy without its first part was taken")
	}
}
