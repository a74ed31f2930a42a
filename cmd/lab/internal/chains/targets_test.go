package chains

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/targets"
	"infill/samplers"
)

type full interface {
	samplers.GradientTarget
	samplers.ConditionalTarget
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
	coupled := NewProtein(4, 3)
	copy(coupled.Field, targets.Normals(r, 12, 1))
	copy(coupled.Couplings, labtest.Apart(r, 12, 3))
	ising := check.Must(targets.NewIsing(2, 3, 0.15, 0.2))(t)
	potts := check.Must(pottsTorus(lab.Size{Rows: 2, Columns: 3}, 0.4, []float64{0.1, -0.2, 0.3}))(t)
	u := []float64{0, 0}
	check.OK(t, potts.Energy(t.Context(), []int{0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 1, 2}, u))
	labtest.Near(t, "energy of equal sites", u[0], 9*0.4+6*0.1, 1e-12)
	labtest.Near(t, "energy of equal columns", u[1], 3*0.4+2*(0.1-0.2+0.3), 1e-12)
	table := check.Must(targets.NewTable([]int{3, 2, 4}, r, targets.TableOptions{Terms: 2}))(t)
	rbm := check.Must(targets.NewRandomRBM(4, 3, 0.8, r))(t)
	return map[string]checked{
		"pairwise": {targets.NewDenseIsing(lab.SymmetricNormals(6, 0.5, r), targets.Normals(r, 6, 1)), true},
		"coupled":  {coupled, true}, "ising": {ising, true}, "potts": {potts, true}, "table": {table, true},
		"fhmm": {newFHMM(4, 2, 0.5, 0.1, 0.95, r), false}, "rbm": {rbm, false},
	}
}

// TestTargets: energies of a call with the gradient, gradients and
// conditionals against the energies of every state.
func TestTargets(t *testing.T) {
	ctx := context.Background()
	for name, target := range small(t) {
		e := labtest.Enumerated(t, target)
		categories := target.Categories()
		n, wide := len(categories), slices.Max(categories)
		energy, gradient, logp := make([]float64, e.Len()), make([]float64, e.Len()*n*wide),
			make([]float64, e.Len()*wide)
		check.OK(t, target.EnergyGradient(ctx, e.States, energy, gradient))
		for j, k := range categories {
			slots := slices.Repeat([]int{j}, e.Len())
			check.OK(t, target.LogConditionals(ctx, e.States, slots, logp))
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
	e := labtest.Enumerated(t, hidden)
	for j, m := range hidden.means() {
		labtest.Near(t, "mean", m, e.Mean(func(state []int) float64 { return float64(state[j]) }), 1e-10)
	}
}
