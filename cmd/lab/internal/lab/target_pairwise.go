package lab

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
	"infill/internal/targets"
)

// pairwise is an Ising model with a coupling of its own for every two sites:
//
//	U(s) = sᵀWs + bᵀs,  s ∈ {-1,+1}^n, W symmetric with zeros on the diagonal
//
// so that every pair counts twice, as in [Ising]. Category 0 is spin -1. It
// follows the slices it is made of: who learns W writes to them.
type pairwise struct {
	weights    blas64.General
	field      []float64
	categories []int
	spins      []float64 // of the last call, [chains × sites]
	pulls      []float64 // W s, [chains × sites]
}

// newPairwise makes the model of W [sites × sites] and b [sites].
func newPairwise(weights, field []float64) *pairwise {
	n := len(field)
	return &pairwise{weights: matrix(n, n, weights), field: field, categories: slices.Repeat([]int{2}, n)}
}

func (t *pairwise) Categories() []int { return t.categories }

// evaluate works out s and W s of every chain.
func (t *pairwise) evaluate(states []int) (chains int) {
	n := len(t.field)
	t.spins, t.pulls = t.spins[:0], t.pulls[:0]
	for _, v := range states {
		t.spins, t.pulls = append(t.spins, targets.Spin(v)), append(t.pulls, 0)
	}
	chains = len(states) / n
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, matrix(chains, n, t.spins), t.weights, 0, matrix(chains, n, t.pulls))
	return chains
}

// symmetricNormals are couplings N(0, scale²) of every two sites.
func symmetricNormals(sites int, scale float64, r *rand.Rand) []float64 {
	w := make([]float64, sites*sites)
	for i := range sites {
		for j := range i {
			w[i*sites+j] = scale * r.NormFloat64()
			w[j*sites+i] = w[i*sites+j]
		}
	}
	return w
}

func matrix(rows, columns int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: columns, Stride: columns, Data: data}
}

func (t *pairwise) Energy(_ context.Context, states []int, energy []float64) error {
	t.evaluate(states)
	t.energies(energy)
	return nil
}

func (t *pairwise) energies(energy []float64) {
	n := len(t.field)
	for c := range energy {
		s := t.spins[c*n : (c+1)*n]
		energy[c] = floats.Dot(s, t.pulls[c*n:(c+1)*n]) + floats.Dot(s, t.field)
	}
}

func (t *pairwise) EnergyGradient(_ context.Context, states []int, energy, gradient []float64) error {
	t.evaluate(states)
	t.energies(energy)
	for i, pull := range t.pulls {
		d := 2*pull + t.field[i%len(t.field)]
		gradient[2*i], gradient[2*i+1] = -d, d
	}
	return nil
}

func (t *pairwise) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := len(t.field)
	for c, i := range slots {
		d := t.field[i]
		for j, w := range t.weights.Data[i*n : (i+1)*n] {
			d += 2 * w * targets.Spin(states[c*n+j])
		}
		logp[2*c], logp[2*c+1] = -d, d
		logmath.Normalise(logp[2*c : 2*c+2])
	}
	return nil
}

// AddMoments adds scale times the mean over the states of ssᵀ, which is ∂U/∂W, to
// moments [sites × sites], except on the diagonal.
func (t *pairwise) AddMoments(states []int, scale float64, moments []float64) {
	n := len(t.field)
	chains := t.evaluate(states)
	s := matrix(chains, n, t.spins)
	blas64.Gemm(blas.Trans, blas.NoTrans, scale/float64(chains), s, s, 1, matrix(n, n, moments))
	for i := range n {
		moments[i*n+i] = 0
	}
}
