package lab

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"

	"infill/internal/logmath"
)

// coupled is a Potts model with a coupling of its own for every two categories of
// every two sites, as it is fitted to the sequences of a protein family:
//
//	U(x) = Σ_i h_i[x_i] + Σ_{i<j} J_ij[x_i, x_j]
//
// It follows the slices it is made of.
type coupled struct {
	sites, states int
	field         []float64 // h, [sites × states]
	couplings     []float64 // J, [(site, state) × (site, state)], symmetric, 0 within a site
	categories    []int
}

// newCoupled makes the model of h [sites × states] and J [(sites × states) ×
// (sites × states)], which holds every pair twice.
func newCoupled(sites, states int, field, couplings []float64) *coupled {
	return &coupled{sites, states, field, couplings, slices.Repeat([]int{states}, sites)}
}

func (t *coupled) Categories() []int { return t.categories }

func (t *coupled) Energy(_ context.Context, states []int, energy []float64) error {
	n := t.sites * t.states
	for c := range energy {
		state, u := states[c*t.sites:(c+1)*t.sites], 0.0
		for i, v := range state {
			a := i*t.states + v
			u += t.field[a]
			for j, w := range state[:i] {
				u += t.couplings[a*n+j*t.states+w]
			}
		}
		energy[c] = u
	}
	return nil
}

func (t *coupled) EnergyGradient(_ context.Context, states []int, energy, gradient []float64) error {
	n := t.sites * t.states
	for c := range energy {
		state, out := states[c*t.sites:(c+1)*t.sites], gradient[c*n:(c+1)*n]
		copy(out, t.field)
		for j, w := range state {
			a := j*t.states + w
			floats.Add(out, t.couplings[a*n:(a+1)*n])
		}
		u := 0.0
		for i, v := range state {
			a := i*t.states + v
			u += (out[a] + t.field[a]) / 2 // every pair is met twice
		}
		energy[c] = u
	}
	return nil
}

func (t *coupled) LogConditionals(_ context.Context, states []int, slots []int, logp []float64) error {
	n := t.sites * t.states
	for c, i := range slots {
		row := logp[c*t.states : (c+1)*t.states]
		first := i * t.states
		copy(row, t.field[first:first+t.states])
		for j, w := range states[c*t.sites : (c+1)*t.sites] {
			a := (j*t.states + w) * n
			floats.Add(row, t.couplings[a+first:a+first+t.states])
		}
		logmath.Normalise(row)
	}
	return nil
}

// AddMoments adds scale times the mean over the states of ∂U/∂h to field and of
// ∂U/∂J, both ways, to couplings; they have the shapes of h and J.
func (t *coupled) AddMoments(states []int, scale float64, field, couplings []float64) {
	n, chains := t.sites*t.states, len(states)/t.sites
	scale /= float64(chains)
	for c := range chains {
		state := states[c*t.sites : (c+1)*t.sites]
		for i, v := range state {
			a := i*t.states + v
			field[a] += scale
			for j, w := range state[:i] {
				b := j*t.states + w
				couplings[a*n+b] += scale
				couplings[b*n+a] += scale
			}
		}
	}
}
