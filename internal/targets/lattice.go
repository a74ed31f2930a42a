package targets

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"infill/internal/logmath"
)

// Neighbours returns the neighbours of each site of a torus, each neighbour
// once: on a side of two sites, the left and the right neighbour are the same.
// If a side is below 1, it returns an error.
func Neighbours(rows, columns int) ([][]int, error) {
	if rows < 1 || columns < 1 {
		return nil, fmt.Errorf("a torus of %d × %d sites: both sides must be at least 1", rows, columns)
	}
	lists := make([][]int, rows*columns)
	for site := range lists {
		r := site / columns
		c := site % columns
		for _, n := range []int{
			((r+rows-1)%rows)*columns + c, ((r+1)%rows)*columns + c,
			r*columns + (c+columns-1)%columns, r*columns + (c+1)%columns,
		} {
			if n != site && !slices.Contains(lists[site], n) {
				lists[site] = append(lists[site], n)
			}
		}
	}
	return lists, nil
}

// Ising is the Ising model U(s) = sᵀWs + bᵀs with spins s = ±1, as in the
// discrete Langevin paper (section 7.1). W is symmetric, so every edge
// counts twice. Category 0 is spin -1, category 1 is spin +1. Each site
// is one term of U.
type Ising struct {
	near       [][]int     // for each site, the sites with which it couples; nil if all sites couple
	couplings  [][]float64 // the entries of W for near
	dense      blas64.General
	field      []float64
	categories []int
	values     [][]float64
	scratch    []float64 // spins and products of a dense model, [2 × chains × sites]
}

// NewIsing makes a torus of rows × columns, coupling a and field b.
func NewIsing(rows, columns int, coupling, field float64) (*Ising, error) {
	near, err := Neighbours(rows, columns)
	if err != nil {
		return nil, err
	}
	couplings := make([][]float64, len(near))
	for i, list := range near {
		couplings[i] = slices.Repeat([]float64{coupling}, len(list))
	}
	return NewSparseIsing(near, couplings, slices.Repeat([]float64{field}, len(near))), nil
}

// NewSparseIsing makes the model of b [sites] and a sparse W: site i couples to
// the sites near[i], with couplings[i].
func NewSparseIsing(near [][]int, couplings [][]float64, field []float64) *Ising {
	t := newIsing(field)
	t.near = near
	t.couplings = couplings
	return t
}

// NewDenseIsing makes the model of W [sites × sites] and b [sites]. It keeps
// both slices: to learn W, write to weights.
func NewDenseIsing(weights, field []float64) *Ising {
	t := newIsing(field)
	n := len(field)
	t.couplings = slices.Collect(slices.Chunk(weights, n))
	t.dense = blas64.General{Rows: n, Cols: n, Stride: n, Data: weights}
	return t
}

func newIsing(field []float64) *Ising {
	return &Ising{field: field, categories: slices.Repeat([]int{2}, len(field)),
		values: slices.Repeat([][]float64{{-1, 1}}, len(field))}
}

// Spin returns the spin, -1 or 1, of a category of an Ising model.
func Spin(category int) float64 { return float64(2*category - 1) }

func (t *Ising) Categories() []int { return t.categories }

func (t *Ising) Terms() int { return len(t.field) }

// pairs calls visit for each site with which site couples, and the entry w of W.
func (t *Ising) pairs(site int, visit func(other int, w float64)) {
	for k, w := range t.couplings[site] {
		if t.near != nil {
			k = t.near[site][k]
		}
		visit(k, w)
	}
}

// evaluate writes U of spins s = 2x - 1, where x may be real, and ∂U/∂s
// [chains × sites] if derivative is not nil.
func evaluate[T int | float64](t *Ising, x []T, energy, derivative []float64) error {
	n, spin := len(t.field), func(x T) float64 { return 2*float64(x) - 1 }
	if t.near == nil { // compute many chains at once
		t.scratch = slices.Grow(t.scratch[:0], 2*len(x))[:2*len(x)]
		for i, v := range x {
			t.scratch[i] = spin(v)
		}
		s := t.dense
		pulls := t.dense
		s.Rows = len(energy)
		s.Data = t.scratch[:len(x)]
		pulls.Rows = len(energy)
		pulls.Data = t.scratch[len(x):]
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, s, t.dense, 0, pulls)
	}
	for c := range energy {
		u := 0.0
		for i := range n {
			pull := 0.0
			if t.near == nil {
				pull = t.scratch[len(x)+c*n+i]
			} else {
				for k, other := range t.near[i] {
					pull += t.couplings[i][k] * spin(x[c*n+other])
				}
			}
			u += spin(x[c*n+i]) * (pull + t.field[i])
			if derivative != nil {
				derivative[c*n+i] = 2*pull + t.field[i]
			}
		}
		energy[c] = u
	}
	return nil
}

func (t *Ising) Energy(_ context.Context, states []int, energy []float64) error {
	return evaluate(t, states, energy, nil)
}

func (t *Ising) EnergyDerivative(_ context.Context, states []int, energy, derivative []float64) error {
	return evaluate(t, states, energy, derivative)
}

func (t *Ising) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	err := t.EnergyDerivative(ctx, states, energy, gradient[len(states):])
	BothWays(gradient)
	return err
}

// BothWays turns derivatives by spins, in the upper half of gradient, into a
// gradient over both categories.
func BothWays(gradient []float64) {
	n := len(gradient) / 2
	for i := range n { // every number is read before it is overwritten
		d := gradient[n+i]
		gradient[2*i] = -d
		gradient[2*i+1] = d
	}
}

// EnergyGradientOf writes U, and the gradient of the terms of some sites,
// scaled to estimate the whole gradient.
func (t *Ising) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error {
	n := len(t.field)
	scale := float64(n) / float64(len(terms))
	derivative := gradient[len(states):]
	clear(derivative)
	for c := range energy {
		state := states[c*n : (c+1)*n]
		out := derivative[c*n : (c+1)*n]
		for _, i := range terms {
			out[i] += scale * t.field[i]
			t.pairs(i, func(k int, w float64) {
				out[i] += scale * w * Spin(state[k])
				out[k] += scale * w * Spin(state[i]) // the term of site i depends on site k as well
			})
		}
	}
	BothWays(gradient)
	return t.Energy(ctx, states, energy)
}

func (t *Ising) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := len(t.field)
	for c, i := range slots {
		d := t.field[i]
		t.pairs(i, func(k int, w float64) {
			if k != i {
				d += 2 * w * Spin(states[c*n+k])
			}
		})
		logp[2*c] = -d
		logp[2*c+1] = d
		logmath.Normalise(logp[2*c : 2*c+2])
	}
	return nil
}

func (t *Ising) Values() [][]float64 { return t.values }

// RelaxedEnergyGradient writes U and ∂U/∂x at real x in [0,1], [chains ×
// sites], with spins s = 2x - 1.
func (t *Ising) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	err := evaluate(t, x, energy, gradient)
	for i := range gradient {
		gradient[i] *= 2
	}
	return err
}
