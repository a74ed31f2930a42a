package lab

import (
	"context"
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
	return torus{rows, columns, [][]float64{{2 * coupling, -2 * coupling}, {-2 * coupling, 2 * coupling}},
		[]float64{-field, field}}
}

// TestTransferMatrix: equal to listing every state, for every kind of side: one site, a pair, a ring, long and short.
func TestTransferMatrix(t *testing.T) {
	ctx := context.Background()
	for _, size := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {1, 5}, {5, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}, {4, 3},
		{4, 4}} {
		for _, parameters := range [][2]float64{{0.1, 0.2}, {-0.3, 0.5}, {0.5, -0.1}, {0, 1}} {
			t.Run(fmt.Sprintf("ising %v %v", size, parameters), func(t *testing.T) {
				target, err := targets.NewIsing(size[0], size[1], parameters[0], parameters[1])
				if err != nil {
					t.Fatal(err)
				}
				compareLaws(ctx, t, target, isingTorus(size[0], size[1], parameters[0], parameters[1]))
			})
		}
	}
	field := []float64{0.3, -0.2, 0.1}
	edge := [][]float64{{0.7, 0, 0}, {0, 0.7, 0}, {0, 0, 0.7}}
	for _, size := range [][2]int{{1, 1}, {2, 2}, {2, 3}, {3, 3}, {4, 2}} {
		t.Run(fmt.Sprintf("potts %v", size), func(t *testing.T) {
			target, err := targets.NewPotts(size[0], size[1], 0.7, field)
			if err != nil {
				t.Fatal(err)
			}
			compareLaws(ctx, t, target, torus{size[0], size[1], edge, field})
		})
	}
}

