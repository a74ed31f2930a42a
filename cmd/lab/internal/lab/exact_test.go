package lab

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"infill/internal/targets"
	"infill/samplers"
)

// near fails unless two numbers agree to a tolerance.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

func isingTorus(rows, columns int, coupling, field float64) torus {
	return torus{size{rows, columns}, [][]float64{{2 * coupling, -2 * coupling}, {-2 * coupling, 2 * coupling}},
		[]float64{-field, field}}
}

// TestTransferMatrix: equal to listing every state, for every kind of side: one site, a pair, a ring, long and short.
func TestTransferMatrix(t *testing.T) {
	check := func(name string, target samplers.Target, lattice torus) {
		d := &distribution{target: target, observables: indicators(target.Categories())}
		_, listed, err := d.enumerate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		law, err := lattice.transferMatrix()
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range listed {
			near(t, fmt.Sprintf("%s %v: probability %d", name, lattice.size, i), law[i%len(law)], p, 1e-12)
		}
	}
	for _, at := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {1, 5}, {5, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3},
		{4, 3}, {4, 4}} {
		for _, parameters := range [][2]float64{{0.1, 0.2}, {-0.3, 0.5}, {0.5, -0.1}, {0, 1}} {
			target, err := targets.NewIsing(at[0], at[1], parameters[0], parameters[1])
			if err != nil {
				t.Fatal(err)
			}
			check("ising", target, isingTorus(at[0], at[1], parameters[0], parameters[1]))
		}
	}
	field := []float64{0.3, -0.2, 0.1}
	edge := [][]float64{{0.7, 0, 0}, {0, 0.7, 0}, {0, 0, 0.7}}
	for _, at := range [][2]int{{1, 1}, {2, 2}, {2, 3}, {3, 3}, {4, 2}} {
		target, err := targets.NewPotts(at[0], at[1], 0.7, field)
		if err != nil {
			t.Fatal(err)
		}
		check("potts", target, torus{size{at[0], at[1]}, edge, field})
	}
}

// TestLongRun: an estimated truth is within five of its own standard errors.
func TestLongRun(t *testing.T) {
	exactly := opened(t, "ising:size=3x4,coupling=0.1,field=0.2", 0)
	run := opened(t, "ising:size=3x4,coupling=0.1,field=0.2,truth=run,truth-sweeps=300", 5)
	if exactly.truth.run != nil || run.truth.run == nil || run.truth.run.steps != 300*12 {
		t.Fatalf("truths %+v and %+v", exactly.truth, run.truth)
	}
	e := run.truth.run.standardError
	if !(e > 0.001 && e < 0.02) {
		t.Errorf("standard error %v of 16 × 3600 draws of Gibbs on 12 sites", e)
	}
	near(t, "mean", run.truth.means[7], exactly.truth.means[7], 5*e)
	if r := run.truth.run.rHat; !(r > 0.9 && r < 1.05) {
		t.Errorf("R-hat %v", r)
	}

	// On a Potts model, sites share a law and states do not.
	solved := opened(t, "potts:size=2x3,coupling=0.4,field=1/0/-1", 0)
	estimated := opened(t, "potts:size=2x3,coupling=0.4,field=1/0/-1,truth=run,truth-sweeps=300", 5)
	for i := range solved.truth.means {
		near(t, fmt.Sprintf("observable %d", i), estimated.truth.means[i], solved.truth.means[i],
			6*estimated.truth.run.standardError)
	}
}

// TestSymmetry: without a field the means are known on a lattice of any size,
// and are those of the transfer matrix on a small one.
func TestSymmetry(t *testing.T) {
	ising := opened(t, "ising:size=40x40,coupling=0.3,field=0", 0)
	law, err := isingTorus(3, 3, 0.3, 0).transferMatrix()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean spin", ising.truth.means[999], law[1]-law[0], 1e-12)
	potts := opened(t, "potts:size=30x30,coupling=1,field=2/2/2", 0)
	if law, err = (torus{size{2, 3}, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		[]float64{2, 2, 2}}).transferMatrix(); err != nil {
		t.Fatal(err)
	}
	near(t, "share of a state", potts.truth.means[999], law[1], 1e-12)
	if ising.truth.run != nil || potts.truth.run != nil {
		t.Error("a symmetry is no estimate")
	}
}

// TestEnumerate: energies so far apart, and rising, that sums of exponentials overflow.
func TestEnumerate(t *testing.T) {
	table, err := targets.NewTable([]int{2, 3}, samplers.Streams(1, "", 1)[0], targets.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &distribution{target: table, observables: indicators(table.Categories())}
	want := make([]float64, 5)
	for i, state := range [][]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		table.Set(state, 900+math.Log(float64(i+1)))
		want[state[0]] += float64(i+1) / 21
		want[2+state[1]] += float64(i+1) / 21
	}
	_, got, err := d.enumerate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		near(t, fmt.Sprintf("probability %d", i), got[i], want[i], 1e-12)
	}
	d.target, _ = targets.NewIsing(5, 5, 0, 0)
	if _, _, err := d.enumerate(t.Context()); err == nil {
		t.Error("2^25 states were listed")
	}
}

// TestSolved: summing over either side gives what listing the visible states gives, and draws have those means.
func TestSolved(t *testing.T) {
	random := func(visible, hidden int) *targets.RBM {
		m, err := targets.NewRandomRBM(visible, hidden, 1, samplers.Streams(3, "machine", 1)[0])
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, at := range [][2]int{{7, 3}, {3, 7}, {4, 4}, {1, 1}} {
		m := random(at[0], at[1])
		e := enumerated(t, m)
		s, err := solve(m)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "log normaliser", s.logNormaliser, e.LogNormaliser, 1e-10)
		const n = 20000
		states := s.draw(n, samplers.Streams(4, "draws", 1)[0])
		for j, p := range s.means {
			want := e.Mean(func(state []int) float64 { return float64(state[j]) })
			near(t, fmt.Sprintf("mean of unit %d", j), p, want, 1e-12)
			on := 0
			for i := j; i < len(states); i += len(s.means) {
				on += states[i]
			}
			near(t, fmt.Sprintf("drawn mean of unit %d", j), float64(on)/n, p, 5*math.Sqrt(p*(1-p)/n)+1e-9)
		}
	}
	if _, err := solve(random(21, 22)); !errors.Is(err, errTooLarge) {
		t.Errorf("2^21 states were summed: %v", err)
	}
}

// TestStart: an independent start follows the field alone.
func TestStart(t *testing.T) {
	p := opened(t, "potts:size=1x2,coupling=3,field=0/"+decimal(math.Log(3)), 0)
	const chains = 4000
	positions, err := p.positions("independent", samplers.Streams(1, "", chains))
	if err != nil {
		t.Fatal(err)
	}
	ones := 0
	for _, v := range positions {
		ones += v
	}
	near(t, "share of state 1", float64(ones)/(2*chains), 0.75, 5*math.Sqrt(0.75*0.25/(2*chains)))

	table := opened(t, "table", 0)
	if _, err := table.positions("independent", nil); err == nil || !strings.Contains(err.Error(), "choose uniform") {
		t.Errorf("a table has an independent law: %v", err)
	}
}
