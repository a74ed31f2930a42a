package chains

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
)

// Protein is the Potts model of a protein family, with its contacts, which are
// pairs of sites that touch. Each two categories of each two sites have a
// coupling of their own:
//
//	U(x) = Σ_i h_i[x_i] + Σ_{i<j} J_ij[x_i, x_j]
type Protein struct {
	Sites, States int
	Weights       []float64 // h, then J
	Field         []float64 // h, [sites × states]
	Couplings     []float64 // J, [(site, state) × (site, state)], symmetric, 0 within a site
	Contacts      []bool    // which sites touch, [sites × sites]
	categories    []int
}

// maxPotts limits the size of J, which has (sites × states)² entries.
const maxPotts = 1 << 12

// NewProtein makes a protein without fields, couplings and contacts.
func NewProtein(sites, states int) *Protein {
	n := sites * states
	w := make([]float64, n+n*n)
	return &Protein{sites, states, w, w[:n], w[n:], make([]bool, sites*sites), slices.Repeat([]int{states}, sites)}
}

func (t *Protein) Categories() []int { return t.categories }

func (t *Protein) Energy(_ context.Context, states []int, energy []float64) error {
	n := t.Sites * t.States
	for c := range energy {
		state := states[c*t.Sites : (c+1)*t.Sites]
		u := 0.0
		for i, v := range state {
			a := i*t.States + v
			u += t.Field[a]
			for j, w := range state[:i] {
				u += t.Couplings[a*n+j*t.States+w]
			}
		}
		energy[c] = u
	}
	return nil
}

func (t *Protein) EnergyGradient(_ context.Context, states []int, energy, gradient []float64) error {
	n := t.Sites * t.States
	for c := range energy {
		state := states[c*t.Sites : (c+1)*t.Sites]
		out := gradient[c*n : (c+1)*n]
		copy(out, t.Field)
		for j, w := range state {
			a := j*t.States + w
			floats.Add(out, t.Couplings[a*n:(a+1)*n])
		}
		u := 0.0
		for i, v := range state {
			a := i*t.States + v
			u += (out[a] + t.Field[a]) / 2 // the sum counts every pair twice
		}
		energy[c] = u
	}
	return nil
}

func (t *Protein) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := t.Sites * t.States
	for c, i := range slots {
		row := logp[c*t.States : (c+1)*t.States]
		first := i * t.States
		copy(row, t.Field[first:first+t.States])
		for j, w := range states[c*t.Sites : (c+1)*t.Sites] {
			a := (j*t.States + w) * n
			floats.Add(row, t.Couplings[a+first:a+first+t.States])
		}
		logmath.Normalise(row)
	}
	return nil
}

func (t *Protein) Parameters() []float64 { return t.Weights }

// AddGradient adds scale times the mean over the states of ∂U/∂h, and of ∂U/∂J
// for both orders of a pair.
func (t *Protein) AddGradient(_ context.Context, states []int, scale float64, gradient []float64) error {
	n := t.Sites * t.States
	field := gradient[:n]
	couplings := gradient[n:]
	scale /= float64(len(states) / t.Sites)
	for state := range slices.Chunk(states, t.Sites) {
		for i, v := range state {
			a := i*t.States + v
			field[a] += scale
			for j, w := range state[:i] {
				b := j*t.States + w
				couplings[a*n+b] += scale
				couplings[b*n+a] += scale
			}
		}
	}
	return nil
}

func (t *Protein) Touch(i, j int) {
	t.Contacts[i*t.Sites+j] = true
	t.Contacts[j*t.Sites+i] = true
}

// Norms returns the Frobenius norm of each J_ij, [sites × sites].
func (t *Protein) Norms() []float64 {
	sites := t.Sites
	states := t.States
	n := sites * states
	norms := make([]float64, sites*sites)
	block := make([]float64, 0, states*states)
	for i := range sites {
		for j := range sites {
			block = block[:0]
			for v := range states {
				first := (i*states+v)*n + j*states
				block = append(block, t.Couplings[first:first+states]...)
			}
			norms[i*sites+j] = floats.Norm(block, 2)
		}
	}
	return norms
}
