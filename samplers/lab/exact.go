package lab

import (
	"context"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"infill/samplers"
	"infill/samplers/targets"
)

// Marginals are the probabilities of each category of each slot, [slots × K]
// row-major, with K the largest number of categories.
type Marginals []float64

// torus is a lattice whose sites all have the same categories, with an energy
// of neighbouring pairs, each edge once, and of single sites.
type torus struct {
	rows, columns int
	edge          [][]float64 // energy of a pair of neighbours, [K][K], symmetric
	site          []float64   // energy of a site, [K]
}

// maxRowStates bounds the transfer matrix: a matrix of 1,024 rows is raised to
// a power in a second or two.
const maxRowStates = 1024

// rowStates is the number of states of the shorter side, +Inf when it would
// overflow.
func (t torus) rowStates() float64 {
	return math.Pow(float64(len(t.site)), float64(min(t.rows, t.columns)))
}

// transferMatrix returns the probabilities of one site's categories, [K], the
// same at every site by symmetry. With T(r, r') = exp(½w(r) + v(r, r') + ½w(r'))
// over the states of one row, a torus of R rows has π(r) ∝ (T^R)(r, r) (Kramers
// and Wannier, Statistics of the Two-Dimensional Ferromagnet, 1941). Sides of 1
// and 2 have fewer edges than a ring. It fails above 1,024 states of a row.
func (t torus) transferMatrix() ([]float64, error) {
	if t.rowStates() > maxRowStates {
		return nil, fmt.Errorf("a torus of %d × %d sites with %d categories has %.3g states of its shorter side: the transfer matrix takes at most %d",
			t.rows, t.columns, len(t.site), t.rowStates(), maxRowStates)
	}
	k, length, number := len(t.site), min(t.rows, t.columns), max(t.rows, t.columns)
	n := int(t.rowStates())
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
			logs[r] = logSum(terms)
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
	total := logSum(logs)
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

func logSum(x []float64) float64 {
	largest := math.Inf(-1)
	for _, v := range x {
		largest = math.Max(largest, v)
	}
	if math.IsInf(largest, -1) {
		return largest
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - largest)
	}
	return largest + math.Log(sum)
}

//go:generate go run ./enumerate ising-5x5.csv

// isingDensity is the number of states of the 5 × 5 torus by the sum of the
// spins and the sum of s_i s_k over the 50 edges, counted over all 2^25 states
// by the program in enumerate. It serves every coupling and field.
//
//go:embed ising-5x5.csv
var isingDensity string

// storedIsingMean is the exact mean spin of the 5 × 5 torus for U = a sᵀWs + b Σ s,
// from the stored enumeration.
func storedIsingMean(coupling, field float64) (float64, error) {
	records, err := csv.NewReader(strings.NewReader(isingDensity)).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("stored enumeration: %w", err)
	}
	var logs, spins []float64
	for _, record := range records[1:] {
		var numbers [3]float64
		for i, text := range record {
			if numbers[i], err = strconv.ParseFloat(text, 64); err != nil {
				return 0, fmt.Errorf("stored enumeration: %w", err)
			}
		}
		spins = append(spins, numbers[0])
		logs = append(logs, field*numbers[0]+2*coupling*numbers[1]+math.Log(numbers[2]))
	}
	total := logSum(logs)
	mean := 0.0
	for i, l := range logs {
		mean += math.Exp(l-total) * spins[i] / 25
	}
	return mean, nil
}

// maxEnumerated is the largest number of states that are listed one by one.
const maxEnumerated = targets.MaxStates

// enumerate returns the marginals of a target by listing its states. It fails
// above 2^22 states.
func enumerate(ctx context.Context, target samplers.Target) (Marginals, error) {
	categories := target.Categories()
	states := 1
	for _, k := range categories {
		if states > maxEnumerated/k {
			return nil, fmt.Errorf("the target has more than %d states: too many to enumerate", maxEnumerated)
		}
		states *= k
	}
	const batch = 4096
	slots, wide := len(categories), widest(categories)
	sums := make(Marginals, slots*wide)
	largest := math.Inf(-1)
	block := make([]int, 0, batch*slots)
	energy := make([]float64, batch)
	state := make([]int, slots)
	for first := 0; first < states; first += batch {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(batch, states-first)
		block = block[:0]
		for range n {
			block = append(block, state...)
			for j := slots - 1; j >= 0; j-- {
				if state[j]++; state[j] < categories[j] {
					break
				}
				state[j] = 0
			}
		}
		if err := target.Energy(ctx, block, energy[:n]); err != nil {
			return nil, err
		}
		for i, u := range energy[:n] {
			if math.IsNaN(u) || math.IsInf(u, 1) {
				return nil, fmt.Errorf("state %v has energy %v: it has no probability", block[i*slots:(i+1)*slots], u)
			}
			if u > largest {
				// All sums so far are in units of exp(largest).
				scale := math.Exp(largest - u)
				for s := range sums {
					sums[s] *= scale
				}
				largest = u
			}
			p := math.Exp(u - largest)
			for j, v := range block[i*slots : (i+1)*slots] {
				sums[j*wide+v] += p
			}
		}
	}
	for j := range slots {
		row := sums[j*wide : (j+1)*wide]
		total := 0.0
		for _, p := range row {
			total += p
		}
		if !(total > 0) {
			return nil, fmt.Errorf("every state is forbidden: nothing to sample")
		}
		for v := range row {
			row[v] /= total
		}
	}
	return sums, nil
}

func widest(categories []int) int {
	k := 0
	for _, n := range categories {
		k = max(k, n)
	}
	return k
}
