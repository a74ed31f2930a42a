package infill

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/diff/fd"

	"infill/internal/lmtest"
	"infill/lm"
)

// TestTied compares the frequencies of a template with two blanks of one name and
// one free slot with the exact distribution over all pairs of tokens.
func TestTied(t *testing.T) {
	for _, sampler := range []string{"dmala", "gwg", "lb-1", "gibbs-x", "hamming-ball"} {
		t.Run(sampler, func(t *testing.T) {
			f, model := newFake(t)
			o := chainOptions()
			o.Chains.Sampler, o.Samples, o.Chains.Steps, o.Top, o.Chains.Candidates, o.Seed = sampler, followed(300),
				400, 1000, 3, 4
			result := fill(t, f, "the [MASK=x] sat on [MASK] and the [MASK=x]", o)
			if len(result.Stats.Chains.Candidates) != 2 {
				t.Errorf("%d slots move, want 2", len(result.Stats.Chains.Candidates))
			}
			var best [2][]int // of each variable
			for _, s := range result.Fills {
				for i := range best {
					if !slices.Contains(best[i], s.TokenIDs[i]) {
						best[i] = append(best[i], s.TokenIDs[i])
					}
				}
			}
			target := model
			total := 0.0
			for _, x := range best[0] {
				for _, y := range best[1] {
					total += math.Exp(target.U([]int{x, y, x}))
				}
			}
			if len(result.Fills) != 9 {
				t.Fatalf("%d fills, want all 9", len(result.Fills))
			}
			for _, s := range result.Fills {
				if s.TokenIDs[0] != s.TokenIDs[2] || s.Values[0] != s.Values[2] {
					t.Errorf("%v: blanks of one name differ", s.Values)
				}
				u := target.U(s.TokenIDs)
				if math.Abs(u-s.LogLikelihood) > 1e-9 {
					t.Errorf("%v: log-likelihood %v, want %v", s.Values, s.LogLikelihood, u)
				}
				if p, e := math.Exp(u)/total, drawError(s); math.Abs(*s.Share-p) > 4.5*e {
					t.Errorf("%v: drawn %.4f ± %.4f, exact %.4f", s.Values, *s.Share, e, p)
				}
			}
		})
	}
}

