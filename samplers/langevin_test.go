package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/internal/targets"
)

// The preconditioner multiplies the step size of its slot, as in section 6 of
// the paper (appendix H squares it).
func TestPreconditionerIsAStepSizeOfTheSlot(t *testing.T) {
	target := roughTable()(t)
	one := makeKernel(t, "dmala:step-size=0.6,preconditioner=2/2/2", target)
	two := makeKernel(t, "dmala:step-size=1.2", target)
	w := newWorld(t, target)
	if d := cmp.Diff(transitionMatrix(t, one, w.Enumeration), transitionMatrix(t, two, w.Enumeration),
		cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("α g differs from α:\n%s", d)
	}
}

// The binary form of appendix A, algorithm 2: flip with probability e/(1 + e),
// e = exp(-½ U'(2θ - 1) - 1/(2α)); and the one-hot form with twice the α.
func TestBinaryForm(t *testing.T) {
	target := machine(t)
	w := newWorld(t, target)
	const alpha = 0.4
	want := w.matrix(func(i, to int) float64 {
		q := 1.0
		for j, v := range w.State(i) {
			row := w.gradient[i][2*j:]
			e := math.Exp(-(row[1]-row[0])*float64(2*v-1)/2 - 1/(2*alpha))
			if w.State(to)[j] != v {
				q *= e / (1 + e)
			} else {
				q *= 1 / (1 + e)
			}
		}
		return q
	})
	binary := makeKernel(t, fmt.Sprintf("dula-ordinal:step-size=%v", alpha), target)
	oneHot := makeKernel(t, fmt.Sprintf("dula:step-size=%v", 2*alpha), target)
	for name, kernel := range map[string]Kernel{"binary": binary, "one-hot": oneHot} {
		if d := cmp.Diff(want, transitionMatrix(t, kernel, w.Enumeration), cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%s (-algorithm 2 +kernel):\n%s", name, d)
		}
	}
}

// Every step of a cycle is exact, with its own step size and balance.
func TestCyclicalSteps(t *testing.T) {
	target := roughTable()(t)
	w := newWorld(t, target)
	kernel := makeKernel(t, "acs:cycle=4,step-size=3,smallest=0.5", target)
	for k := range 6 {
		angle := math.Cos(math.Pi * float64(k%4) / 4)
		alpha := math.Max(0.5, 1.5*(1+angle))
		beta := 0.175*angle + 0.675
		want := w.metropolis(w.langevin(w.gradient, powerOf(beta), alpha, nil))
		for i := range w.Len() {
			start := started(t, kernel, w.State(i))
			start.own.(*surroundings).step = k
			got, end := transitions(t, kernel, start, w.Enumeration)
			if next := end.own.(*surroundings).step; next != k+1 {
				t.Fatalf("step %d is followed by %d", k, next)
			}
			if d := cmp.Diff(want[i], got, cmpopts.EquateApprox(0, 1e-10)); d != "" {
				t.Fatalf("step %d from %v (-formula +kernel):\n%s", k, w.State(i), d)
			}
		}
	}
	if got := stepSizeOf(kernel); got != 3 {
		t.Errorf("step size %v, want that of the largest step", got)
	}
}

