package chains

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/samplers"
)

// TestLogRMSEOfExactDraws: Gibbs on all slots at once draws independently from
// π, so the mean square error after n steps is σ²/n exactly in expectation, and
// log RMSE falls by ½ ln n.
func TestLogRMSEOfExactDraws(t *testing.T) {
	p := opened(t, "ising:size=2x2,coupling=0.1,field=0.2")
	run := compared(t, p, "gibbs-x:block=4", func(o *compareOptions) {
		o.Chains, o.Steps, o.Initial, o.Seed, o.now = 400, 256, "uniform", 11, lab.Clock
	})
	m := p.truth.means[0]
	if len(run.Cells[0].Curves[byStep]) < 50 {
		t.Fatalf("%d points", len(run.Cells[0].Curves[byStep]))
	}
	for _, point := range run.Cells[0].Curves[byStep] {
		want := math.Log((1-m*m)/point.X) / 2
		if e := point.Error; !(e < 0.04) {
			t.Errorf("step %v: standard error %v from 400 chains of 4 sites", point.X, e)
		}
		labtest.Near(t, fmt.Sprintf("log RMSE at step %v", point.X), point.Y, want, 4.5*point.Error)
	}
	// Independent draws: the effective sample size is their number.
	labtest.Near(t, "ESS of 1,000 steps", run.Cells[0].Numbers["ess"], 1000, 50)
}

// twoStates is a chain on one slot that flips with probability f: its
// autocorrelation is (1-2f)^k, so that τ = (1-f)/f and ESS = n f/(1-f).
func twoStates(chains, n int, f float64) [][]uint8 {
	states := make([][]uint8, chains)
	for c, r := range samplers.Streams(9, "two states", chains) {
		v := uint8(r.IntN(2))
		for range n {
			if r.Float64() < f {
				v = 1 - v
			}
			states[c] = append(states[c], v)
		}
	}
	return states
}

func TestEffectiveSampleSize(t *testing.T) {
	p := opened(t, "ising:size=1x1,coupling=0,field=0")
	const chains, n, first = 32, 6000, 1000
	for _, flip := range []float64{0.5, 0.2, 0.05, 0.7} {
		e := effectiveSampleSize(p, twoStates(chains, n, flip), first)
		if e.Kept != n-first || e.Still != 0 {
			t.Errorf("flip %v: kept %d, still %d", flip, e.Kept, e.Still)
		}
		// The estimator is noisy, and a few percent off at this length.
		labtest.Near(t, fmt.Sprintf("ESS per step at flip %v", flip), e.Mean/float64(e.Kept), flip/(1-flip),
			0.06*flip/(1-flip)+4*e.StandardError/float64(e.Kept))
	}
	// What is discarded has no influence.
	suffix := twoStates(2, 500, 0.3)
	whole := [][]uint8{append(make([]uint8, 700), suffix[0]...), append(make([]uint8, 700), suffix[1]...)}
	if got, want := effectiveSampleSize(p, whole, 700), effectiveSampleSize(p, suffix, 0); got.Mean != want.Mean ||
		got.RHat != want.RHat {
		t.Errorf("with a discarded part: %+v, without: %+v", got, want)
	}
	still := [][]uint8{make([]uint8, 100), twoStates(1, 100, 0.5)[0]}
	if e := effectiveSampleSize(p, still, 0); e.Still != 1 {
		t.Errorf("a chain that stands: %+v", e)
	}
}

func TestCheckpoints(t *testing.T) {
	for _, steps := range []int{1, 2, 7, 50, 100, 1000, 123457} {
		list := checkpoints(steps)
		if list[len(list)-1] != steps || list[0] != 1 || len(list) > 100 {
			t.Errorf("%d steps: %v", steps, list)
		}
		for i, step := range list[1:] {
			if step <= list[i] {
				t.Errorf("%d steps: %d after %d", steps, step, list[i])
			}
		}
	}
}

// TestTally by hand: one spin of field ln 3 / 2 has mean ½; chain 0 was up 3 of
// 4 times, mean ½, chain 1 always, mean 1.
func TestTally(t *testing.T) {
	p := opened(t, "ising:size=1x1,field="+lab.Decimal(math.Log(3)/2))
	labtest.Near(t, "exact mean", p.truth.means[0], 0.5, 1e-12)
	counts := newTally(p, 2)
	for _, positions := range [][]int{{1, 1}, {0, 1}, {1, 1}, {1, 1}} {
		counts.add(positions)
	}
	value, e := counts.logRMSE()
	labtest.Near(t, "log RMSE", value, math.Log(0.25/2)/2, 1e-12)
	// Squares 0 and ¼: standard error of their mean ⅛, relative to twice ⅛.
	labtest.Near(t, "standard error", e, 0.5, 1e-12)
}

func randomStates(n, slots int, p float64) []int {
	r := samplers.Streams(2, "states", 1)[0]
	states := make([]int, n*slots)
	for i := range states {
		if r.Float64() < p {
			states[i] = 1
		}
	}
	return states
}

// TestDiscrepancyOfEqualSets is zero, also in another order, also over more
// slots than a word has bits.
func TestDiscrepancyOfEqualSets(t *testing.T) {
	for _, slots := range []int{3, 64, 130} {
		states := randomStates(20, slots, 0.3)
		turned := append(append([]int{}, states[5*slots:]...), states[:5*slots]...)
		x, y := newBinarySet(slots, states), newBinarySet(slots, turned)
		value, _ := squaredDiscrepancy(x, y)
		if !(value < 1e-14) {
			t.Errorf("%d slots: %v", slots, value)
		}
		other := newBinarySet(slots, randomStates(21, slots, 0.8))
		if value, _ := squaredDiscrepancy(other, y); !(value > 0.005) {
			t.Errorf("%d slots: %v between different laws", slots, value)
		}
	}
}

// TestDiscrepancyByHand: {00, 11} and {00}: the kernel is 1 or 1/e, so ½(1 +
// 1/e) + 1 - 2·½(1 + 1/e) = ½ - ½/e.
func TestDiscrepancyByHand(t *testing.T) {
	y := newBinarySet(2, []int{0, 0})
	value, _ := squaredDiscrepancy(newBinarySet(2, []int{0, 0, 1, 1}), y)
	labtest.Near(t, "MMD²", value, 0.5-0.5/math.E, 1e-14)
	if _, e := squaredDiscrepancy(y, y); !math.IsNaN(e) {
		t.Errorf("the error of one state is %v, want NaN", e)
	}
}

// TestJackknife: the shortcut equals leaving each state out in turn.
func TestJackknife(t *testing.T) {
	const slots, n = 9, 12
	states := randomStates(n, slots, 0.4)
	y := newBinarySet(slots, randomStates(30, slots, 0.6))
	_, got := squaredDiscrepancy(newBinarySet(slots, states), y)
	var left []float64
	for i := range n {
		rest := append(append([]int{}, states[:i*slots]...), states[(i+1)*slots:]...)
		value, _ := squaredDiscrepancy(newBinarySet(slots, rest), y)
		left = append(left, value)
	}
	centre, sum := stat.Mean(left, nil), 0.0
	for _, v := range left {
		sum += (v - centre) * (v - centre)
	}
	labtest.Near(t, "standard error", got, math.Sqrt(sum*(n-1)/n), 1e-12)
}
