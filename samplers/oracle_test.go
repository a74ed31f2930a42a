package samplers

import (
	"context"
	"math"
	"slices"
	"testing"

	"infill/internal/targets"
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

func (w *world) gradients(t *testing.T,
	evaluate func(ctx context.Context, states []int, energy, gradient []float64) error) [][]float64 {
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

// slotMarginal is P(j) and p(v | j) of the samplers that draw a slot first.
func (w *world) slotMarginal(gradient [][]float64, g function,
	i int) (slot func(j int) float64, value func(j, v int) float64) {
	sums, all := make([]float64, len(w.categories)), 0.0
	for j, current := range w.State(i) {
		for v := range w.categories[j] {
			if v != current {
				sums[j] += g(w.ratio(gradient, i, j, v))
			}
		}
		all += sums[j]
	}
	return func(j int) float64 { return sums[j] / all },
		func(j, v int) float64 { return g(w.ratio(gradient, i, j, v)) / sums[j] }
}

// extended builds the transition matrix of a Metropolis–Hastings step whose
// proposal passes through auxiliary draws: outcomes lists, for a state, where
// each draw leads with what probability forth and back.
func (w *world) extended(outcomes func(i int, outcome func(to int, forth, back float64))) [][]float64 {
	p := w.matrix(func(int, int) float64 { return 0 })
	for i := range p {
		p[i][i] = 1
		outcomes(i, func(to int, forth, back float64) {
			flow := math.Min(forth, w.Probability[to]*back/w.Probability[i])
			p[i][to] += flow
			p[i][i] -= flow
		})
	}
	return p
}

// assignments calls f with every way to give the slots other categories.
func (w *world) assignments(i int, slots []int, f func(to int)) {
	state := append([]int(nil), w.State(i)...)
	var set func(rest []int)
	set = func(rest []int) {
		if len(rest) == 0 {
			f(w.Index(state))
			return
		}
		for v := range w.categories[rest[0]] {
			if v != w.State(i)[rest[0]] {
				state[rest[0]] = v
				set(rest[1:])
			}
		}
	}
	set(slots)
}

// orders lists the ordered choices of size slots, with repetition or without.
func orders(n, size int, repeat bool) [][]int {
	if size == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, head := range orders(n, size-1, repeat) {
	next:
		for j := range n {
			for _, h := range head {
				if h == j && !repeat {
					continue next
				}
			}
			all = append(all, append(head[:len(head):len(head)], j))
		}
	}
	return all
}

func (w *world) pathAuxiliary(gradient [][]float64, g function, radius int) [][]float64 {
	along := func(i, to int, path []int) float64 {
		slot, value := w.slotMarginal(gradient, g, i)
		q, left := 1.0, 1.0
		for _, j := range path {
			q *= slot(j) / left * value(j, w.State(to)[j])
			left -= slot(j)
		}
		return q
	}
	return w.extended(func(i int, outcome func(int, float64, float64)) {
		for _, path := range orders(len(w.categories), radius, false) {
			w.assignments(i, path, func(to int) {
				back := make([]int, len(path))
				for r, j := range path {
					back[len(path)-1-r] = j
				}
				outcome(to, along(i, to, path), along(to, i, back))
			})
		}
	})
}

func (w *world) severalSlots(gradient [][]float64, g function, draws int) [][]float64 {
	along := func(i, to int, drawn, distinct []int) float64 {
		slot, value := w.slotMarginal(gradient, g, i)
		q := 1.0
		for _, j := range drawn {
			q *= slot(j)
		}
		for _, j := range distinct {
			q *= value(j, w.State(to)[j])
		}
		return q
	}
	return w.extended(func(i int, outcome func(int, float64, float64)) {
		for _, drawn := range orders(len(w.categories), draws, true) {
			var distinct []int
			for j := range w.categories {
				if slices.Contains(drawn, j) {
					distinct = append(distinct, j)
				}
			}
			w.assignments(i, distinct, func(to int) {
				outcome(to, along(i, to, drawn, distinct), along(to, i, drawn, distinct))
			})
		}
	})
}

// wasserstein is the proposal matrix of DLMC.
func (w *world) wasserstein(gradient [][]float64, g function, tau float64, interpolates bool) [][]float64 {
	return w.matrix(func(i, to int) float64 {
		q := 1.0
		for j, v := range w.State(to) {
			current, all := w.State(i)[j], 0.0
			for u := range w.categories[j] {
				all += w.ratio(gradient, i, j, u)
			}
			nu := func(u int) float64 { return w.ratio(gradient, i, j, u) / all }
			leave := func(u int) float64 {
				rate := g(w.ratio(gradient, i, j, u))
				if interpolates {
					return nu(u) * (1 - math.Exp(-tau*rate/nu(u)))
				}
				return tau * rate
			}
			left := 0.0
			for u := range w.categories[j] {
				if u != current {
					left += leave(u)
				}
			}
			stay := math.Max(1-left, nu(current))
			if v == current {
				q *= stay / (stay + left)
			} else {
				q *= leave(v) / (stay + left)
			}
		}
		return q
	})
}

// byBlocks is the mean over all blocks of a size of Metropolis–Hastings with
// the masked conditionals of a block as proposal.
func (w *world) byBlocks(conditional func(i int, block []int, slot, v int) float64, size int) [][]float64 {
	var ms [][][]float64
	for _, block := range subsets(len(w.categories), size) {
		ms = append(ms, w.metropolis(w.matrix(func(i, to int) float64 {
			q := 1.0
			for j, v := range w.State(to) {
				switch {
				case slices.Contains(block, j):
					q *= conditional(i, block, j, v)
				case v != w.State(i)[j]:
					return 0
				}
			}
			return q
		})))
	}
	return mean(ms)
}

// exactDifferences is a gradient whose differences are those of the energy.
func (w *world) exactDifferences() [][]float64 {
	rows := make([][]float64, w.Len())
	for i := range rows {
		rows[i] = make([]float64, len(w.categories)*w.wide)
		for j := range w.categories {
			state := append([]int(nil), w.State(i)...)
			for v := range w.categories[j] {
				state[j] = v
				rows[i][j*w.wide+v] = w.Energy[w.Index(state)]
			}
		}
	}
	return rows
}

// apart is the proposal of the slots with a distance as the penalty; only the
// slots in which move are drawn.
func (w *world) apart(gradient [][]float64, g function, alpha float64, distance func(slot, from, to int) float64,
	move []int) [][]float64 {
	return w.matrix(func(i, to int) float64 {
		q := 1.0
		for j, v := range w.State(to) {
			current := w.State(i)[j]
			if !slices.Contains(move, j) {
				if v != current {
					return 0
				}
				continue
			}
			weight := func(u int) float64 {
				if u == current {
					return 1
				}
				return g(w.ratio(gradient, i, j, u)) * math.Exp(-distance(j, current, u)/(2*alpha))
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

// onALine is the gradient U'_j v and the squared distance of values.
func (w *world) onALine(t *testing.T) (gradient [][]float64, distance func(slot, from, to int) float64) {
	t.Helper()
	target := w.target.(OrdinalTarget)
	slots := len(w.categories)
	d := make([]float64, w.Len()*slots)
	if err := target.EnergyDerivative(context.Background(), w.States, make([]float64, w.Len()), d); err != nil {
		t.Fatal(err)
	}
	values := target.Values()
	gradient = make([][]float64, w.Len())
	for i := range gradient {
		gradient[i] = make([]float64, slots*w.wide)
		for j := range w.categories {
			for v, x := range values[j] {
				gradient[i][j*w.wide+v] = d[i*slots+j] * x
			}
		}
	}
	return gradient, func(slot, from, to int) float64 {
		return math.Pow(values[slot][to]-values[slot][from], 2)
	}
}

// ball is the transition matrix of the Hamming ball sampler; with the radius
// of the block it is block Gibbs.
func (w *world) ball(block, radius int) [][]float64 {
	var ms [][][]float64
	for _, slots := range subsets(len(w.categories), block) {
		near := func(a, b int) bool {
			differ := 0
			for j, v := range w.State(a) {
				if v != w.State(b)[j] {
					differ++
					if !slices.Contains(slots, j) {
						return false
					}
				}
			}
			return differ <= radius
		}
		size := 0.0
		for u := range w.Len() {
			if near(0, u) {
				size++
			}
		}
		ms = append(ms, w.matrix(func(i, to int) float64 {
			p := 0.0
			for u := range w.Len() {
				if !near(i, u) || !near(u, to) {
					continue
				}
				mass := 0.0
				for x := range w.Len() {
					if near(u, x) {
						mass += w.Probability[x]
					}
				}
				p += w.Probability[to] / mass / size
			}
			return p
		}))
	}
	return mean(ms)
}

// bipartite is block Gibbs on a latent target: the sum over all latent units.
func (w *world) bipartite() [][]float64 {
	target := w.target.(LatentTarget)
	h := target.Latents()
	bernoulli := func(logit float64, on bool) float64 {
		if on {
			return 1 / (1 + math.Exp(-logit))
		}
		return 1 / (1 + math.Exp(logit))
	}
	return w.matrix(func(i, to int) float64 {
		up := make([]float64, h)
		target.LatentLogits(w.State(i), up)
		sum := 0.0
		for bits := range 1 << h {
			latents, p := make([]bool, h), 1.0
			for k := range latents {
				latents[k] = bits>>k&1 == 1
				p *= bernoulli(up[k], latents[k])
			}
			down := make([]float64, len(w.categories))
			target.SlotLogits(latents, down)
			for j, v := range w.State(to) {
				p *= bernoulli(down[j], v == 1)
			}
			sum += p
		}
		return sum
	})
}