// The number of jumps is what the adaptation asked for: n₀ before the first
// step, and moved by the acceptance afterwards, never below one.
func TestJumpAdaptation(t *testing.T) {
	ctx := context.Background()
	target := lattice(t, 5, 5)
	for _, name := range []string{"dmala-adaptive", "dlmc", "dlmc-euler"} {
		t.Run(name, func(t *testing.T) {
			made := makeKernel(t, name, target)
			kernel := made.mover.(jumper)
			adaptation := adaptationOf(made)
			streams := Streams(2, name, 20)
			state := started(t, made, RandomPositions(target, streams))
			w := 0.0
			for i, v := range state.Positions {
				row := state.own.(*surroundings).gradient[2*i:]
				w += math.Sqrt(math.Exp(row[1-v]-row[v])) / 20
			}
			if got := kernel.jumpWeight(state); !(math.Abs(got-w) < 1e-9) {
				t.Errorf("Z = %v, want %v", got, w)
			}
			if err := adaptation.begin(state); err != nil {
				t.Fatal(err)
			}
			if n := math.Exp(kernel.logJump()) * w; !(math.Abs(n-3) < 1e-9) {
				t.Errorf("%v jumps at the start, want 3", n)
			}
			info := Info{LogAcceptance: []float64{math.Log(0.8)}}
			if err := adaptation.adapt(state, &info, false); err != nil {
				t.Fatal(err)
			}
			if n := math.Exp(kernel.logJump()) * w; !(math.Abs(n-(3+3*(0.8-0.574))) < 1e-9) {
				t.Errorf("%v jumps after an acceptance of 0.8", n)
			}
			info.LogAcceptance[0] = math.Inf(-1)
			for range 20 {
				if err := adaptation.adapt(state, &info, false); err != nil {
					t.Fatal(err)
				}
			}
			if n := math.Exp(kernel.logJump()) * w; !(math.Abs(n-1) < 1e-9) {
				t.Errorf("%v jumps after rejections, want 1", n)
			}
			var a Acceptance
			_, err := Sample(ctx, made, state.Positions, Plan{Streams: streams, WarmUp: 400, Steps: 300},
				func(s Step) error {
					if !s.WarmUp {
						a.Observe(s.Info.Accepted, s.Info.Changed)
					}
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if rate, _ := MeanAndError(a.Rates()); !(math.Abs(rate-0.574) < 0.1) {
				t.Errorf("acceptance %v after the warm-up", rate)
			}
			if err := kernel.setLogTau(math.NaN()); err == nil {
				t.Error("log τ = NaN: no error")
			}
		})
	}
}

// Slots with a single category leave nowhere to jump to: there is nothing to
// adapt, and no error.
func TestJumpAdaptationWithoutJumps(t *testing.T) {
	target, err := targets.NewTable([]int{1, 1}, rand.New(rand.NewPCG(1, 2)), targets.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names() {
		kernel, err := newFrom(name, target)
		if err != nil {
			continue // it wants another target
		}
		streams := Streams(2, name, 3)
		if _, err := Sample(t.Context(), kernel, RandomPositions(target, streams),
			Plan{Streams: streams, WarmUp: 30, Steps: 5}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// τ at and above 1, where no α reaches, is still exact.
func TestAdaptiveDMALAWithLargeTau(t *testing.T) {
	target := roughTable()(t)
	w := newWorld(t, target)
	kernel := makeKernel(t, "dmala-adaptive", target)
	k := kernel.mover.(*dlmc)
	if err := k.setLogTau(0.9); err != nil {
		t.Fatal(err)
	}
	if !math.IsInf(stepSizeOf(kernel), 1) {
		t.Errorf("step size %v, want +Inf", stepSizeOf(kernel))
	}
	checkInvariant(t, w.Probability, transitionMatrix(t, kernel, w.Enumeration))
	if err := k.SetStepSize(0.5); err != nil || k.logJump() != -2 {
		t.Errorf("log τ = %v after α = 0.5: %v", k.logJump(), err)
	}
}

func TestRadiusAdaptation(t *testing.T) {
	ctx := context.Background()
	target := lattice(t, 5, 5)
	kernel := makeKernel(t, "pafs", target)
	streams := Streams(2, "", 20)
	if _, err := Sample(ctx, kernel, RandomPositions(target, streams), Plan{Streams: streams, WarmUp: 300},
		nil); err != nil {
		t.Fatal(err)
	}
	if r := kernel.mover.(*pathAuxiliary).radius; r < 3 || r == 25 {
		t.Errorf("radius %d after the warm-up", r)
	}
}

// A path that runs out of slots that can move is not taken where the way back
// would be longer.
func TestPathThatRunsDry(t *testing.T) {
	table := ragged(targets.TableOptions{Scale: 1.2, GradientError: 0.5})(t).(*targets.Table)
	w := newWorld(t, table)
	for _, radius := range []int{2, 3} {
		kernel := makeKernel(t, fmt.Sprintf("pafs:radius=%v", radius), stubborn{table})
		p := transitionMatrix(t, kernel, w.Enumeration)
		checkInvariant(t, w.Probability, p)
		checkDetailedBalance(t, w.Probability, p)
	}
	for _, draws := range []int{1, 2} {
		kernel := makeKernel(t, fmt.Sprintf("gwg-x:radius=%v", draws), stubborn{table})
		checkInvariant(t, w.Probability, transitionMatrix(t, kernel, w.Enumeration))
	}
}

// stubborn has a gradient that calls most moves of some states impossible.
type stubborn struct{ *targets.Table }

func (s stubborn) EnergyGradient(ctx context.Context, states []int, energy, gradient []float64) error {
	err := s.Table.EnergyGradient(ctx, states, energy, gradient)
	for i, v := range states {
		if i%3 == 0 || states[i/3*3] > 0 {
			continue
		}
		for u := range 4 {
			if u != v && (states[i/3*3+1] == 0 || i%3 == 1) {
				gradient[4*i+u] = math.Inf(-1)
			}
		}
	}
	return err
}

// A step size that changes between steps holds for the whole of the next one:
// nothing of the old one is left in the state.
func TestStepSizeBetweenSteps(t *testing.T) {
	target := roughTable()(t)
	w := newWorld(t, target)
	for _, name := range []string{"dula", "dmala", "dmala-adaptive", "dlmc", "dlmc-euler",
		"dula-ordinal", "dmala-ordinal"} {
		made := makeKernel(t, name+":step-size=0.4", target)
		kernel := made.mover.(stepSizer)
		other := makeKernel(t, name+":step-size=1.5", target)
		want := transitionMatrix(t, other, w.Enumeration)
		for i := range w.Len() {
			if err := kernel.SetStepSize(0.4); err != nil {
				t.Fatal(err)
			}
			start := started(t, made, w.State(i))
			if err := kernel.SetStepSize(1.5); err != nil {
				t.Fatal(err)
			}
			got, _ := transitions(t, made, start, w.Enumeration)
			if d := cmp.Diff(want[i], got, cmpopts.EquateApprox(0, 1e-10)); d != "" {
				t.Fatalf("%s from %v (-made so +changed to it):\n%s", name, w.State(i), d)
			}
		}
		for _, wrong := range []float64{math.NaN(), 0, -1} {
			err := kernel.SetStepSize(wrong)
			if err == nil || kernel.StepSize() != 1.5 {
				t.Errorf("%s: a step size of %v: %v, error %v", name, wrong, kernel.StepSize(), err)
			}
		}
	}
}
