package samplers

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"infill/internal/targets"
)

// script is a source that follows one path of decisions after another, so
// that a test visits every outcome of a step with its exact probability.
type script struct {
	path        []decision
	at          int
	probability float64
}

type decision struct {
	probabilities []float64
	taken         int
}

var _ source = (*script)(nil)

// everyPath runs f once for each path and reports the probability of each.
func everyPath(f func(src source) error, seen func(probability float64)) error {
	s := &script{}
	for {
		s.at, s.probability = 0, 1
		if err := f(s); err != nil {
			return err
		}
		seen(s.probability)
		if !s.advance() {
			return nil
		}
	}
}

// advance turns the last decision that has another possible outcome.
func (s *script) advance() bool {
	for len(s.path) > 0 {
		last := &s.path[len(s.path)-1]
		for last.taken++; last.taken < len(last.probabilities); last.taken++ {
			if last.probabilities[last.taken] > 0 {
				return true
			}
		}
		s.path = s.path[:len(s.path)-1]
	}
	return false
}

func (s *script) decide(probabilities func() []float64) int {
	if s.at == len(s.path) {
		d := decision{probabilities: probabilities()}
		for d.probabilities[d.taken] == 0 {
			d.taken++
		}
		s.path = append(s.path, d)
	}
	d := s.path[s.at]
	s.at++
	s.probability *= d.probabilities[d.taken]
	return d.taken
}

func (s *script) categorical(weight []float64) int {
	return s.decide(func() []float64 {
		p, total := slices.Clone(weight), 0.0
		for _, w := range weight {
			total += w
		}
		for i := range p {
			p[i] /= total
		}
		return p
	})
}

func (s *script) index(n int) int {
	return s.decide(func() []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) })
}

func (s *script) chance(p float64) bool {
	if !(p > 0) {
		return false
	}
	return s.decide(func() []float64 { return []float64{p, 1 - p} }) == 0
}

func (s *script) normal() float64 { panic("a normal number has no list of outcomes") }

// clone copies a state, so that each path starts from the same one.
func (s *State) clone() *State {
	c := *s
	c.Positions, c.Energy = slices.Clone(s.Positions), slices.Clone(s.Energy)
	switch own := s.own.(type) {
	case *surroundings:
		o, w := *own, *own.weights
		o.gradient, o.terms = slices.Clone(o.gradient), slices.Clone(o.terms)
		w.logBlock, w.logTotal = slices.Clone(w.logBlock), slices.Clone(w.logTotal)
		w.auxiliary, w.buffer = slices.Clone(w.auxiliary), slices.Clone(w.buffer)
		o.weights, c.own = &w, &o
	case *relaxed:
		o := *own
		o.z, o.score = slices.Clone(o.z), slices.Clone(o.score)
		o.first, o.second = slices.Clone(o.first), slices.Clone(o.second)
		c.own = &o
	}
	return &c
}

// advance makes steps and calls observe, which may be nil, after each.
func advance(ctx context.Context, k Kernel, state *State, streams []*rand.Rand, steps int,
	observe func(step int, state *State, info *Info) error) error {
	var info Info
	for step := 1; step <= steps; step++ {
		if err := k.Step(ctx, state, streams, &info); err != nil {
			return err
		}
		if observe != nil {
			if err := observe(step, state, &info); err != nil {
				return err
			}
		}
	}
	return nil
}

// transitionMatrix is the exact transition matrix of a kernel's own
// step, row by row over the states of e. Rows of states where the kernel
// cannot start are zero.
func transitionMatrix(t *testing.T, kernel Kernel, e *targets.Enumeration) (matrix [][]float64) {
	t.Helper()
	for i := range e.Len() {
		row := make([]float64, e.Len())
		if start, err := kernel.Init(context.Background(), e.State(i)); err == nil {
			row, _ = transitions(t, kernel, start, e)
		}
		matrix = append(matrix, row)
	}
	return matrix
}

// transitions are the exact probabilities of where a step leads from a state of
// one chain, and the end of one path.
func transitions(t *testing.T, kernel Kernel, start *State, e *targets.Enumeration) (row []float64, end *State) {
	t.Helper()
	row = make([]float64, e.Len())
	var info Info
	total := 0.0
	err := everyPath(func(src source) error {
		end = start.clone()
		defer scriptTerms(kernel, src)()
		return moverOf(kernel).transition(context.Background(), end, []source{src}, &info)
	}, func(p float64) {
		row[e.Index(end.Positions)] += p
		total += p
	})
	if err != nil {
		t.Fatalf("from %v: %v", start.Positions, err)
	}
	if math.Abs(total-1) > 1e-10 {
		t.Errorf("from %v the paths add up to %v, want 1", start.Positions, total)
	}
	return row, end
}

// scriptTerms lets a script decide on the subset of terms too, until the
// function it returns is called.
func scriptTerms(kernel Kernel, src source) (restore func()) {
	k, ok := engineOf(kernel)
	if !ok || k.terms == nil {
		return func() {}
	}
	before := k.terms.src
	k.terms.src = src
	// The order is scratch; a path must not depend on the one before.
	slices.Sort(k.terms.order)
	return func() { k.terms.src = before }
}

func engineOf(k Kernel) (*informed, bool) {
	e, ok := k.(*kernel).mover.(interface{ engine() *informed })
	if !ok {
		return nil, false
	}
	return e.engine(), true
}

// engine promotes through kernels that embed it.
func (k *informed) engine() *informed { return k }

// moverOf is the part of a kernel of this package in which samplers differ.
func moverOf(k Kernel) mover { return k.(*kernel).mover }
