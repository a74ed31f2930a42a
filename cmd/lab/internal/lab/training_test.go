package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestBarsAndStripes(t *testing.T) {
	for side := 2; side <= 5; side++ {
		data := barsAndStripes(side)
		if len(data) != 1<<(side+1)-2 {
			t.Errorf("side %d: %d patterns", side, len(data))
		}
		seen := map[string]bool{}
		for _, pattern := range data {
			seen[fmt.Sprint(pattern)] = true
			bars, stripes := true, true
			for i, v := range pattern {
				bars = bars && v == pattern[i%side]
				stripes = stripes && v == pattern[i/side*side]
			}
			if !bars && !stripes {
				t.Errorf("side %d: %v is neither", side, pattern)
			}
		}
		if len(seen) != len(data) {
			t.Errorf("side %d: patterns repeat", side)
		}
	}
}

const smallTraining = "rbm:side=3,hidden=10,divergence-steps=5,batch=14,learning-rate=0.05,"

// TestTraining: contrastive divergence moves the probability to the patterns,
// by the exact sum, and repeats with its seed.
func TestTraining(t *testing.T) {
	before, after := opened(t, smallTraining+"updates=1", 0), opened(t, smallTraining+"updates=400", 0)
	again, other := opened(t, smallTraining+"updates=400", 0), opened(t, smallTraining+"updates=400,target-seed=2", 0)
	// Untrained, the 14 patterns are 14 of 512 states.
	near(t, "mass before", before.training.mass, 14.0/512, 0.02)
	if !(after.training.mass > 0.5) || !(after.training.logLikelihood > before.training.logLikelihood+2) {
		t.Errorf("trained: mass %v, log-likelihood %v (before: %v)", after.training.mass,
			after.training.logLikelihood, before.training.logLikelihood)
	}
	if after.training.logLikelihood > -math.Log(14) {
		t.Errorf("log-likelihood %v is better than the best, %v", after.training.logLikelihood, -math.Log(14))
	}
	if !slices.Equal(after.truth.means, again.truth.means) {
		t.Error("two trainings of one seed differ")
	}
	if slices.Equal(after.truth.means, other.truth.means) {
		t.Error("two seeds train one machine")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newDistribution(cancelled, smallTraining+"updates=400", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled training: %v", err)
	}
}

// TestAdam by hand: the first update is the rate times the gradient's sign.
func TestAdam(t *testing.T) {
	a := newAdam(2)
	x := []float64{1, 1}
	a.ascend(x, []float64{3, -0.5}, 0.1, 1)
	near(t, "first", x[0], 1.1, 1e-7)
	near(t, "second", x[1], 0.9, 1e-7)
	// A gradient that turns leaves m̂ = (0.09·3·... ) as the definition has it.
	a.ascend(x, []float64{-3, -0.5}, 0.1, 2)
	first, second := 0.9*0.3-0.1*3, 0.999*0.009+0.001*9
	near(t, "turned", x[0], 1.1+0.1*(first/(1-0.81))/math.Sqrt(second/(1-0.999*0.999)), 1e-7)
}

// TestReference: exact draws and long block Gibbs stand for the same law; the
// chains of block Gibbs come down to the floor, a chain that stands does not.
func TestReference(t *testing.T) {
	p := opened(t, smallTraining+"updates=400,reference=block-gibbs,reference-samples=300,reference-steps=200", 0)
	run := compared(t, p, "rbm-gibbs,dula:step-size=0.05",
		func(o *compareOptions) { o.Chains, o.Steps, o.Initial = 40, 100, "uniform" })
	floor, deviation, err := p.reference.floor(40)
	if err != nil {
		t.Fatal(err)
	}
	if p.reference.method != "block-gibbs" || p.reference.samples != 300 ||
		!slices.ContainsFunc(p.parameters, func(q parameter) bool {
			return q.Name == "reference" && q.Value == "block-gibbs,samples:300,steps:200"
		}) {
		t.Errorf("reference %+v of %v", p.reference, p.parameters)
	}
	// Two sets of 300 draws of one law are closer than 40 draws to 300.
	if a := p.reference.againstExact; a == nil || !(*a < floor) {
		t.Errorf("block Gibbs from exact draws: %v; floor %v", a, floor)
	}
	for i, c := range run.Cells {
		points := c.Curves[mmd]
		above := (math.Exp(points[len(points)-1].Y) - floor) / deviation
		if i == 0 && !(math.Abs(above) < 4) {
			t.Errorf("%v ends %v deviations above the floor", c.Labels, above)
		}
		if i == 1 && !(above > 4) {
			t.Errorf("%v, which hardly moves, ends %v deviations above the floor", c.Labels, above)
		}
	}
	if !(floor > 0) {
		t.Errorf("floor %v", floor)
	}
}

// TestLargeMachine: where neither side can be summed over, truth and reference are of block Gibbs, and said to be.
func TestLargeMachine(t *testing.T) {
	p := opened(t, "rbm:data=none,visible=22,hidden=21,truth-sweeps=60,reference-steps=20,reference-samples=50", 0)
	if p.truth.run == nil || p.truth.run.sampler != "rbm-gibbs" || p.reference.method != "block-gibbs" ||
		p.reference.againstExact != nil {
		t.Errorf("truth %+v, reference %+v", p.truth.run, p.reference)
	}
	if p.training != nil || p.independent != nil {
		t.Error("random weights have a training or a start by data")
	}
}
