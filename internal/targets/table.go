package targets

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/combin"

	"infill/internal/logmath"
)

// Table is a distribution with a list of the energies of all states. The energy
// is a sum of terms, each with a list of its own. The gradient over one-hot
// slots is that of the multilinear extension, ∂U/∂θ_j[v] =
// U(θ with slot j := v). A fixed error is added to it, so that the gradient is
// an estimate, as in deep models.
type Table struct {
	categories   []int
	wide         int
	terms        [][]float64 // [terms][states]
	errors       [][]float64 // [terms][states × slots × K], added to the gradient
	energy       []float64   // Σ terms, [states]
	conditionals []float64   // the energies whose conditionals the table returns, [states]
	values       [][]float64
}

// TableOptions say how NewTable draws a table. A Scale or Terms of 0 means 1.
// An error of 0 means no error.
type TableOptions struct {
	// Scale is the standard deviation of the energies, in nats.
	Scale float64
	Terms int
	// GradientError is the standard deviation of the gradient's error.
	GradientError float64
	// ConditionalError is the standard deviation of the difference between U
	// and the energies of the conditionals. If it is above 0, the conditionals
	// do not belong to exp(U), as in a masked language model.
	ConditionalError float64
}

// NewTable draws a random table over slots with the given numbers of
// categories. For more than [MaxStates] states, it returns an error.
func NewTable(categories []int, r *rand.Rand, o TableOptions) (*Table, error) {
	n, err := count(categories)
	if err != nil {
		return nil, err
	}
	scale := cmp.Or(o.Scale, 1)
	terms := max(o.Terms, 1)
	t := &Table{categories: slices.Clone(categories), wide: slices.Max(categories), energy: make([]float64, n)}
	for range terms {
		values := Normals(r, n, scale/math.Sqrt(float64(terms)))
		t.terms = append(t.terms, values)
		t.errors = append(t.errors, Normals(r, n*len(categories)*t.wide, o.GradientError))
		for i, v := range values {
			t.energy[i] += v
		}
	}
	t.conditionals = Normals(r, n, o.ConditionalError)
	for i, u := range t.energy {
		t.conditionals[i] += u
	}
	for _, k := range categories {
		values := make([]float64, k)
		at := r.NormFloat64()
		for v := range values {
			at += 0.3 + r.Float64()
			values[v] = at
		}
		t.values = append(t.values, values)
	}
	return t, nil
}

func Normals(r *rand.Rand, n int, scale float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = scale * r.NormFloat64()
	}
	return x
}

// Set gives a state another energy; -Inf forbids the state. Terms share it
// equally, and the conditionals use it, too.
func (t *Table) Set(state []int, energy float64) {
	i := combin.IdxFor(state, t.categories)
	for _, term := range t.terms {
		term[i] = energy / float64(len(t.terms))
	}
	t.conditionals[i] = energy
	t.energy[i] = energy
}

func (t *Table) Categories() []int { return t.categories }

func (t *Table) Terms() int { return len(t.terms) }

func (t *Table) Energy(_ context.Context, states []int, energy []float64) error {
	for c := range energy {
		energy[c] = t.energy[combin.IdxFor(t.state(states, c), t.categories)]
	}
	return nil
}

func (t *Table) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	terms := make([]int, len(t.terms))
	for i := range terms {
		terms[i] = i
	}
	return t.EnergyGradientOf(ctx, terms, states, energy, gradient)
}

// EnergyGradientOf writes U, and some terms' gradient, scaled to the whole.
func (t *Table) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error {
	slots := len(t.categories)
	scale := float64(len(t.terms)) / float64(len(terms))
	state := make([]int, slots)
	for c := range energy {
		copy(state, t.state(states, c))
		here := combin.IdxFor(state, t.categories)
		for j, current := range state {
			row := gradient[(c*slots+j)*t.wide:]
			for v := range t.categories[j] {
				state[j] = v
				there := combin.IdxFor(state, t.categories)
				row[v] = 0
				for _, term := range terms {
					row[v] += scale * (t.terms[term][there] + t.errors[term][(here*slots+j)*t.wide+v])
				}
			}
			state[j] = current
		}
	}
	return t.Energy(ctx, states, energy)
}

func (t *Table) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	state := make([]int, len(t.categories))
	for c, j := range slots {
		copy(state, t.state(states, c))
		row := logp[c*t.wide : c*t.wide+t.categories[j]]
		for v := range row {
			state[j] = v
			row[v] = t.conditionals[combin.IdxFor(state, t.categories)]
		}
		logmath.Normalise(row)
	}
	return nil
}

// LogMaskedConditionals writes the conditional of each open slot of a
// chain given the slots that are not open. For that it sums exp(U) over
// the other open slots.
func (t *Table) LogMaskedConditionals(_ context.Context, states []int, open []bool, logp []float64) error {
	slots := len(t.categories)
	state := make([]int, slots)
	terms := make([][]float64, slots*t.wide)
	for c := range len(states) / slots {
		mine := open[c*slots : (c+1)*slots]
		clear(terms)
		for i, u := range t.conditionals {
			combin.SubFor(state, i, t.categories)
			if agrees(state, t.state(states, c), mine) {
				for j, v := range state {
					terms[j*t.wide+v] = append(terms[j*t.wide+v], u)
				}
			}
		}
		for j, k := range t.categories {
			if !mine[j] {
				continue
			}
			row := logp[(c*slots+j)*t.wide : (c*slots+j)*t.wide+k]
			for v := range row {
				row[v] = logmath.LogSumExp(terms[j*t.wide+v])
			}
			logmath.Normalise(row)
		}
	}
	return nil
}

func agrees(a, b []int, open []bool) bool {
	for j := range a {
		if !open[j] && a[j] != b[j] {
			return false
		}
	}
	return true
}

func (t *Table) Values() [][]float64 { return t.values }

// EnergyDerivative writes U and, as an estimate of the derivative, the slope of
// the gradient from the first category to the last. A table does not extend to
// real slots, and any estimate suffices to prove a sampler correct.
func (t *Table) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	gradient := make([]float64, len(states)*t.wide)
	if err := t.EnergyGradient(ctx, states, energy, gradient); err != nil {
		return err
	}
	for i := range derivative {
		values := t.values[i%len(t.values)]
		last := len(values) - 1
		derivative[i] = 0
		if last > 0 {
			derivative[i] = (gradient[i*t.wide+last] - gradient[i*t.wide]) / (values[last] - values[0])
		}
	}
	return nil
}

func (t *Table) state(states []int, chain int) []int {
	slots := len(t.categories)
	return states[chain*slots : (chain+1)*slots]
}