func compareLaws(ctx context.Context, t *testing.T, target samplers.Target, lattice torus) {
	t.Helper()
	listed, err := marginals(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	law, err := lattice.transferMatrix()
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range listed {
		near(t, fmt.Sprintf("probability %d", i), law[i%len(law)], p, 1e-12)
	}
}

// TestLongRun: an estimated truth is within five of its own standard errors.
func TestLongRun(t *testing.T) {
	ctx := context.Background()
	exactly, err := NewProblem(ctx, "ising:size=3x4,coupling=0.1,field=0.2", 0)
	if err != nil {
		t.Fatal(err)
	}
	run, err := NewProblem(ctx, "ising:size=3x4,coupling=0.1,field=0.2,truth=run,truth-sweeps=300", 5)
	if err != nil {
		t.Fatal(err)
	}
	if exactly.Truth.Run != nil || run.Truth.Run == nil || run.Truth.Run.Steps != 300*12 {
		t.Fatalf("truths %+v and %+v", exactly.Truth, run.Truth)
	}
	e := run.Truth.Run.StandardError
	if !(e > 0.001 && e < 0.02) {
		t.Errorf("standard error %v of 16 × 3600 draws of Gibbs on 12 sites", e)
	}
	near(t, "mean", run.Truth.Means[7], exactly.Truth.Means[7], 5*e)
	if r := run.Truth.Run.RHat; r == nil || !(*r > 0.9 && *r < 1.05) {
		t.Errorf("R-hat %v", orUndefined(r))
	}

	// On a Potts model, sites share a law and states do not.
	o := pottsOptions{rows: 2, columns: 3, coupling: 0.4, field: []float64{1, 0, -1}}
	solved, err := o.problem(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	o.truth = truthOptions{method: "run", sweeps: 300}
	estimated, err := o.problem(ctx, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range solved.Truth.Means {
		near(t, fmt.Sprintf("observable %d", i), estimated.Truth.Means[i], solved.Truth.Means[i],
			6*estimated.Truth.Run.StandardError)
	}
}

// TestSymmetry: without a field the means are known on a lattice of any size,
// and are those of the transfer matrix on a small one.
func TestSymmetry(t *testing.T) {
	ctx := context.Background()
	ising, err := NewProblem(ctx, "ising:size=40x40,coupling=0.3,field=0", 0)
	if err != nil {
		t.Fatal(err)
	}
	law, err := isingTorus(3, 3, 0.3, 0).transferMatrix()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "mean spin", ising.Truth.Means[999], law[1]-law[0], 1e-12)
	potts, err := NewProblem(ctx, "potts:size=30x30,coupling=1,field=2/2/2", 0)
	if err != nil {
		t.Fatal(err)
	}
	if law, err = (torus{2, 3, [][]float64{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		[]float64{2, 2, 2}}).transferMatrix(); err != nil {
		t.Fatal(err)
	}
	near(t, "share of a state", potts.Truth.Means[999], law[1], 1e-12)
	if ising.Truth.Run != nil || potts.Truth.Run != nil {
		t.Error("a symmetry is no estimate")
	}
}

func TestMarginals(t *testing.T) {
	ctx := context.Background()
	table, err := targets.NewTable([]int{2, 3}, samplers.Streams(1, "", 1)[0], targets.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Energies so far apart, and rising, that sums of exponentials overflow.
	want := make([]float64, 6)
	for i, state := range [][]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		table.Set(state, 900+math.Log(float64(i+1)))
		want[state[0]] += float64(i+1) / 21
		want[3+state[1]] += float64(i+1) / 21
	}
	got, err := marginals(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		near(t, fmt.Sprintf("probability %d", i), got[i], want[i], 1e-12)
	}
	for _, state := range [][]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} {
		table.Set(state, math.Inf(-1))
	}
	if _, err := marginals(ctx, table); err == nil {
		t.Error("a target without possible states was enumerated")
	}
	large, err := targets.NewIsing(5, 5, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := marginals(ctx, large); err == nil {
		t.Error("2^25 states were listed")
	}
}

func random(visible, hidden int) *machine {
	r := samplers.Streams(3, "machine", 1)[0]
	return &machine{targets.Normals(r, visible*hidden, 1), targets.Normals(r, hidden, 1),
		targets.Normals(r, visible, 1)}
}

// TestMachine: summing over either side gives what listing the visible states gives, and draws have those means.
func TestMachine(t *testing.T) {
	ctx := context.Background()
	for _, size := range [][2]int{{7, 3}, {3, 7}, {4, 4}, {1, 1}} {
		m := random(size[0], size[1])
		target, err := targets.NewRBM(m.weights, m.hidden, m.visible)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := marginals(ctx, target)
		if err != nil {
			t.Fatal(err)
		}
		e := enumerated(t, target)
		s, err := m.solve()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "log normaliser", s.logNormaliser, e.LogNormaliser, 1e-10)
		const n = 20000
		states := s.draw(n, samplers.Streams(4, "draws", 1)[0])
		for j, p := range s.means {
			near(t, fmt.Sprintf("mean of unit %d", j), p, listed[2*j+1], 1e-12)
			on := 0
			for i := j; i < len(states); i += len(s.means) {
				on += states[i]
			}
			near(t, fmt.Sprintf("drawn mean of unit %d", j), float64(on)/n, p, 5*math.Sqrt(p*(1-p)/n)+1e-9)
		}
	}
	if _, err := random(21, 22).solve(); !errors.Is(err, errTooLarge) {
		t.Errorf("2^21 states were summed: %v", err)
	}
}

// TestStart: an independent start follows the field alone.
func TestStart(t *testing.T) {
	p, err := pottsOptions{rows: 1, columns: 2, coupling: 3,
		field: []float64{0, math.Log(3)}}.problem(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
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

	table, err := defaultTable().problem(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.positions("independent", nil); err == nil || !strings.Contains(err.Error(), "choose uniform") {
		t.Errorf("a table has an independent law: %v", err)
	}
	if _, err := table.positions("here", nil); err == nil ||
		!strings.Contains(err.Error(), strings.Join(initials(), ", ")) {
		t.Errorf("unknown initial: %v", err)
	}
}
