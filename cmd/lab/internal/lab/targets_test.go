package lab

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/internal/targets"
	"infill/samplers"
)

type full interface {
	samplers.GradientTarget
	samplers.ConditionalTarget
}

// apart are couplings without those within blocks of sites.
func apart(r *rand.Rand, n, block int) []float64 {
	w := symmetricNormals(n, 0.5, r)
	for i := range w {
		if i/n/block == i%n/block {
			w[i] = 0
		}
	}
	return w
}

// checked is a target, with whether the gradient is the exact change of the
// energy: it is where U is linear in every slot.
type checked struct {
	full
	exact bool
}

func small(t *testing.T) map[string]checked {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	coupled := newProtein(4, 3)
	copy(coupled.field, targets.Normals(r, 12, 1))
	copy(coupled.couplings, apart(r, 12, 3))
	ising := must(targets.NewIsing(2, 3, 0.15, 0.2))(t)
	potts := must(pottsTorus(size{2, 3}, 0.4, []float64{0.1, -0.2, 0.3}))(t)
	u := []float64{0, 0}
	none(t, potts.Energy(t.Context(), []int{0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 1, 2}, u))
	near(t, "energy of equal sites", u[0], 9*0.4+6*0.1, 1e-12)
	near(t, "energy of equal columns", u[1], 3*0.4+2*(0.1-0.2+0.3), 1e-12)
	table := must(targets.NewTable([]int{3, 2, 4}, r, targets.TableOptions{Terms: 2}))(t)
	rbm := must(targets.NewRandomRBM(4, 3, 0.8, r))(t)
	return map[string]checked{
		"pairwise": {newPairwise(symmetricNormals(6, 0.5, r), targets.Normals(r, 6, 1)), true},
		"coupled":  {coupled, true}, "ising": {ising, true}, "potts": {potts, true}, "table": {table, true},
		"fhmm": {newFHMM(4, 2, 0.5, 0.1, 0.95, r), false}, "rbm": {rbm, false},
	}
}

// TestTargets: energies of a call with the gradient, gradients and
// conditionals against the energies of every state.
func TestTargets(t *testing.T) {
	ctx := context.Background()
	for name, target := range small(t) {
		e := enumerated(t, target)
		categories := target.Categories()
		n, wide := len(categories), slices.Max(categories)
		energy, gradient, logp := make([]float64, e.Len()), make([]float64, e.Len()*n*wide),
			make([]float64, e.Len()*wide)
		none(t, target.EnergyGradient(ctx, e.States, energy, gradient))
		for j, k := range categories {
			slots := slices.Repeat([]int{j}, e.Len())
			none(t, target.LogConditionals(ctx, e.States, slots, logp))
			for i := range e.Len() {
				if d := math.Abs(energy[i] - e.Energy[i]); d > 1e-9 {
					t.Fatalf("%s: state %v: energy %v with the gradient, %v without", name, e.State(i), energy[i],
						e.Energy[i])
				}
				state, total := slices.Clone(e.State(i)), 0.0
				from := state[j]
				row := gradient[(i*n+j)*wide : (i*n+j)*wide+k]
				for v := range k {
					state[j] = v
					change := e.Energy[e.Index(state)] - e.Energy[i]
					if target.exact && math.Abs(row[v]-row[from]-change) > 1e-9 {
						t.Fatalf("%s: state %v, slot %d to %d: gradient %v, change %v", name, e.State(i), j, v,
							row[v]-row[from], change)
					}
					if got := logp[i*wide+v] - logp[i*wide+from]; math.Abs(got-change) > 1e-9 {
						t.Fatalf("%s: state %v, slot %d to %d: conditionals %v, change %v", name, e.State(i), j, v, got,
							change)
					}
					total += math.Exp(logp[i*wide+v])
				}
				if math.Abs(total-1) > 1e-9 {
					t.Fatalf("%s: conditionals sum to %v", name, total)
				}
			}
		}
	}
}

// TestExactMeans: recursions against the enumeration.
func TestExactMeans(t *testing.T) {
	hidden := small(t)["fhmm"].full.(*fhmm)
	e := enumerated(t, hidden)
	for j, m := range hidden.means() {
		near(t, "mean", m, e.Mean(func(state []int) float64 { return float64(state[j]) }), 1e-10)
	}
}

// TestMoments: the gradients of parameters against differences of energies, for
// those that the energy reads.
func TestMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	coupled := newProtein(3, 2)
	copy(coupled.weights, append(targets.Normals(r, 6, 1), apart(r, 6, 2)...))
	const sites, h = 5, 1e-4
	for _, model := range []learner{newPairwise(symmetricNormals(sites, 0.5, r), make([]float64, sites)), coupled} {
		states := samplers.RandomPositions(model, samplers.Streams(1, "x", 3))
		mean := func() float64 { return must(meanEnergy(t.Context(), model, states))(t) }
		w := model.parameters()
		gradient, read := make([]float64, len(w)), 0
		none(t, model.addGradient(t.Context(), states, 2, gradient))
		for k := range w {
			before := mean()
			w[k] += h
			want := 2 * (mean() - before) / h
			w[k] -= h
			_, pairs := model.(*pairwise)
			if diagonal := pairs && k%(sites+1) == 0; want == 0 || diagonal {
				continue
			}
			near(t, fmt.Sprintf("%T: parameter %d", model, k), gradient[k], want, 1e-6)
			read++
		}
		if read < 12 {
			t.Errorf("%T: %d parameters", model, read)
		}
	}
}

