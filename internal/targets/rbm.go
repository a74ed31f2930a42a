package targets

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
)

// RBM is a restricted Boltzmann machine over its visible units. Its energy sums
// over the hidden units (discrete Langevin paper, section 7.2):
//
//	U(v) = Σ_i softplus(W v + a)_i + bᵀv,  v ∈ {0,1}^D
//
// It has all methods that any sampler needs, including those for block Gibbs.
type RBM struct {
	Weights    []float64 // W, [hidden × visible]
	Hidden     []float64 // a, [hidden]
	Visible    []float64 // b, [visible]
	categories []int
	values     [][]float64
}

// NewRBM makes W [hidden × visible] row-major, a [hidden], b [visible].
func NewRBM(weights, hidden, visible []float64) (*RBM, error) {
	if len(hidden) == 0 || len(visible) == 0 || len(weights) != len(hidden)*len(visible) {
		return nil, fmt.Errorf("an RBM with %d weights for %d hidden and %d visible units: give hidden × visible, "+
			"both at least 1", len(weights), len(hidden), len(visible))
	}
	return &RBM{weights, hidden, visible, slices.Repeat([]int{2}, len(visible)),
		slices.Repeat([][]float64{{0, 1}}, len(visible))}, nil
}

// NewRandomRBM draws weights from N(0, scale²) and biases from N(0, 1).
// The random RBM of the GWG repository has scale √0.05, because the 0.05
// there is a variance.
func NewRandomRBM(visible, hidden int, scale float64, r *rand.Rand) (*RBM, error) {
	return NewRBM(Normals(r, hidden*visible, scale), Normals(r, hidden, 1), Normals(r, visible, 1))
}

func (t *RBM) Categories() []int { return t.categories }

func (t *RBM) Values() [][]float64 { return t.values }

// inputs returns W x + a for the real states x of the chains, [chains × hidden].
func (t *RBM) inputs(x []float64) blas64.General {
	return t.through(blas.Trans, x, t.Hidden)
}

// through multiplies one side's units, and adds the other side's biases.
func (t *RBM) through(turn blas.Transpose, x, biases []float64) blas64.General {
	h := len(t.Hidden)
	d := len(t.Visible)
	from := h + d - len(biases)
	chains := len(x) / from
	out := blas64.General{Rows: chains, Cols: len(biases), Stride: len(biases), Data: slices.Repeat(biases, chains)}
	blas64.Gemm(blas.NoTrans, turn, 1, blas64.General{Rows: chains, Cols: from, Stride: from, Data: x},
		blas64.General{Rows: h, Cols: d, Stride: d, Data: t.Weights}, 1, out)
	return out
}

func (t *RBM) Energy(_ context.Context, states []int, energy []float64) error {
	d := len(t.Visible)
	in := t.inputs(Real(states))
	for c := range energy {
		energy[c] = t.sum(in, c)
		for j, v := range states[c*d : (c+1)*d] {
			energy[c] += t.Visible[j] * float64(v)
		}
	}
	return nil
}

// sum returns Σ_i softplus(in_i) over the inputs of one chain.
func (t *RBM) sum(in blas64.General, chain int) (u float64) {
	for _, x := range in.Data[chain*in.Cols : (chain+1)*in.Cols] {
		u += logmath.Softplus(x)
	}
	return u
}

func Real(states []int) []float64 {
	x := make([]float64, len(states))
	for i, v := range states {
		x[i] = float64(v)
	}
	return x
}

func (t *RBM) EnergyDerivative(ctx context.Context, states []int, energy, derivative []float64) error {
	return t.RelaxedEnergyGradient(ctx, Real(states), energy, derivative)
}

// EnergyGradient writes U and the gradient over one-hot units: 0 for category 0
// and ∂U/∂v_j for category 1.
func (t *RBM) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	derivative := gradient[len(states):] // each entry is read before it is overwritten
	if err := t.EnergyDerivative(ctx, states, energy, derivative); err != nil {
		return err
	}
	for i, d := range derivative {
		gradient[2*i] = 0
		gradient[2*i+1] = d
	}
	return nil
}

func (t *RBM) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	d := len(t.Visible)
	in := t.inputs(Real(states))
	for c, j := range slots {
		difference := t.Visible[j]
		for i := range t.Hidden {
			w := t.Weights[i*d+j]
			off := in.Data[c*in.Cols+i] - w*float64(states[c*d+j])
			difference += logmath.Softplus(off+w) - logmath.Softplus(off)
		}
		logp[2*c] = -logmath.Softplus(difference)
		logp[2*c+1] = -logmath.Softplus(-difference)
	}
	return nil
}

// RelaxedEnergyGradient writes U and ∂U/∂x at real x in [0,1], [chains ×
// visible]. The formula of U stays the same for real x.
func (t *RBM) RelaxedEnergyGradient(_ context.Context, x []float64, energy, gradient []float64) error {
	d := len(t.Visible)
	in := t.inputs(x)
	for c := range energy {
		energy[c] = t.sum(in, c) + floats.Dot(t.Visible, x[c*d:(c+1)*d])
	}
	for i, l := range in.Data {
		in.Data[i] = logmath.Sigmoid(l)
	}
	copy(gradient, t.through(blas.NoTrans, in.Data, t.Visible).Data)
	return nil
}

func (t *RBM) Latents() int { return len(t.Hidden) }

// LatentLogits writes the log-odds of each hidden unit given the visible units,
// [chains × hidden].
func (t *RBM) LatentLogits(states []int, logits []float64) {
	copy(logits, t.inputs(Real(states)).Data)
}

// SlotLogits writes the log-odds of each visible unit given the hidden units,
// [chains × visible].
func (t *RBM) SlotLogits(latents []bool, logits []float64) {
	x := make([]float64, len(latents))
	for i, on := range latents {
		if on {
			x[i] = 1
		}
	}
	copy(logits, t.through(blas.NoTrans, x, t.Visible).Data)
}
