package targets_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/diff/fd"

	"infill/internal/targets"
	"infill/samplers"
)

// none fails if there is an error.
func none(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must is a value that came without an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func table(t *testing.T) *targets.Table {
	return must(targets.NewTable([]int{3, 2, 4}, rand.New(rand.NewPCG(3, 4)), targets.TableOptions{}))(t)
}

func ising(t *testing.T, rows, columns int) *targets.Ising {
	return must(targets.NewIsing(rows, columns, 0.15, 0.2))(t)
}

// Energies written out by hand. On a 2 × 2 torus each spin has two neighbours,
// so there are four edges, each counted twice; a 2 × 3 torus has 3 vertical
// edges and 6 horizontal ones.
func TestEnergies(t *testing.T) {
	for _, c := range []struct {
		target targets.Energy
		states []int
		want   []float64
	}{
		{ising(t, 2, 2), []int{1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0},
			[]float64{8*0.15 + 4*0.2, 8*0.15 - 4*0.2, -8 * 0.15, 0}},
	} {
		got := make([]float64, len(c.want))
		none(t, c.target.Energy(t.Context(), c.states, got))
		if d := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%T: energy (-want +got):\n%s", c.target, d)
		}
	}
}

// Conditionals of open slots are sums of the joint over what is left open. Rows
// of filled slots are not written.
func TestMaskedConditionals(t *testing.T) {
	target := table(t)
	e := must(targets.Enumerate(t.Context(), target))(t)
	agree := func(a, b []int, open []bool) bool {
		for j, o := range open {
			if !o && a[j] != b[j] {
				return false
			}
		}
		return true
	}
	for i := range e.Len() {
		for _, open := range [][]bool{{true, false, false}, {false, true, true}, {true, true, true}} {
			logp := slices.Repeat([]float64{7}, 3*4)
			none(t, target.LogMaskedConditionals(t.Context(), e.State(i), open, logp))
			for k, got := range logp {
				j, v, want := k/4, k%4, 7.0
				if v < target.Categories()[j] && open[j] {
					sum, match := 0.0, 0.0
					for x, p := range e.Probability {
						if agree(e.State(x), e.State(i), open) {
							sum += p
							if e.State(x)[j] == v {
								match += p
							}
						}
					}
					want = math.Log(match / sum)
				}
				if !(math.Abs(got-want) < 1e-12) {
					t.Fatalf("state %v, open %v, slot %d = %d: %v, want %v", e.State(i), open, j, v, got, want)
				}
			}
		}
	}
}

// Values ascend, and the derivative is that of the target's own numbers.
func TestTableGeometry(t *testing.T) {
	target := table(t)
	for j, k := range target.Categories() {
		if values := target.Values()[j]; len(values) != k || !slices.IsSorted(values) {
			t.Errorf("slot %d has values %v", j, values)
		}
	}
	u, d := make([]float64, 1), make([]float64, 3)
	if err := target.EnergyDerivative(context.Background(), []int{1, 0, 2}, u, d); err != nil {
		t.Fatal(err)
	}
	there := make([]float64, 2)
	if err := target.Energy(context.Background(), []int{1, 1, 2, 1, 0, 2}, there); err != nil {
		t.Fatal(err)
	}
	values := target.Values()[1]
	if want := (there[0] - there[1]) / (values[1] - values[0]); u[0] != there[1] || !(math.Abs(d[1]-want) < 1e-12) {
		t.Errorf("energy %v and derivative %v, want %v and %v", u[0], d[1], there[1], want)
	}
}