// TestTerms: the mean over all single terms is the whole gradient.
func TestTerms(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	table := must(targets.NewTable([]int{3, 2, 4}, r, targets.TableOptions{Terms: 3, GradientError: 0.3}))(t)
	ising := must(targets.NewIsing(3, 3, 0.15, 0.2))(t)
	network := newBinaryNetwork(targets.Normals(r, 12, 1), []float64{0.1, 0.9, 0.4, 0.6}, 3, 100)
	for _, target := range []samplers.StochasticGradientTarget{table, ising, network} {
		states := samplers.RandomPositions(target, samplers.Streams(1, "x", 2))
		size := len(states) * slices.Max(target.Categories())
		energy, of := make([]float64, 2), make([]float64, 2)
		gradient, mean, one := make([]float64, size), make([]float64, size), make([]float64, size)
		none(t, target.EnergyGradient(t.Context(), states, energy, gradient))
		for term := range target.Terms() {
			if err := target.EnergyGradientOf(t.Context(), []int{term}, states, of, one); err != nil {
				t.Fatal(err)
			}
			for i, d := range one {
				mean[i] += d / float64(target.Terms())
			}
			if !slices.Equal(energy, of) {
				t.Errorf("%T: energy %v of some terms, %v", target, of, energy)
			}
		}
		for i := range mean {
			near(t, fmt.Sprintf("%T: gradient %d", target, i), mean[i], gradient[i], 1e-9)
		}
	}
	state := samplers.RandomPositions(network, samplers.Streams(1, "x", 1))
	if f, _ := network.predict(state, matrix(2, 3, targets.Normals(r, 6, 1))); len(f) != 2 || !(f[0] > 0 && f[0] < 1) {
		t.Errorf("predictions %v", f)
	}
}

// TestPerceptron: the derivatives by all weights and inputs against finite
// differences.
func TestPerceptron(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	sizes := []int{3, 4, 1, 2}
	n := weightsOf(sizes)
	seed, both := matrix(5, 2, targets.Normals(r, 10, 1)), targets.Normals(r, n+15, 1)
	sum := func(x []float64) float64 {
		return floats.Dot(perceptron{sizes, x[:n]}.forward(matrix(5, 3, x[n:]))[3].Data, seed.Data)
	}
	p, got := perceptron{sizes, both[:n]}, make([]float64, n)
	units := p.forward(matrix(5, 3, both[n:]))
	p.backward(units, seed, got)
	got = append(got, p.backward(units, seed, nil).Data...)
	for i, want := range fd.Gradient(nil, sum, both, &fd.Settings{Formula: fd.Central}) {
		near(t, fmt.Sprintf("derivative %d", i), got[i], want, 1e-6)
	}
}

// TestBinaryNetworkGradient: the gradient at weights of -1 and +1 against
// finite differences.
func TestBinaryNetworkGradient(t *testing.T) {
	const p, h, examples = 3, 4, 5
	r := rand.New(rand.NewPCG(3, 3))
	inputs, y := matrix(examples, p, targets.Normals(r, examples*p, 1)), targets.Normals(r, examples, 1)
	weights := make([]float64, (p+2)*h+1)
	energy := func(w []float64) float64 {
		f := perceptron{[]int{p, h, 1}, w}.forward(inputs)[2].Data
		for i, x := range f {
			f[i] = logmath.Sigmoid(x)
		}
		return -100 * math.Pow(rootMeanSquare(f, y), 2)
	}
	network := newBinaryNetwork(inputs.Data, y, h, 100)
	state := make([]int, len(weights))
	for j := range state {
		state[j] = r.IntN(2)
		weights[j] = targets.Spin(state[j])
	}
	want := fd.Gradient(nil, energy, weights, &fd.Settings{Formula: fd.Central})
	gradient, u := make([]float64, 2*len(state)), make([]float64, 1)
	none(t, network.EnergyGradient(t.Context(), state, u, gradient))
	if math.Abs(u[0]-energy(weights)) > 1e-9 {
		t.Errorf("energy %v, want %v", u[0], energy(weights))
	}
	for j, d := range want {
		if math.Abs(gradient[2*j+1]-d) > 1e-5*(1+math.Abs(d)) || gradient[2*j] != -gradient[2*j+1] {
			t.Errorf("slot %d: %v and %v, by differences %v", j, gradient[2*j], gradient[2*j+1], d)
		}
	}
}