// TestVariableGradient: the gradient of a variable is the derivative of the energy
// when the one-hot vectors of all its slots move together, each to the token that
// the category puts there.
func TestVariableGradient(t *testing.T) {
	tests := []struct {
		name      string
		variables []variable
	}{
		{"blanks of one name",
			[]variable{{slots: []int{0, 2}, support: []int{6, 7, 8}}, {slots: []int{1}, support: []int{9, 10}}}},
		{"words", []variable{{slots: []int{0, 1}, words: [][]int{{6, 9}, {8, 9}, {6, 10}}},
			{slots: []int{2}, support: []int{6, 7, 8, 11}}}},
		{"words of one name",
			[]variable{{slots: []int{1, 2}, words: [][]int{{9, 7}, {12, 7}}},
				{slots: []int{0, 3}, support: []int{7, 8}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			model := newModel(16, 1)
			slots := 0
			for _, v := range test.variables {
				slots += len(v.slots)
			}
			support := make([][]int, slots)
			widest, offsets, all := 0, []int{}, 0
			for n := range test.variables {
				v := &test.variables[n]
				for i, slot := range v.slots {
					support[slot] = v.supportOf(i)
				}
				widest = max(widest, v.categories())
				offsets = append(offsets, all)
				all += v.categories()
			}
			template := "the" + strings.Repeat(" [MASK]", slots)
			if strings.Contains(test.name, "name") { // so that slots move together
				template = "the [MASK=x] [MASK=x]" + strings.Repeat(" [MASK]", slots-2)
			}
			o := asked{}
			o.Fill, o.Distinct = FillAny, !strings.Contains(test.name, "name")
			f, _ := newFake(t)
			plan, err := f.Plan(t.Context(), o.request(template))
			if err != nil {
				t.Fatal(err)
			}
			over, err := model.NewTarget(nil, nil, lm.TargetOptions{Support: support})
			if err != nil {
				t.Fatal(err)
			}
			made, err := newTarget(given{model, over}, plan.layouts[0], test.variables, lm.TargetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			target := made.(*jointTarget)
			target.layout = &layout{} // everything is allowed
			// The energy of real-valued vectors: that of the fake is bilinear in
			// neighbouring slots.
			energy := func(x []float64) float64 {
				rows := make([]map[int]float64, slots) // share of each token
				for n, v := range test.variables {
					for i, slot := range v.slots {
						rows[slot] = map[int]float64{}
						for category := range v.categories() {
							rows[slot][v.token(category, i)] += x[offsets[n]+category]
						}
					}
				}
				u := 0.0
				for slot, row := range rows {
					for token, share := range row {
						u += share * model.Weight(token)
						if slot == 0 {
							continue
						}
						for other, its := range rows[slot-1] {
							u += share * its * model.BondOf(other, token)
						}
					}
				}
				return u
			}
			states := []int{1, 0, 0, 1}
			energies, gradient := make([]float64, 2), make([]float64, 2*2*widest)
			if err := target.EnergyGradient(t.Context(), states, energies, gradient); err != nil {
				t.Fatal(err)
			}
			again := make([]float64, 2)
			if err := target.Energy(t.Context(), states, again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(again, energies); diff != "" {
				t.Errorf("energies: %s", diff)
			}
			for chain := range 2 {
				x := make([]float64, all)
				for n := range test.variables {
					x[offsets[n]+states[2*chain+n]] = 1
				}
				if want := energy(x); math.Abs(energies[chain]-want) > 1e-12 {
					t.Errorf("chain %d: energy %v, want %v", chain, energies[chain], want)
				}
				want := fd.Gradient(nil, energy, x, &fd.Settings{Formula: fd.Central})
				for n, v := range test.variables {
					for category := range v.categories() {
						if got, want := gradient[(chain*2+n)*widest+category], want[offsets[n]+category]; math.Abs(
							got-want) > 1e-7 {
							t.Errorf("chain %d, variable %d, category %d: gradient %v, want %v", chain, n, category,
								got, want)
						}
					}
				}
			}
		})
	}
}

// given is a model that has one target.
type given struct {
	*lmtest.Model
	target lm.Target
}

func (g given) For(*lm.Caller) lm.Asker { return g }

func (g given) NewTarget([]int, []int, lm.TargetOptions) (lm.Target, error) { return g.target, nil }

// noSlots is a target of nothing.
type noSlots struct{ lm.Target }

func (noSlots) Categories() []int { return nil }

// TestTargetOfNothing: what is wrong with a model's target is said at every
// temperature.
func TestTargetOfNothing(t *testing.T) {
	f := New(given{newModel(16, 1), noSlots{}}, newTokenizer(t))
	for _, temperature := range []float64{1, 2} {
		o := chainOptions()
		o.Temperature = temperature
		r, err := f.Fill(t.Context(), o.request(twoSlots), nil)
		if r != nil || err == nil || !strings.Contains(err.Error(), "the target has no slots: nothing to sample") {
			t.Errorf("temperature %v: %v, error %v", temperature, r, err)
		}
	}
}

func TestTiedErrors(t *testing.T) {
	f, _ := newFake(t)
	for _, sampler := range []string{"gibbs", "mlm-mh"} {
		o := chainOptions()
		o.Chains.Sampler = sampler
		_, err := f.Fill(t.Context(), o.request("the [MASK=x] and the [MASK=x]"), nil)
		var option *OptionError
		if !errors.As(err, &option) || option.Option != "sampler" {
			t.Errorf("%s: got %v", sampler, err)
		}
	}
}
