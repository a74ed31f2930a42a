package infill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"infill/samplers"
)

// unfinished is what a run has found that was called off; nil where it was not.
func (r *run) unfinished(ctx context.Context) *Result {
	if ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrUnwanted) {
		return nil
	}
	var a *answer
	if r.sofar != nil {
		a = r.sofar()
	}
	if a == nil || len(a.states) == 0 {
		return nil
	}
	result := r.state(a)
	if len(result.Fills) == 0 {
		return nil
	}
	result.Unfinished = true
	result.Warnings = []string{"unfinished: interrupted " + cmp.Or(a.note, "before the end")}
	if s := &result.Stats; s.Sampler != Auto { // finds, not draws
		s.Law, s.Chains, s.Steps = NoLaw, r.options.Chains, a.steps
	}
	return result
}

// enumerated is what an enumeration knows that broke off: energy holds NaN where it does not.
func (r *run) enumerated(energy []float64) *answer {
	a := &answer{found: true, note: "before the end: log-likelihoods are what the model rows give that have run"}
	known := make([]float64, len(energy))
	for i, u := range energy {
		if known[i] = u; math.IsNaN(u) {
			known[i] = math.Inf(-1)
		}
		if known[i] > math.Inf(-1) {
			a.distinct++
		}
	}
	if a.distinct == 0 {
		return a
	}
	for _, i := range largest(known, min(r.kept(), a.distinct)) {
		a.states, a.energy = append(a.states, r.combination(i)), append(a.energy, energy[i])
	}
	return a
}

// met is what chains have met by now.
type met struct {
	r      *run
	step   int
	last   []int // the chains' states, where their energies are not known, [chains × variables]
	states [][]int
	energy []float64 // in nats, the largest first
}

// mostMet bounds what is kept of one run.
const mostMet = 100

// observe hears of every step.
func (m *met) observe(at samplers.Step) {
	m.step, m.last = at.Number, nil
	for c, u := range at.State.Energy {
		state := at.State.Position(c)
		if u *= at.Temperature; math.IsNaN(u) {
			m.last = append(m.last, state...)
			continue
		}
		m.add(state, u)
	}
}

// add keeps a state if it is among the likeliest.
func (m *met) add(state []int, u float64) {
	if full := len(m.states) == mostMet; full && u <= m.energy[mostMet-1] || slices.ContainsFunc(m.states, func(s []int) bool { return slices.Equal(s, state) }) {
		return
	}
	place, _ := slices.BinarySearchFunc(m.energy, u, func(a, b float64) int { return cmp.Compare(b, a) })
	m.states, m.energy = slices.Insert(m.states, place, slices.Clone(state)), slices.Insert(m.energy, place, u)
	m.states, m.energy = m.states[:min(mostMet, len(m.states))], m.energy[:min(mostMet, len(m.energy))]
}

// patience is how long an interrupted run asks the model for the energies of its last states.
const patience = 2 * time.Second

// answer lists what was met.
func (m *met) answer() *answer {
	if m.last != nil {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		n := len(m.r.variables)
		last := m.last[:min(len(m.last), mostMet*n)]
		energy := make([]float64, len(last)/n)
		if m.r.target.Energy(ctx, last, energy) == nil {
			for c, u := range energy {
				m.add(last[c*n:(c+1)*n], u)
			}
		}
	}
	return &answer{found: true, states: m.states, energy: m.energy, distinct: len(m.states), steps: m.step,
		note: fmt.Sprintf("at step %d of %d: these are the likeliest fills met by then, not draws", m.step, m.r.options.Steps)}
}
