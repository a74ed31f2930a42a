package lab

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infill/internal/targets"
	"infill/samplers"
)

// fewBits is a random machine of three bits, with all its states.
func fewBits(t *testing.T) (*targets.RBM, *targets.Enumeration) {
	t.Helper()
	target, err := targets.NewRandomRBM(3, 2, 1, rand.New(rand.NewPCG(8, 8)))
	if err != nil {
		t.Fatal(err)
	}
	return target, enumerated(t, target)
}

func enumerated(t *testing.T, target samplers.Target) *targets.Enumeration {
	t.Helper()
	e, err := targets.Enumerate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ragged is a table of 24 states over slots of 3, 2 and 4 categories.
func ragged(t *testing.T) *targets.Table {
	t.Helper()
	table, err := targets.NewTable([]int{3, 2, 4}, rand.New(rand.NewPCG(1, 2)), targets.TableOptions{Scale: 1.2})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// spoilt forbids the states whose first bit is set; failing evaluates none.
type (
	spoilt  struct{ *targets.RBM }
	failing struct{ *targets.RBM }
)

func (s spoilt) Energy(ctx context.Context, states []int, energy []float64) error {
	err := s.RBM.Energy(ctx, states, energy)
	for c := range energy {
		if states[3*c] == 1 {
			energy[c] = math.Inf(-1)
		}
	}
	return err
}

func (failing) Energy(context.Context, []int, []float64) error { return errors.New("not evaluable") }

// Without the entropy the fit goes to the best recombination of two states.
func TestRecombination(t *testing.T) {
	ctx := t.Context()
	target := ragged(t)
	w := enumerated(t, target)
	first, second := []int{0, 0, 1}, []int{2, 1, 3}
	r := recombine(target, first, second)
	e := enumerated(t, r)
	best, u := 0, math.Inf(-1)
	for i := range e.Len() {
		mixed := r.mix(e.State(i), nil)
		for j, from := range e.State(i) {
			if want := [2]int{first[j], second[j]}[from]; mixed[j] != want {
				t.Fatalf("%v mixes to %v", e.State(i), mixed)
			}
		}
		if e.Energy[i] != w.Energy[w.Index(mixed)] {
			t.Errorf("%v has energy %v, want %v", mixed, e.Energy[i], w.Energy[w.Index(mixed)])
		}
		if e.Energy[i] > u {
			best, u = i, e.Energy[i]
		}
	}
	f, err := fitFactorised(ctx, r, samplers.Streams(4, "fit", 20),
		factorisedOptions{Steps: 800, Rate: 0.5, NoEntropy: true})
	if err != nil {
		t.Fatal(err)
	}
	for j, v := range e.State(best) {
		if (f.Logits[j] > 0) != (v == 1) {
			t.Errorf("slot %d has log-odds %v, the best state %d", j, f.Logits[j], v)
		}
	}
}

func TestARMErrors(t *testing.T) {
	ctx := t.Context()
	table := ragged(t)
	if _, err := newARM(table); !errors.Is(err, samplers.ErrUnsupported) {
		t.Errorf("three categories: error %v", err)
	}
	if _, err := fitFactorised(ctx, table, nil, factorisedOptions{}); err == nil {
		t.Error("a fit to three categories: no error")
	}
	target, _ := fewBits(t)
	setting := factorisedOptions{Steps: 500, Rate: 0.5}
	if _, err := fitFactorised(ctx, spoilt{target}, samplers.Streams(1, "", 20), setting); err == nil {
		t.Error("a forbidden state: no error")
	}
	if _, err := fitFactorised(ctx, failing{target}, samplers.Streams(1, "", 20), setting); err == nil {
		t.Error("a target that fails: no error")
	}
}

// One estimate is the formula of algorithm 1 at the stream's own numbers.
func TestARMEstimate(t *testing.T) {
	target, w := fewBits(t)
	arm, err := newARM(target)
	if err != nil {
		t.Fatal(err)
	}
	logits := []float64{0.7, -1.1, 0.2}
	got := make([]float64, 3)
	for seed := range uint64(20) {
		if _, err := arm.estimate(t.Context(), logits, samplers.Streams(seed, "", 1), got); err != nil {
			t.Fatal(err)
		}
		u, right, left := make([]float64, 3), make([]int, 3), make([]int, 3)
		twin := samplers.Streams(seed, "", 1)[0]
		for j, phi := range logits {
			u[j] = twin.Float64()
			if u[j] > 1/(1+math.Exp(phi)) {
				right[j] = 1
			}
			if u[j] < 1/(1+math.Exp(-phi)) {
				left[j] = 1
			}
		}
		for j := range u {
			want := (w.Energy[w.Index(right)] - w.Energy[w.Index(left)]) * (u[j] - 0.5)
			if !(math.Abs(got[j]-want) < 1e-12) {
				t.Errorf("seed %d, slot %d: %v, want %v", seed, j, got[j], want)
			}
		}
	}
}
