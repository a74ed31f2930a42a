package samplers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"infill/samplers/targets"
)

// expectation is E[U] under independent Bernoulli slots, by listing.
func expectation(w *world, logits []float64) float64 {
	mean := 0.0
	for i, u := range w.Energy {
		p := 1.0
		for j, v := range w.State(i) {
			q := 1 / (1 + math.Exp(-logits[j]))
			if v == 0 {
				q = 1 - q
			}
			p *= q
		}
		mean += p * u
	}
	return mean
}

// The estimator is unbiased: its mean over many streams is the derivative of
// the exact expectation, within 5 standard errors.
func TestARMGradient(t *testing.T) {
	ctx := context.Background()
	target := machine(t)
	w := newWorld(t, target)
	arm, err := NewARM(target)
	if err != nil {
		t.Fatal(err)
	}
	logits := []float64{0.7, -1.1, 0.2}
	const n = 40000
	sum, squares := make([]float64, 3), make([]float64, 3)
	one, energy := make([]float64, 3), 0.0
	for _, stream := range Streams(3, "arm", n) {
		u, err := arm.Gradient(ctx, logits, streamsOf(stream), one)
		if err != nil {
			t.Fatal(err)
		}
		energy += u / n
		for j, g := range one {
			sum[j] += g / n
			squares[j] += g * g / n
		}
	}
	const h = 1e-5
	for j := range logits {
		up, down := append([]float64(nil), logits...), append([]float64(nil), logits...)
		up[j] += h
		down[j] -= h
		want := (expectation(w, up) - expectation(w, down)) / (2 * h)
		margin := 5 * math.Sqrt((squares[j]-sum[j]*sum[j])/n)
		if !(math.Abs(sum[j]-want) <= margin) {
			t.Errorf("slot %d: mean gradient %v, want %v ± %v", j, sum[j], want, margin)
		}
		if margin > 0.1*math.Abs(want)+0.02 {
			t.Errorf("slot %d: a margin of %v proves little about %v", j, margin, want)
		}
	}
	if want := expectation(w, logits); !(math.Abs(energy-want) < 0.03) {
		t.Errorf("mean energy %v, want %v", energy, want)
	}
}

// Independent slots are fitted exactly: the log-odds of category 1 is the
// energy difference, and the bound is tight.
func TestFitFactorised(t *testing.T) {
	ctx := context.Background()
	target, err := targets.NewIsing(1, 4, 0, 0.4)
	if err != nil {
		t.Fatal(err)
	}
	f, err := FitFactorised(ctx, target, Streams(4, "fit", 50), FactorisedOptions{Steps: 1500})
	if err != nil {
		t.Fatal(err)
	}
	for j, phi := range f.Logits {
		if !(math.Abs(phi-0.8) < 0.1) {
			t.Errorf("slot %d: log-odds %v, want 0.8", j, phi)
		}
	}
	if want := 4 * math.Log(2*math.Cosh(0.4)); !(math.Abs(f.Bound-want) < 0.02) {
		t.Errorf("bound %v, want %v", f.Bound, want)
	}
}

// Without the entropy the fit goes to the best recombination of two states.
func TestRecombination(t *testing.T) {
	ctx := context.Background()
	target := roughTable()(t).(*targets.Table)
	w := newWorld(t, target)
	first, second := []int{0, 0, 1}, []int{2, 1, 3}
	r, err := Recombine(target, first, second)
	if err != nil {
		t.Fatal(err)
	}
	e := newWorld(t, r)
	best, u := 0, math.Inf(-1)
	for i := range e.Len() {
		mixed := r.(*recombination).mix(e.State(i), nil)
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
	f, err := FitFactorised(ctx, r, Streams(4, "fit", 20), FactorisedOptions{Steps: 800, NoEntropy: true})
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
	ctx := context.Background()
	table := roughTable()(t)
	if _, err := NewARM(table); !errors.Is(err, ErrUnsupported) {
		t.Errorf("three categories: error %v", err)
	}
	if _, err := NewARM(nil); err == nil {
		t.Error("no target: no error")
	}
	if _, err := FitFactorised(ctx, table, nil, FactorisedOptions{}); err == nil {
		t.Error("a fit to three categories: no error")
	}
	target := machine(t)
	if _, err := FitFactorised(ctx, target, nil, FactorisedOptions{}); err == nil {
		t.Error("no streams: no error")
	}
	if _, err := FitFactorised(ctx, target, Streams(1, "", 1), FactorisedOptions{Rate: -1}); err == nil {
		t.Error("a negative rate: no error")
	}
	if _, err := FitFactorised(ctx, spoiltMachine{target, math.Inf(-1), 0}, Streams(1, "", 20), FactorisedOptions{}); err == nil {
		t.Error("a forbidden state: no error")
	}
	if _, err := FitFactorised(ctx, shaped{2, 2}, Streams(1, "", 20), FactorisedOptions{}); err == nil {
		t.Error("a target that fails: no error")
	}
	for name, states := range map[string][2][]int{
		"short": {{0}, {0, 0, 0}}, "two chains": {{0, 0, 0, 0, 0, 0}, {0, 0, 0}}, "range": {{0, 0, 0}, {0, 0, 9}},
	} {
		if _, err := Recombine(table, states[0], states[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Recombine(nil, nil, nil); err == nil {
		t.Error("no target: no error")
	}
}

func streamsOf(stream *rand.Rand) []*rand.Rand { return []*rand.Rand{stream} }

// One estimate is the formula of algorithm 1 at the stream's own numbers.
func TestARMEstimate(t *testing.T) {
	target := machine(t)
	w := newWorld(t, target)
	arm, err := NewARM(target)
	if err != nil {
		t.Fatal(err)
	}
	logits := []float64{0.7, -1.1, 0.2}
	got := make([]float64, 3)
	for seed := range uint64(20) {
		if _, err := arm.Gradient(context.Background(), logits, Streams(seed, "", 1), got); err != nil {
			t.Fatal(err)
		}
		u, right, left := make([]float64, 3), make([]int, 3), make([]int, 3)
		twin := Streams(seed, "", 1)[0]
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
