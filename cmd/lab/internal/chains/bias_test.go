package chains

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"

	"infill/cmd/lab/internal/lab"
	"infill/cmd/lab/internal/lab/labtest"
	"infill/internal/check"
	"infill/internal/targets"
)

// TestLangevinLaw: on a log-quadratic target the stationary law is π_α ∝ Z_α π
// with the Z_α of the proof of theorem 5.1 (appendix E), there over all states
// at once. Of two states it balances the moves.
func TestLangevinLaw(t *testing.T) {
	ctx := context.Background()
	const coupling, field = 0.1, 0.2
	target := check.Must(targets.NewIsing(2, 2, coupling, field))(t)
	near1 := func(a, b int) bool { return (a^b) == 1 || (a^b) == 2 } // sites of the ring of four, numbered in binary
	for _, alpha := range []float64{0.2, 1, 4} {
		e := labtest.Enumerated(t, target)
		want, total := make([]float64, e.Len()), 0.0
		for i := range want {
			z := 0.0
			for k := range want {
				quadratic := 0.0
				for a := range 4 {
					da := 2 * float64(e.State(k)[a]-e.State(i)[a])
					quadratic += da * da / (2 * alpha)
					for b := range 4 {
						if near1(a, b) {
							quadratic += coupling / 2 * da * 2 * float64(e.State(k)[b]-e.State(i)[b])
						}
					}
				}
				z += math.Exp((e.Energy[k]-e.Energy[i])/2 - quadratic)
			}
			want[i] = z * e.Probability[i]
			total += want[i]
		}
		for i, got := range check.Must(langevinLaw(ctx, target, e, alpha))(t) {
			labtest.Near(t, fmt.Sprintf("α %v, state %d", alpha, i), got, want[i]/total, 1e-13)
		}
	}
	example := targets.CounterExample{A: 0.3, B: 0.4, Epsilon: 0.7}
	law := check.Must(langevinLaw(ctx, example, labtest.Enumerated(t, example), 2))(t)
	up, down := math.Exp(0.4-2*0.3-1), math.Exp(-0.4-2*0.3-1) // ½ U' d - d²/(2α), against 1 for staying
	labtest.Near(t, "two states", law[1]/law[0], up/(1+up)*(1+down)/down, 1e-12)
}

// TestTheorem51: the bias falls with the step size at the rate exp(-1/(2α)) and
// never exceeds the bound; the chains of the kernel show the same law.
func TestTheorem51(t *testing.T) {
	report := labtest.Studied(t, presetStudy(t, "dlp-figure-1", 8, 2000), lab.StudyOptions{Seed: 3})
	var points []map[string]float64
	for _, c := range report.Cells {
		if c.Labels.Value("bias") == biasOfIsing {
			points = append(points, c.Numbers)
		}
	}
	for i, p := range points {
		if i > 0 && !(p["exact"] > points[i-1]["exact"]) {
			t.Errorf("α %v: bias %v, not above %v at a smaller step", p["alpha"], p["exact"], points[i-1]["exact"])
		}
		if !(p["exact"] <= p["bound"]) || !(p["exact"] <= p["bound-of-spins"]) {
			t.Errorf("α %v: bias above the bound: %v", p["alpha"], p)
		}
		if !(p["stochastic"] > 0 && p["stochastic"] <= p["bound-6.1"]) {
			t.Errorf("α %v: %v by single terms, theorem 6.1 has %v", p["alpha"], p["stochastic"], p["bound-6.1"])
		}
		// The sum of absolute errors has about 0.8 of the noise as its mean.
		if !(p["from-stationary"] < 2*p["noise"]) {
			t.Errorf("α %v: observed %v from the stationary law, noise %v", p["alpha"], p["from-stationary"],
				p["noise"])
		}
	}
	rate := math.Exp(1/(2*points[0]["alpha"]) - 1/(2*points[1]["alpha"]))
	labtest.Near(t, "rate of single terms", points[1]["stochastic"]/points[0]["stochastic"]/rate, 1, 0.05)
	slope := 0.0
	for _, note := range report.Plan.Notes {
		fmt.Sscanf(note, "slope of ln bias against -1/(2α) at small α: %g", &slope)
	}
	labtest.Near(t, "slope", slope, 1, 0.01)
	// The bounds by hand: in x of 0 and 1 the energy is 0.8 Σ_edges x_i x_k -
	// 0.4 Σ x, up to a constant; the eigenvalues are those of the matrix.
	smallest := func(scale float64) float64 {
		w := mat.NewSymDense(4, nil)
		for _, edge := range [][2]int{{0, 1}, {1, 3}, {3, 2}, {2, 0}} {
			w.SetSym(edge[0], edge[1], scale)
		}
		var eigen mat.EigenSym
		if !eigen.Factorize(w, false) {
			t.Fatal("no eigenvalues")
		}
		return slices.Min(eigen.Values(nil))
	}
	z, zSpins := 0.0, 0.0
	for state := range 16 {
		u, spins := 0.0, 0.0
		for _, edge := range [][2]int{{0, 1}, {1, 3}, {3, 2}, {2, 0}} {
			a, b := float64(state>>edge[0]&1), float64(state>>edge[1]&1)
			u += 0.8*a*b - 0.2*(a+b)
			spins += 0.2*(2*a-1)*(2*b-1) + 0.1*(2*a-1+2*b-1)
		}
		z += math.Exp(u)
		zSpins += math.Exp(spins)
	}
	for _, p := range points {
		labtest.Near(t, "bound", p["bound"]/(z*math.Exp(-1/(2*p["alpha"])-smallest(0.4)/2)), 1, 1e-9)
		labtest.Near(t, "bound for spins", p["bound-of-spins"]/(zSpins*math.Exp(-1/(8*p["alpha"])-smallest(0.1)/2)), 1,
			1e-9)
	}
	last := points[len(points)-1]
	// At the largest step the bias stands far out of the noise, so that a
	// kernel without it would be seen.
	if !(last["noise"] < last["exact"]/4) {
		t.Errorf("noise %v hides the bias %v", last["noise"], last["exact"])
	}
	labtest.Near(t, "observed bias", last["observed"], last["exact"], 2*last["noise"])
}

// TestCounterExample: for a = b = 0 DULA sits at ½, whatever ε, and π does not:
// ‖π_α - π‖₁ = tanh 2ε.
func TestCounterExample(t *testing.T) {
	before := -1.0
	for _, c := range labtest.Studied(t, presetStudy(t, "dlp-figure-1", 1, 10), lab.StudyOptions{}).Cells {
		epsilon := check.Must(strconv.ParseFloat(c.Labels.Value("at"), 64))(t)
		switch c.Labels.Value("bias") {
		case "a = 0, b = 0 by ε":
			labtest.Near(t, fmt.Sprintf("bias at ε %v", epsilon), c.Numbers["exact"], math.Tanh(2*epsilon), 1e-12)
		case "a = 1, b = 0.1 by ε":
			if !(c.Numbers["exact"] > before) {
				t.Errorf("ε %v: bias %v, not above %v", epsilon, c.Numbers["exact"], before)
			}
			before = c.Numbers["exact"]
		}
	}
}
