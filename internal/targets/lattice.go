package targets

import (
	"context"
	"fmt"
	"slices"

	"infill/internal/logmath"
)

// Neighbours lists the neighbours of each site of a torus, each once: on a
// side of two sites the left and the right neighbour are the same one.
func Neighbours(rows, columns int) ([][]int, error) {
	if rows < 1 || columns < 1 {
		return nil, fmt.Errorf("a torus of %d × %d sites: both sides must be at least 1", rows, columns)
	}
	lists := make([][]int, rows*columns)
	for site := range lists {
		r, c := site/columns, site%columns
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

// Ising is the Ising model on a torus, in the form of the discrete Langevin paper (section 7.1): U(s) = a sᵀWs + b Σ s
// with spins s = ±1 and W the binary adjacency matrix, so every edge counts twice. Category 0 is spin -1, category 1 is
// spin +1. Each site is one term of the energy.
type Ising struct {
	coupling, field float64
	near            [][]int
	categories      []int
	values          [][]float64
}

// NewIsing makes the model on rows × columns sites with coupling a and field b.
func NewIsing(rows, columns int, coupling, field float64) (*Ising, error) {
	near, err := Neighbours(rows, columns)
	if err != nil {
		return nil, err
	}
	return &Ising{coupling, field, near, slices.Repeat([]int{2}, rows*columns),
		slices.Repeat([][]float64{{-1, 1}}, rows*columns)}, nil
}

// Spin is the number that a category of an Ising model stands for.
func Spin(category int) float64 { return float64(2*category - 1) }

func (t *Ising) Categories() []int { return t.categories }

func (t *Ising) Terms() int { return len(t.near) }

func (t *Ising) Energy(_ context.Context, states []int, energy []float64) error {
	n := len(t.near)
	for c := range energy {
		state, u := states[c*n:(c+1)*n], 0.0
		for i, near := range t.near {
			sum := 0.0
			for _, k := range near {
				sum += Spin(state[k])
			}
			u += Spin(state[i]) * (t.coupling*sum + t.field)
		}
		energy[c] = u
	}
	return nil
}

func (t *Ising) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	n := len(t.near)
	for i := range states {
		d := t.derivative(states[i/n*n:i/n*n+n], i%n)
		gradient[2*i], gradient[2*i+1] = -d, d
	}
	return t.Energy(ctx, states, energy)
}

// EnergyGradientOf takes the gradient of some sites' terms, scaled.
func (t *Ising) EnergyGradientOf(ctx context.Context, terms []int, states []int, energy, gradient []float64) error {
	n := len(t.near)
	scale := float64(n) / float64(len(terms))
	for c := range energy {
		state, rows := states[c*n:(c+1)*n], gradient[c*n*2:(c+1)*n*2]
		clear(rows)
		for _, i := range terms {
			own := t.field
			for _, k := range t.near[i] {
				own += t.coupling * Spin(state[k])
				// The term a s_i s_k is also site k's business.
				rows[2*k+1] += scale * t.coupling * Spin(state[i])
			}
			rows[2*i+1] += scale * own
		}
		for i := range n {
			rows[2*i] = -rows[2*i+1]
		}
	}
	return t.Energy(ctx, states, energy)
}

func (t *Ising) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := len(t.near)
	for c, i := range slots {
		d := t.derivative(states[c*n:(c+1)*n], i)
		logp[2*c], logp[2*c+1] = -d, d
		logmath.Normalise(logp[2*c : 2*c+2])
	}
	return nil
}

func (t *Ising) Values() [][]float64 { return t.values }

// EnergyDerivative writes U and ∂U/∂s_i of each site.
func (t *Ising) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	n := len(t.near)
	for i := range derivative {
		derivative[i] = t.derivative(states[i/n*n:i/n*n+n], i%n)
	}
	return t.Energy(ctx, states, energy)
}

// derivative is ∂U/∂s_i.
func (t *Ising) derivative(state []int, i int) float64 {
	sum := 0.0
	for _, k := range t.near[i] {
		sum += Spin(state[k])
	}
	return 2*t.coupling*sum + t.field
}

// Potts is the Potts model on a torus: U(θ) = J Σ_edges [θ_i = θ_k] + Σ_i h[θ_i], every edge once.
type Potts struct {
	coupling   float64
	field      []float64
	near       [][]int
	categories []int
}

// NewPotts makes the model on rows × columns sites; field has one value per category.
func NewPotts(rows, columns int, coupling float64, field []float64) (*Potts, error) {
	near, err := Neighbours(rows, columns)
	if err != nil {
		return nil, err
	}
	if len(field) == 0 {
		return nil, fmt.Errorf("a Potts model without categories: give one field value for each")
	}
	return &Potts{coupling, field, near, slices.Repeat([]int{len(field)}, rows*columns)}, nil
}

func (t *Potts) Categories() []int { return t.categories }

func (t *Potts) Energy(_ context.Context, states []int, energy []float64) error {
	n := len(t.near)
	for c := range energy {
		state, u := states[c*n:(c+1)*n], 0.0
		for i, near := range t.near {
			u += t.field[state[i]]
			for _, k := range near {
				if state[i] == state[k] {
					u += t.coupling / 2
				}
			}
		}
		energy[c] = u
	}
	return nil
}

func (t *Potts) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	n, q := len(t.near), len(t.field)
	for i := range states {
		t.local(states[i/n*n:i/n*n+n], i%n, gradient[i*q:(i+1)*q])
	}
	return t.Energy(ctx, states, energy)
}

func (t *Potts) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n, q := len(t.near), len(t.field)
	for c, i := range slots {
		row := logp[c*q : (c+1)*q]
		t.local(states[c*n:(c+1)*n], i, row)
		logmath.Normalise(row)
	}
	return nil
}

// local writes the part of U that depends on site i, by its category.
func (t *Potts) local(state []int, i int, row []float64) {
	copy(row, t.field)
	for _, k := range t.near[i] {
		row[state[k]] += t.coupling
	}
}

// RelaxedEnergyGradient writes U and ∂U/∂x at real x in [0,1], [chains × sites], with spins s = 2x - 1.
func (t *Ising) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	n := len(t.near)
	for c := range energy {
		point, out := x[c*n:(c+1)*n], gradient[c*n:(c+1)*n]
		u := 0.0
		for i, near := range t.near {
			sum := 0.0
			for _, k := range near {
				sum += 2*point[k] - 1
			}
			u += (2*point[i] - 1) * (t.coupling*sum + t.field)
			out[i] = 2 * (2*t.coupling*sum + t.field)
		}
		energy[c] = u
	}
	return nil
}