// The mean of the sum of independent spins is known: with no coupling, E[s] = tanh b.
func TestEnumeration(t *testing.T) {
	target := must(targets.NewIsing(1, 5, 0, 0.3))(t)
	e := must(targets.Enumerate(context.Background(), target))(t)
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

// The RBM's energy is the joint one with the hidden units summed out, and the
// logits of each side are those of the joint.
func TestRBMIsTheMarginOfItsJoint(t *testing.T) {
	weights := []float64{0.5, -1, 2, 0.3, 0.7, -0.4} // 2 hidden × 3 visible
	hidden, visible := []float64{0.2, -0.6}, []float64{0.1, -0.3, 0.9}
	target := must(targets.NewRBM(weights, hidden, visible))(t)
	joint := func(v []int, h []bool) float64 {
		u := 0.0
		for j, x := range v {
			u += visible[j] * float64(x)
		}
		for i, on := range h {
			if !on {
				continue
			}
			u += hidden[i]
			for j, x := range v {
				u += weights[3*i+j] * float64(x)
			}
		}
		return u
	}
	latents := [][]bool{{false, false}, {false, true}, {true, false}, {true, true}}
	e := must(targets.Enumerate(context.Background(), target))(t)
	for i := range e.Len() {
		v := e.State(i)
		sum, ones := 0.0, make([]float64, 2)
		for _, h := range latents {
			p := math.Exp(joint(v, h))
			sum += p
			for k, on := range h {
				if on {
					ones[k] += p
				}
			}
		}
		if !(math.Abs(e.Energy[i]-math.Log(sum)) < 1e-12) {
			t.Errorf("%v: energy %v, want %v", v, e.Energy[i], math.Log(sum))
		}
		logits := make([]float64, 2)
		target.LatentLogits(v, logits)
		for k, l := range logits {
			if want := math.Log(ones[k] / (sum - ones[k])); !(math.Abs(l-want) < 1e-9) {
				t.Errorf("%v: hidden unit %d has log-odds %v, want %v", v, k, l, want)
			}
		}
	}
	for _, h := range latents {
		logits := make([]float64, 3)
		target.SlotLogits(h, logits)
		for j, l := range logits {
			on := make([]int, 3)
			on[j] = 1
			if want := joint(on, h) - joint(make([]int, 3), h); !(math.Abs(l-want) < 1e-12) {
				t.Errorf("%v: visible unit %d has log-odds %v, want %v", h, j, l, want)
			}
		}
	}
}

// Derivatives and relaxed gradients against central differences of the relaxed
// energy, which agrees with the energy on the corners.
func TestRelaxedEnergies(t *testing.T) {
	ctx := t.Context()
	type relaxed interface {
		samplers.RelaxedTarget
		samplers.OrdinalTarget
		samplers.GradientTarget
	}
	rbm := must(targets.NewRandomRBM(4, 3, 0.8, rand.New(rand.NewPCG(6, 6))))(t)
	for scale, target := range map[float64]relaxed{2: ising(t, 2, 2), 1: rbm} { // spins are 2x - 1
		u, g, d, rows := make([]float64, 1), make([]float64, 4), make([]float64, 4), make([]float64, 8)
		energy := func(x []float64) float64 {
			none(t, target.RelaxedEnergyGradient(ctx, x, u, g))
			return u[0]
		}
		e := must(targets.Enumerate(ctx, target))(t)
		for i := range e.Len() {
			x := make([]float64, 4)
			for j, v := range e.State(i) {
				x[j] = float64(v)
			}
			if got := energy(x); !(math.Abs(got-e.Energy[i]) < 1e-12) {
				t.Errorf("%T: corner %v: %v, want %v", target, e.State(i), got, e.Energy[i])
			}
			none(t, target.EnergyDerivative(ctx, e.State(i), u, d))
			none(t, target.EnergyGradient(ctx, e.State(i), u, rows))
			for j := range d {
				// The one-hot gradient's difference of the categories is the derivative.
				if oneHot := rows[2*j+1] - rows[2*j]; !(math.Abs(scale*d[j]-g[j])+math.Abs(oneHot-g[j]) < 1e-12) {
					t.Errorf("%T: corner %v: derivative %v, one-hot %v, relaxed %v", target, e.State(i), d[j], oneHot,
						g[j])
				}
			}
		}
		x := []float64{0.2, 0.9, 0.5, 0.7}
		want := fd.Gradient(nil, energy, x, &fd.Settings{Formula: fd.Central})
		energy(x)
		if diff := cmp.Diff(want, g, cmpopts.EquateApprox(0, 1e-7)); diff != "" {
			t.Errorf("%T: ∂U/∂x (-differences +got):\n%s", target, diff)
		}
	}
}

// The sine of the counter-example moves the energies and not the derivative.
func TestCounterExample(t *testing.T) {
	ctx := context.Background()
	target := targets.CounterExample{A: 1, B: 0.1, Epsilon: 0.4}
	u, d := make([]float64, 2), make([]float64, 2)
	if err := target.EnergyDerivative(ctx, []int{0, 1}, u, d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]float64{1 - 0.1 - 0.8, 1 + 0.1 + 0.8}, u, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("energy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{-2 + 0.1, 2 + 0.1}, d, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("derivative (-want +got):\n%s", diff)
	}
}

func TestBadTargets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	_, empty := targets.NewTable([]int{2, 0}, r, targets.TableOptions{})
	_, large := targets.NewTable(slices.Repeat([]int{10}, 30), r, targets.TableOptions{})
	_, flat := targets.NewIsing(0, 3, 1, 1)
	_, odd := targets.NewRBM(make([]float64, 5), make([]float64, 2), make([]float64, 3))
	_, dark := targets.NewRandomRBM(3, 0, 1, r)
	lattice := ising(t, 6, 6)
	_, wide := targets.Enumerate(context.Background(), lattice)
	broken := table(t)
	broken.Set([]int{0, 0, 0}, math.NaN())
	_, nan := targets.Enumerate(context.Background(), broken)
	for name, err := range map[string]error{
		"a slot without categories": empty, "too many states": large, "a torus without sites": flat,
		"too many spins": wide, "NaN": nan,
		"5 weights for 6": odd, "no hidden units": dark,
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
