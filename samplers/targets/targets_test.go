package targets_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/samplers"
	"infill/samplers/targets"
)

var (
	_ samplers.StochasticGradientTarget = (*targets.Table)(nil)
	_ samplers.ConditionalTarget        = (*targets.Table)(nil)
	_ samplers.MaskedConditionalTarget  = (*targets.Table)(nil)
	_ samplers.StochasticGradientTarget = (*targets.Ising)(nil)
	_ samplers.ConditionalTarget        = (*targets.Ising)(nil)
	_ samplers.OrdinalTarget            = (*targets.Ising)(nil)
	_ samplers.OrdinalTarget            = (*targets.CounterExample)(nil)
	_ samplers.OrdinalTarget            = (*targets.Table)(nil)
	_ samplers.MetricTarget             = (*targets.Table)(nil)
	_ samplers.GradientTarget           = (*targets.Potts)(nil)
	_ samplers.ConditionalTarget        = (*targets.Potts)(nil)
)

func table(t *testing.T, o targets.TableOptions) *targets.Table {
	t.Helper()
	table, err := targets.NewTable([]int{3, 2, 4}, rand.New(rand.NewPCG(3, 4)), o)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func ising(t *testing.T, rows, columns int) *targets.Ising {
	t.Helper()
	target, err := targets.NewIsing(rows, columns, 0.15, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func potts(t *testing.T) *targets.Potts {
	t.Helper()
	target, err := targets.NewPotts(2, 3, 0.4, []float64{0.1, -0.2, 0.3})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// Energies written out by hand: on a 2 × 2 torus each spin has two neighbours,
// so there are four edges, each counted twice.
func TestIsingEnergy(t *testing.T) {
	target := ising(t, 2, 2)
	states := []int{1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0}
	want := []float64{8*0.15 + 4*0.2, 8*0.15 - 4*0.2, -8 * 0.15, 0}
	got := make([]float64, 4)
	if err := target.Energy(context.Background(), states, got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("energy (-want +got):\n%s", d)
	}
}

// A 2 × 3 torus has 3 vertical edges and 6 horizontal ones.
func TestPottsEnergy(t *testing.T) {
	target := potts(t)
	states := []int{0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 1, 2}
	want := []float64{9*0.4 + 6*0.1, 3*0.4 + 2*(0.1-0.2+0.3)}
	got := make([]float64, 2)
	if err := target.Energy(context.Background(), states, got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("energy (-want +got):\n%s", d)
	}
}

// In these targets U is linear in each slot, so the gradient's difference of
// two categories is the difference of the energies.
func TestGradientIsTheEnergyDifference(t *testing.T) {
	ctx := context.Background()
	for name, target := range map[string]samplers.GradientTarget{
		"table": table(t, targets.TableOptions{Terms: 2}), "ising": ising(t, 2, 3), "potts": potts(t),
	} {
		t.Run(name, func(t *testing.T) {
			e, err := targets.Enumerate(ctx, target)
			if err != nil {
				t.Fatal(err)
			}
			categories := target.Categories()
			wide := slices.Max(categories)
			energy := make([]float64, e.Len())
			gradient := make([]float64, e.Len()*len(categories)*wide)
			if err := target.EnergyGradient(ctx, e.States, energy, gradient); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e.Energy, energy); d != "" {
				t.Errorf("energies differ with and without the gradient:\n%s", d)
			}
			for i := range e.Len() {
				for j, current := range e.State(i) {
					row := gradient[(i*len(categories)+j)*wide:]
					for v := range categories[j] {
						there := slices.Clone(e.State(i))
						there[j] = v
						want := e.Energy[e.Index(there)] - e.Energy[i]
						if got := row[v] - row[current]; !(math.Abs(got-want) < 1e-12) {
							t.Fatalf("state %v, slot %d := %d: %v, want %v", e.State(i), j, v, got, want)
						}
					}
				}
			}
		})
	}
}

// The mean over all single terms is the whole gradient.
func TestTermsAreUnbiased(t *testing.T) {
	ctx := context.Background()
	for name, target := range map[string]samplers.StochasticGradientTarget{
		"table": table(t, targets.TableOptions{Terms: 3, GradientError: 0.3}), "ising": ising(t, 3, 3),
	} {
		t.Run(name, func(t *testing.T) {
			m := len(target.Categories())
			states := make([]int, m)
			states[0], states[m-1] = 1, 1
			size := m * slices.Max(target.Categories())
			want, got, one := make([]float64, size), make([]float64, size), make([]float64, size)
			energy := make([]float64, 1)
			if err := target.EnergyGradient(ctx, states, energy, want); err != nil {
				t.Fatal(err)
			}
			for term := range target.Terms() {
				if err := target.EnergyGradientOf(ctx, []int{term}, states, energy, one); err != nil {
					t.Fatal(err)
				}
				for i, v := range one {
					got[i] += v / float64(target.Terms())
				}
			}
			if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
				t.Errorf("gradient (-whole +mean of terms):\n%s", d)
			}
		})
	}
}

func TestConditionals(t *testing.T) {
	ctx := context.Background()
	for name, target := range map[string]samplers.ConditionalTarget{
		"table": table(t, targets.TableOptions{}), "ising": ising(t, 2, 3), "potts": potts(t),
	} {
		t.Run(name, func(t *testing.T) {
			e, err := targets.Enumerate(ctx, target)
			if err != nil {
				t.Fatal(err)
			}
			categories := target.Categories()
			logp := make([]float64, slices.Max(categories))
			for i := range e.Len() {
				for j := range categories {
					if err := target.LogConditionals(ctx, e.State(i), []int{j}, logp); err != nil {
						t.Fatal(err)
					}
					state, sum := slices.Clone(e.State(i)), 0.0
					for v := range categories[j] {
						state[j] = v
						sum += e.Probability[e.Index(state)]
					}
					for v := range categories[j] {
						state[j] = v
						if want := e.Probability[e.Index(state)] / sum; !(math.Abs(math.Exp(logp[v])-want) < 1e-12) {
							t.Fatalf("state %v, slot %d = %d: %v, want %v", e.State(i), j, v, math.Exp(logp[v]), want)
						}
					}
				}
			}
		})
	}
}

// The mean of the sum of independent spins is known: with no coupling,
// E[s] = tanh b.
func TestEnumeration(t *testing.T) {
	target, err := targets.NewIsing(1, 5, 0, 0.3)
	if err != nil {
		t.Fatal(err)
	}
	e, err := targets.Enumerate(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	got := e.Mean(func(state []int) float64 {
		sum := 0.0
		for _, v := range state {
			sum += float64(2*v - 1)
		}
		return sum
	})
	if want := 5 * math.Tanh(0.3); !(math.Abs(got-want) < 1e-12) {
		t.Errorf("mean magnetisation %v, want %v", got, want)
	}
	if want := 5 * math.Log(2*math.Cosh(0.3)); !(math.Abs(e.LogNormaliser-want) < 1e-12) {
		t.Errorf("log normaliser %v, want %v", e.LogNormaliser, want)
	}
	for i := range e.Len() {
		if e.Index(e.State(i)) != i {
			t.Errorf("state %d has index %d", i, e.Index(e.State(i)))
		}
	}
}

func TestBadTargets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	_, empty := targets.NewTable([]int{2, 0}, r, targets.TableOptions{})
	_, large := targets.NewTable(slices.Repeat([]int{10}, 30), r, targets.TableOptions{})
	_, flat := targets.NewIsing(0, 3, 1, 1)
	_, plain := targets.NewPotts(2, 2, 1, nil)
	_, thin := targets.NewPotts(2, 0, 1, []float64{0})
	lattice := ising(t, 6, 6)
	_, wide := targets.Enumerate(context.Background(), lattice)
	broken := table(t, targets.TableOptions{})
	broken.Set([]int{0, 0, 0}, math.NaN())
	_, nan := targets.Enumerate(context.Background(), broken)
	for name, err := range map[string]error{
		"a slot without categories": empty, "too many states": large, "a torus without sites": flat,
		"no categories": plain, "no columns": thin, "too many spins": wide, "NaN": nan,
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
