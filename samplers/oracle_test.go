package samplers

import (
	"context"
	"math"
	"testing"

	"infill/samplers/targets"
)

// The formulas here are written from the papers, over whole states and
// without logarithms, and share no arithmetic with the kernels.

// world is an enumerated target with its gradient at every state.
type world struct {
	*targets.Enumeration
	target     Target
	categories []int
	wide       int
	gradient   [][]float64 // [states][slots × K]
}

func newWorld(t *testing.T, target Target) *world {
	t.Helper()
	e, err := targets.Enumerate(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Enumeration: e, target: target, categories: target.Categories()}
	for _, k := range w.categories {
		w.wide = max(w.wide, k)
	}
	if g, ok := target.(GradientTarget); ok {
		w.gradient = w.gradients(t, g.EnergyGradient)
	}
	return w
}

func (w *world) gradients(t *testing.T, evaluate func(ctx context.Context, states []int, energy, gradient []float64) error) [][]float64 {
	t.Helper()
	size := len(w.categories) * w.wide
	all := make([]float64, w.Len()*size)
	if err := evaluate(context.Background(), w.States, make([]float64, w.Len()), all); err != nil {
		t.Fatal(err)
	}
	rows := make([][]float64, w.Len())
	for i := range rows {
		rows[i] = all[i*size : (i+1)*size]
	}
	return rows
}

// ratio is exp of the estimated energy difference of one move.
func (w *world) ratio(gradient [][]float64, i, slot, v int) float64 {
	row := gradient[i][slot*w.wide:]
	return math.Exp(row[v] - row[w.State(i)[slot]])
}

// function is a balancing function of the ratio t.
type function func(t float64) float64

func powerOf(beta float64) function { return func(t float64) float64 { return math.Pow(t, beta) } }
func barker(t float64) float64      { return t / (1 + t) }
func atMostOne(t float64) float64   { return math.Min(1, t) }
func atLeastOne(t float64) float64  { return math.Max(1, t) }

// langevin is the proposal matrix of the discrete Langevin proposal.
func (w *world) langevin(gradient [][]float64, g function, alpha float64, preconditioner []float64) [][]float64 {
	return w.matrix(func(i, to int) float64 {
		q := 1.0
		for j, v := range w.State(to) {
			scale := 1.0
			if preconditioner != nil {
				scale = preconditioner[j]
			}
			weight := func(v int) float64 {
				if v == w.State(i)[j] {
					return g(1) / g(1)
				}
				return g(w.ratio(gradient, i, j, v)) * math.Exp(-1/(alpha*scale))
			}
			sum := 0.0
			for u := range w.categories[j] {
				sum += weight(u)
			}
			q *= weight(v) / sum
		}
		return q
	})
}

// gradientGibbs is the proposal matrix of Gibbs with gradients.
func (w *world) gradientGibbs(gradient [][]float64, g function) [][]float64 {
	return w.matrix(func(i, to int) float64 {
		moved, sum, weight := 0, 0.0, 0.0
		for j, v := range w.State(to) {
			for u := range w.categories[j] {
				if u != w.State(i)[j] {
					sum += g(w.ratio(gradient, i, j, u))
				}
			}
			if v != w.State(i)[j] {
				moved++
				weight = g(w.ratio(gradient, i, j, v))
			}
		}
		if moved != 1 {
			return 0
		}
		return weight / sum
	})
}

// singleSite is the transition matrix of random-scan Gibbs on given
// conditionals p(slot, v | state).
func (w *world) singleSite(conditional func(i, slot, v int) float64) [][]float64 {
	m := len(w.categories)
	return w.matrix(func(i, to int) float64 {
		p := 0.0
		for j := range m {
			if changesOutside(w.State(i), w.State(to), j) == 0 {
				p += conditional(i, j, w.State(to)[j]) / float64(m)
			}
		}
		return p
	})
}

// changesOutside counts the slots other than j that differ.
func changesOutside(a, b []int, j int) int {
	n := 0
	for k := range a {
		if k != j && a[k] != b[k] {
			n++
		}
	}
	return n
}

// conditional of exp(U).
func (w *world) conditional(i, slot, v int) float64 {
	state := append([]int(nil), w.State(i)...)
	sum := 0.0
	for u := range w.categories[slot] {
		state[slot] = u
		sum += w.Probability[w.Index(state)]
	}
	state[slot] = v
	return w.Probability[w.Index(state)] / sum
}

// metropolis turns a proposal matrix into the transition matrix that leaves π
// invariant.
func (w *world) metropolis(q [][]float64) [][]float64 {
	p := w.matrix(func(i, to int) float64 {
		if q[i][to] == 0 || i == to {
			return 0
		}
		return q[i][to] * math.Min(1, w.Probability[to]*q[to][i]/(w.Probability[i]*q[i][to]))
	})
	for i := range p {
		stay := 1.0
		for _, v := range p[i] {
			stay -= v
		}
		p[i][i] = stay
	}
	return p
}

func (w *world) matrix(entry func(i, to int) float64) [][]float64 {
	m := make([][]float64, w.Len())
	for i := range m {
		m[i] = make([]float64, w.Len())
		for to := range m[i] {
			m[i][to] = entry(i, to)
		}
	}
	return m
}

// mean averages matrices.
func mean(ms [][][]float64) [][]float64 {
	out := make([][]float64, len(ms[0]))
	for i := range out {
		out[i] = make([]float64, len(ms[0][i]))
		for _, m := range ms {
			for j, v := range m[i] {
				out[i][j] += v / float64(len(ms))
			}
		}
	}
	return out
}

// stationary is the stationary law of a transition matrix, by squaring.
func stationary(p [][]float64) []float64 {
	m := p
	for range 40 {
		next := make([][]float64, len(m))
		for i := range m {
			next[i] = make([]float64, len(m))
			for k, a := range m[i] {
				for j, b := range m[k] {
					next[i][j] += a * b
				}
			}
			// Rounding would otherwise be squared along.
			sum := 0.0
			for _, v := range next[i] {
				sum += v
			}
			for j := range next[i] {
				next[i][j] /= sum
			}
		}
		m = next
	}
	return m[0]
}

// subsets lists all subsets of {0..n-1} of a size.
func subsets(n, size int) [][]int {
	if size == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for last := size - 1; last < n; last++ {
		for _, s := range subsets(last, size-1) {
			all = append(all, append(s[:len(s):len(s)], last))
		}
	}
	return all
}
