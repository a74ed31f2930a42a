package lab

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"infill/internal/targets"
	"infill/samplers"
)

// torus is a lattice whose sites all have the same categories, with an energy
// of neighbouring pairs, each edge once, and of single sites.
type torus struct {
	rows, columns int
	edge          [][]float64 // energy of a pair of neighbours, [K][K], symmetric
	site          []float64   // energy of a site, [K]
}

// maxRowStates bounds the transfer matrix: a matrix of 1,024 rows is raised to a power in a second or two.
const maxRowStates = 1024

// transferMatrix returns the probabilities of one site's categories, [K], the same at every site by symmetry. With T(r,
// r') = exp(½w(r) + v(r, r') + ½w(r')) over the states of one row, a torus of R rows has π(r) ∝ (T^R)(r, r) (Kramers
// and Wannier, Statistics of the Two-Dimensional Ferromagnet, 1941). Sides of 1 and 2 have fewer edges than a ring. It
// fails above 1,024 states of a row.
func (t torus) transferMatrix() ([]float64, error) {
	k, length, number := len(t.site), min(t.rows, t.columns), max(t.rows, t.columns)
	states := math.Pow(float64(k), float64(length))
	if states > maxRowStates {
		return nil, fmt.Errorf("a torus of %d × %d sites with %d categories has %.3g states of its shorter side: the "+
			"transfer matrix takes at most %d", t.rows, t.columns, k, states, maxRowStates)
	}
	n := int(states)
	row := make([][]int, n)
	weight := make([]float64, n)
	for r := range row {
		row[r] = make([]int, length)
		for c, rest := 0, r; c < length; c, rest = c+1, rest/k {
			row[r][c] = rest % k
		}
		for c, v := range row[r] {
			weight[r] += t.site[v]
			if length > 2 || length == 2 && c == 0 {
				weight[r] += t.edge[v][row[r][(c+1)%length]]
			}
		}
	}
	between := func(a, b int) float64 {
		u := 0.0
		for c, v := range row[a] {
			u += t.edge[v][row[b][c]]
		}
		return u
	}
	logs := make([]float64, n) // log of what π(r) is proportional to
	switch number {
	case 1:
		copy(logs, weight)
	case 2:
		for r := range logs {
			terms := make([]float64, n)
			for s := range terms {
				terms[s] = weight[r] + between(r, s) + weight[s]
			}
			logs[r] = floats.LogSumExp(terms)
		}
	default:
		transfer := mat.NewSymDense(n, nil)
		largest := math.Inf(-1)
		for r := range n {
			for s := r; s < n; s++ {
				transfer.SetSym(r, s, weight[r]/2+between(r, s)+weight[s]/2)
				largest = math.Max(largest, transfer.At(r, s))
			}
		}
		for r := range n {
			for s := r; s < n; s++ {
				transfer.SetSym(r, s, math.Exp(transfer.At(r, s)-largest))
			}
		}
		power := matrixPower(transfer, number)
		for r := range logs {
			logs[r] = math.Log(power.At(r, r))
		}
	}
	total := floats.LogSumExp(logs)
	p := make([]float64, k)
	for r, l := range logs {
		share := math.Exp(l-total) / float64(length)
		for _, v := range row[r] {
			p[v] += share
		}
	}
	return p, nil
}

// matrixPower is proportional to the power of a non-negative matrix: it is
// scaled on the way, so that nothing overflows.
func matrixPower(m mat.Matrix, power int) *mat.Dense {
	n, _ := m.Dims()
	square := mat.DenseCopyOf(m)
	result := mat.NewDense(n, n, nil)
	for i := range n {
		result.Set(i, i, 1)
	}
	for scratch := mat.NewDense(n, n, nil); ; {
		if power%2 == 1 {
			scratch.Mul(result, square)
			scratch.Scale(1/mat.Max(scratch), scratch)
			result, scratch = scratch, result
		}
		if power /= 2; power == 0 {
			return result
		}
		scratch.Mul(square, square)
		scratch.Scale(1/mat.Max(scratch), scratch)
		square, scratch = scratch, square
	}
}

// marginals lists a target's states for the probabilities of each category of each slot, [slots × K].
func marginals(ctx context.Context, target samplers.Target) ([]float64, error) {
	e, err := targets.Enumerate(ctx, target)
	if err != nil {
		return nil, err
	}
	categories := target.Categories()
	wide := slices.Max(categories)
	sums := make([]float64, len(categories)*wide)
	for i, p := range e.Probability {
		for j, v := range e.State(i) {
			sums[j*wide+v] += p
		}
	}
	return sums, nil
}
