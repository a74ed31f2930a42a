package samplers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// autoregression is an AR(1) series with unit variance, whose ESS is known:
// n (1-φ)/(1+φ).
func autoregression(r *rand.Rand, n int, phi float64) []float64 {
	x := make([]float64, n)
	x[0] = r.NormFloat64()
	for t := 1; t < n; t++ {
		x[t] = phi*x[t-1] + math.Sqrt(1-phi*phi)*r.NormFloat64()
	}
	return x
}

func chainsOf(phi float64, chains, n int) [][]float64 {
	draws := make([][]float64, chains)
	for c := range draws {
		draws[c] = autoregression(rand.New(rand.NewPCG(uint64(c), 17)), n, phi)
	}
	return draws
}

func TestEffectiveSampleSize(t *testing.T) {
	const n = 40000
	for _, phi := range []float64{-0.5, 0, 0.5, 0.9, 0.97} {
		for _, chains := range []int{1, 4} {
			got := EffectiveSampleSize(chainsOf(phi, chains, n))
			want := float64(chains*n) * (1 - phi) / (1 + phi)
			// The estimate itself has a relative error of a few percent here.
			if !(math.Abs(got/want-1) < 0.1) {
				t.Errorf("φ = %v, %d chains: ESS %.0f, want %.0f", phi, chains, got, want)
			}
		}
	}
}

// TestEqualDraws: equal draws have no effective size and no R-hat, though their mean differs from them
// in its last digit.
func TestEqualDraws(t *testing.T) {
	for _, x := range []float64{2, 0.1, -1.1} {
		draws := make([][]float64, 25)
		for i := range draws {
			draws[i] = slices.Repeat([]float64{x}, 100)
		}
		if got := EffectiveSampleSize(draws); !math.IsNaN(got) {
			t.Errorf("draws of %v are worth %v", x, got)
		}
		if got := SplitRHat(draws); !math.IsNaN(got) {
			t.Errorf("draws of %v have an R-hat of %v", x, got)
		}
	}
}

// All autocovariances by the Fourier transform are those that are summed lag by lag.
func TestAutocovariances(t *testing.T) {
	draws := chainsOf(0.99, 2, 701)
	all := autocovariances(draws, []float64{0.3, -0.2})
	for c, mean := range []float64{0.3, -0.2} {
		for lag, got := range all[c] {
			if want := autocovariance(draws[c], mean, lag); !(math.Abs(got-want) < 1e-12) {
				t.Errorf("chain %d, lag %d: %v, want %v", c, lag, got, want)
			}
		}
	}
}

// Written out for a series of six by the definition in the documentation:
// the pair sums are the whole of the autocorrelations.
func TestEffectiveSampleSizeByHand(t *testing.T) {
	x := []float64{1, 2, 4, 3, 5, 6}
	mean, n := 3.5, 6.0
	covariance := func(lag int) float64 {
		sum := 0.0
		for t := lag; t < len(x); t++ {
			sum += (x[t] - mean) * (x[t-lag] - mean)
		}
		return sum / n
	}
	w := covariance(0) * n / (n - 1)
	rho := func(lag int) float64 { return 1 - (w-covariance(lag)*n/(n-1))/(w*(n-1)/n) }
	first, second := 1+rho(1), rho(2)+rho(3)
	if second > 0 {
		t.Fatal("the second pair should end the sequence")
	}
	want := n / (-1 + 2*first)
	if got := EffectiveSampleSize([][]float64{x}); !(math.Abs(got-want) < 1e-12) {
		t.Errorf("ESS %v, want %v", got, want)
	}
}

// Chains that stand apart are worth little, and R-hat says so.
func TestDisagreeingChains(t *testing.T) {
	draws := chainsOf(0, 4, 1000)
	if got := SplitRHat(draws); !(got > 0.99 && got < 1.01) {
		t.Errorf("R-hat of agreeing chains is %v", got)
	}
	for i := range draws[3] {
		draws[3][i] += 5
	}
	if got := SplitRHat(draws); !(got > 1.5) {
		t.Errorf("R-hat of disagreeing chains is %v", got)
	}
	if got := EffectiveSampleSize(draws); !(got < 40) {
		t.Errorf("ESS of disagreeing chains is %v", got)
	}
	drift := [][]float64{make([]float64, 100)}
	for i := range drift[0] {
		drift[0][i] = float64(i)
	}
	if got := SplitRHat(drift); !(got > 1.5) {
		t.Errorf("R-hat of a drifting chain is %v", got)
	}
}

func TestSplitRHatByHand(t *testing.T) {
	// Halves {1, 3} and {2, 6}: means 2 and 4, variances 2 and 8.
	want := math.Sqrt(0.5 + 2.0/5)
	if got := SplitRHat([][]float64{{1, 3, 100, 2, 6}}); !(math.Abs(got-want) < 1e-12) {
		t.Errorf("R-hat %v, want %v", got, want)
	}
	if got := SplitRHat([][]float64{{1, 1, 2, 2}}); !math.IsInf(got, 1) {
		t.Errorf("R-hat of two constant halves is %v, want +Inf", got)
	}
}

func TestDiagnosticsThatAreNotDefined(t *testing.T) {
	for name, draws := range map[string][][]float64{
		"none": nil, "short": {{1, 2, 3}}, "unequal": {{1, 2, 3, 4}, {1, 2, 3, 4, 5}},
		"constant": {{2, 2, 2, 2, 2, 2}}, "NaN": {{1, 2, math.NaN(), 4, 5}}, "infinite": {{1, 2, math.Inf(1), 4, 5}},
	} {
		for what, got := range map[string]float64{
			"ESS": EffectiveSampleSize(draws), "R-hat": SplitRHat(draws),
		} {
			if !math.IsNaN(got) {
				t.Errorf("%s: %s is %v, want NaN", name, what, got)
			}
		}
	}
}

func TestAcceptance(t *testing.T) {
	var a Acceptance
	if rates, changed := a.Rates(), a.ChangedSlots(); a.Steps() != 0 || len(rates)+len(changed) != 0 {
		t.Errorf("before the first step: %d steps, rates %v, changed %v", a.Steps(), rates, changed)
	}
	for step := range 10 {
		a.Observe([]bool{step < 2, step < 6}, []int{step % 2, 3})
	}
	if a.Steps() != 10 || !slices.Equal(a.Rates(), []float64{0.2, 0.6}) ||
		!slices.Equal(a.ChangedSlots(), []float64{0.5, 3}) {
		t.Errorf("%d steps, rates %v, changed %v", a.Steps(), a.Rates(), a.ChangedSlots())
	}
	// Mean 0.4, deviation √0.08, over √2 chains.
	mean, e := MeanAndError(a.Rates())
	if !(math.Abs(mean-0.4) < 1e-12 && math.Abs(e-0.2) < 1e-12) {
		t.Errorf("rate %v ± %v, want 0.4 ± 0.2", mean, e)
	}
	mean, e = MeanAndError([]float64{0.5})
	if mean != 0.5 || !math.IsNaN(e) {
		t.Errorf("one chain: %v ± %v, want 0.5 and no error", mean, e)
	}
}
