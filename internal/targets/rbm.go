package targets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"infill/internal/logmath"
)

// RBM is a restricted Boltzmann machine over its visible units, the hidden
// ones summed out (discrete Langevin paper, section 7.2):
//
//	U(v) = Σ_i softplus(W v + a)_i + bᵀv,  v ∈ {0,1}^D
//
// It is a target over binary slots with a gradient, conditionals, an extension
// to real slots in [0,1], and the hidden units that block Gibbs needs.
type RBM struct {
	Weights    []float64 // W, [hidden × visible]
	Hidden     []float64 // a, [hidden]
	Visible    []float64 // b, [visible]
	categories []int
	values     [][]float64
}

// NewRBM makes the target from W [hidden × visible] row-major, a [hidden] and b [visible].
func NewRBM(weights, hidden, visible []float64) (*RBM, error) {
	if len(hidden) == 0 || len(visible) == 0 || len(weights) != len(hidden)*len(visible) {
		return nil, fmt.Errorf("an RBM with %d weights for %d hidden and %d visible units: give hidden × visible, "+
			"both at least 1", len(weights), len(hidden), len(visible))
	}
	return &RBM{weights, hidden, visible, slices.Repeat([]int{2}, len(visible)),
		slices.Repeat([][]float64{{0, 1}}, len(visible))}, nil
}

// NewRandomRBM draws weights from N(0, scale²) and biases from N(0, 1), as the
// random RBM of the GWG repository does with scale 0.05.
func NewRandomRBM(visible, hidden int, scale float64, r *rand.Rand) (*RBM, error) {
	return NewRBM(Normals(r, hidden*visible, scale), Normals(r, hidden, 1), Normals(r, visible, 1))
}

func (t *RBM) Categories() []int { return t.categories }

func (t *RBM) Values() [][]float64 { return t.values }

func (t *RBM) Energy(_ context.Context, states []int, energy []float64) error {
	d := len(t.Visible)
	for c := range energy {
		state, u := states[c*d:(c+1)*d], 0.0
		for i := range t.Hidden {
			u += logmath.Softplus(t.input(i, state))
		}
		for j, v := range state {
			u += t.Visible[j] * float64(v)
		}
		energy[c] = u
	}
	return nil
}

// input is (W v + a)_i.
func (t *RBM) input(i int, state []int) float64 {
	sum := t.Hidden[i]
	row := t.Weights[i*len(state) : (i+1)*len(state)]
	for j, v := range state {
		if v == 1 {
			sum += row[j]
		}
	}
	return sum
}

// EnergyDerivative writes U and ∂U/∂v_j.
func (t *RBM) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	x := make([]float64, len(states))
	for i, v := range states {
		x[i] = float64(v)
	}
	return t.RelaxedEnergyGradient(ctx, x, energy, derivative)
}

// EnergyGradient writes U and its gradient over one-hot units: 0 for category 0 and ∂U/∂v_j for category 1.
func (t *RBM) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	derivative := gradient[len(states):] // written before it is read
	if err := t.EnergyDerivative(ctx, states, energy, derivative); err != nil {
		return err
	}
	for i, d := range derivative {
		gradient[2*i], gradient[2*i+1] = 0, d
	}
	return nil
}

func (t *RBM) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	d := len(t.Visible)
	for c, j := range slots {
		state := states[c*d : (c+1)*d]
		difference := t.Visible[j]
		for i := range t.Hidden {
			w := t.Weights[i*d+j]
			off := t.input(i, state) - w*float64(state[j])
			difference += logmath.Softplus(off+w) - logmath.Softplus(off)
		}
		logp[2*c], logp[2*c+1] = -logmath.Softplus(difference), -logmath.Softplus(-difference)
	}
	return nil
}

// RelaxedEnergyGradient writes U and ∂U/∂x at real x in [0,1], [chains ×
// visible]: softplus and the linear terms extend as they stand.
func (t *RBM) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	d := len(t.Visible)
	for c := range energy {
		point, out := x[c*d:(c+1)*d], gradient[c*d:(c+1)*d]
		copy(out, t.Visible)
		u := 0.0
		for i, sum := range t.Hidden {
			row := t.Weights[i*d : (i+1)*d]
			for j, v := range point {
				sum += row[j] * v
			}
			u += logmath.Softplus(sum)
			s := logmath.Sigmoid(sum)
			for j, w := range row {
				out[j] += s * w
			}
		}
		for j, v := range point {
			u += t.Visible[j] * v
		}
		energy[c] = u
	}
	return nil
}

// Latents is the number of hidden units.
func (t *RBM) Latents() int { return len(t.Hidden) }

// LatentLogits writes the log-odds of each hidden unit given the visible ones, [chains × hidden].
func (t *RBM) LatentLogits(states []int, logits []float64) {
	d, h := len(t.Visible), len(t.Hidden)
	for k := range logits {
		logits[k] = t.input(k%h, states[k/h*d:k/h*d+d])
	}
}

// SlotLogits writes the log-odds of each visible unit given the hidden ones, [chains × visible].
func (t *RBM) SlotLogits(latents []bool, logits []float64) {
	d, h := len(t.Visible), len(t.Hidden)
	for c := range len(latents) / h {
		out := logits[c*d : (c+1)*d]
		copy(out, t.Visible)
		for i, on := range latents[c*h : (c+1)*h] {
			if !on {
				continue
			}
			for j, w := range t.Weights[i*d : (i+1)*d] {
				out[j] += w
			}
		}
	}
}
