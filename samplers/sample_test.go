package samplers

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"infill/internal/check"
)

// A warm-up brings the acceptance to its aim, and freezes the step size there.
func TestWarmUp(t *testing.T) {
	target := lattice(t, 5, 5)
	for _, start := range []float64{0.02, 0.3, 50} {
		kernel := makeKernel(t, "dmala", target)
		if err := kernel.mover.(stepSizer).SetStepSize(start); err != nil {
			t.Fatal(err)
		}
		streams := Streams(2, "warm", 20)
		var a Acceptance
		var cost Cost
		last := math.NaN()
		run, err := Sample(t.Context(), kernel, RandomPositions(target, streams),
			Plan{Streams: streams, WarmUp: 400, Steps: 400}, func(s Step) error {
				if s.WarmUp != (s.Number <= 400) || (s.Info == nil) != (s.Number == 0) {
					t.Fatalf("step %+v", s)
				}
				if s.Number > 0 {
					cost = cost.Plus(s.Info.Cost)
				}
				if !s.WarmUp {
					a.Observe(s.Info.Accepted, s.Info.Changed)
					if s.Number > 401 && s.StepSize != last {
						t.Error("the step size changed after the warm-up")
					}
				}
				last = s.StepSize
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if !run.Tuned || run.StepSize != last || cost.Gradients != 800*20 {
			t.Errorf("%+v at step size %v, cost %+v", run, last, cost)
		}
		if rate, _ := MeanAndError(a.Rates()); !(math.Abs(rate-0.574) < 0.05) {
			t.Errorf("from %v: acceptance %v at step size %v, want 0.574", start, rate, last)
		}
	}
}

// Warm-ups end at kernels that move.
func TestWarmUpOfEveryKind(t *testing.T) {
	target := machine(t)
	for _, sampler := range []string{"dmala", "dmala-ordinal", "dlmc", "pafs", "r-mala:smoothing=0.7",
		"r-hmc:smoothing=0.7"} {
		kernel := makeKernel(t, sampler, target)
		before := stepSizeOf(kernel)
		name, _, _ := strings.Cut(sampler, ":")
		streams := Streams(1, name, 10)
		acceptance := 0.0
		run, err := Sample(t.Context(), kernel, RandomPositions(target, streams), Plan{Streams: streams, WarmUp: 300},
			func(s Step) error {
				if s.Info != nil {
					acceptance += s.Info.meanAcceptance() / 300
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if name != "pafs" && !(run.StepSize != before && run.StepSize > 0) {
			t.Errorf("%s: step size %v before and %v after", sampler, before, run.StepSize)
		}
		if !(acceptance > 0.3 && acceptance < 0.99) {
			t.Errorf("%s: acceptance %v in the warm-up", sampler, acceptance)
		}
	}
}

// What a sampler says is not tuned, and there is nothing to tune without a warm-up.
func TestSampleKeepsWhatIsSet(t *testing.T) {
	target := lattice(t, 3, 3)
	streams := Streams(2, "", 4)
	for _, c := range []struct {
		sampler string
		warmUp  int
		tuned   bool
		size    float64
	}{
		{"dmala", 30, true, 0}, {"dmala:balance=ratio", 30, true, 0}, {"dmala", 0, false, 0.2},
		{"dmala:step-size=0.3", 30, false, 0.3},
		{"pafs", 30, true, math.NaN()}, {"pafs:radius=2", 30, false, math.NaN()}, {"gwg", 30, false, math.NaN()},
		{"acs", 30, false, 10},
		{"dlmc:terms=2", 30, true, 0},
	} {
		kernel := check.Must(check.Must(Parse(c.sampler))(t).Kernel(target, Streams(1, "", 1)[0]))(t)
		run, err := Sample(t.Context(), kernel, RandomPositions(target, streams),
			Plan{Streams: streams, WarmUp: c.warmUp, Steps: 3}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if run.Tuned != c.tuned || c.size != 0 && !cmp.Equal(run.StepSize, c.size, cmpEqualNaN) {
			t.Errorf("%s, %d steps of warm-up: tuned %v, step size %v", c.sampler, c.warmUp, run.Tuned, run.StepSize)
		}
	}
}

var cmpEqualNaN = cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })

func TestSampleErrors(t *testing.T) {
	target := lattice(t, 2, 2)
	kernel := makeKernel(t, "dmala", target)
	plan := Plan{Streams: Streams(1, "", 1), WarmUp: 1, Steps: 2}
	start := make([]int, 4)
	for stop := range 4 {
		observed := 0
		_, err := Sample(t.Context(), kernel, start, plan, func(s Step) error {
			if observed++; s.Number == stop {
				return errFails
			}
			return nil
		})
		if !errors.Is(err, errFails) || observed != stop+1 {
			t.Errorf("stopped at step %d: error %v after %d", stop, err, observed)
		}
	}
	if _, err := Sample(t.Context(), kernel, start[:3], plan, nil); err == nil {
		t.Error("half a chain: no error")
	}
	if _, err := Sample(t.Context(), kernel, start, Plan{Steps: 1}, nil); err == nil {
		t.Error("no streams: no error")
	}
}

// stranger is a kernel of somebody else.
type stranger struct{ Kernel }

// Kernels of others are run as they are: nothing is known to tune.
func TestSampleStranger(t *testing.T) {
	target := lattice(t, 2, 2)
	k := stranger{makeKernel(t, "dmala", target)}
	plan := Plan{Streams: Streams(1, "", 2), WarmUp: 5, Steps: 5}
	run, err := Sample(t.Context(), k, make([]int, 8), plan, nil)
	if err != nil || run.Tuned || !math.IsNaN(run.StepSize) {
		t.Errorf("%+v, %v", run, err)
	}
}

// Where no step size reaches the aim, the bounds hold.
func TestAdaptationBounds(t *testing.T) {
	for _, c := range []struct{ acceptance, want float64 }{{1, 8}, {0, 0.25}, {math.NaN(), 0.25}} {
		a := newStepSizeAdaptation(&dlmc{logTau: math.Log(1000)}, 0.25, 8)
		for range 2000 {
			if step := a.update(c.acceptance); !(step >= 0.25-1e-9 && step <= 8+1e-9) {
				t.Fatalf("step size %v is out of bounds", step)
			}
		}
		if got := math.Exp(a.average); !(math.Abs(got/c.want-1) < 0.01) {
			t.Errorf("acceptance %v ends at %v, want %v", c.acceptance, got, c.want)
		}
	}
}

func TestMeanAcceptance(t *testing.T) {
	info := Info{LogAcceptance: []float64{0, 3, math.Log(0.5), math.Inf(-1), math.Inf(-1)}}
	if got := info.meanAcceptance(); !(math.Abs(got-0.5) < 1e-12) {
		t.Errorf("mean acceptance %v, want 0.5", got)
	}
}
