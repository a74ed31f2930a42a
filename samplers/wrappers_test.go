package samplers

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/samplers/targets"
)

func smallTable(t *testing.T) *targets.Table {
	t.Helper()
	table, err := targets.NewTable([]int{2, 3}, rand.New(rand.NewPCG(4, 1)), targets.TableOptions{Scale: 1.5, GradientError: 0.4})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func tempered(t *testing.T, target Target, temperature float64) *Tempered {
	t.Helper()
	w, err := NewTempered(target, temperature)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The joint chain of all replicas moves as the rungs' own kernels and then the
// swaps say, and leaves the product of the tempered laws invariant. Kernels of
// every make are swapped: with gradients, with energies only, with numbers.
func TestParallelTempering(t *testing.T) {
	ctx := context.Background()
	ladder := []float64{1, 1.8, 4}
	target := smallTable(t)
	for _, name := range []string{"dmala", "gwg", "lb-1", "hamming-ball", "mlm-mh", "dmala-ordinal"} {
		t.Run(name, func(t *testing.T) {
			kernel, err := New(name, target, Options{Ladder: ladder})
			if err != nil {
				t.Fatal(err)
			}
			var worlds []*world
			var steps [][][]float64
			for _, temperature := range ladder {
				w := newWorld(t, tempered(t, target, temperature))
				single, err := New(name, target, Options{Temperature: temperature})
				if err != nil {
					t.Fatal(err)
				}
				worlds = append(worlds, w)
				steps = append(steps, transitionMatrix(t, single, w.Enumeration))
			}
			n := worlds[0].Len()
			split := func(i int) [3]int { return [3]int{i / (n * n), i / n % n, i % n} }
			joint := func(x [3]int) int { return (x[0]*n+x[1])*n + x[2] }
			e := worlds[0]
			want := make([][]float64, n*n*n)
			swap := make([][]float64, n*n*n)
			for i := range want {
				want[i], swap[i] = make([]float64, n*n*n), make([]float64, n*n*n)
				x := split(i)
				for to := range want[i] {
					y := split(to)
					want[i][to] = steps[0][x[0]][y[0]] * steps[1][x[1]][y[1]] * steps[2][x[2]][y[2]]
				}
				// One of the two pairs of neighbours is tried.
				for a := range 2 {
					y := x
					y[a], y[a+1] = y[a+1], y[a]
					taken := math.Min(1, worlds[a].Probability[y[a]]*worlds[a+1].Probability[y[a+1]]/
						(worlds[a].Probability[x[a]]*worlds[a+1].Probability[x[a+1]]))
					swap[i][joint(y)] += taken / 2
					swap[i][i] += (1 - taken) / 2
				}
			}
			law := make([]float64, n*n*n)
			for i := range law {
				x := split(i)
				law[i] = worlds[0].Probability[x[0]] * worlds[1].Probability[x[1]] * worlds[2].Probability[x[2]]
			}
			after := make([]float64, n*n*n)
			// A selection of joint starts is compared path by path.
			for i := range law {
				x := split(i)
				row := make([]float64, n*n*n)
				for mid, p := range want[i] {
					if p == 0 {
						continue
					}
					for to, s := range swap[mid] {
						row[to] += p * s
					}
				}
				for to, p := range row {
					after[to] += law[i] * p
				}
				if i%31 != 0 {
					continue
				}
				start, err := kernel.Init(ctx, e.State(x[0]))
				if err != nil {
					t.Fatal(err)
				}
				for r, k := range kernel.(*ParallelTempering).Rungs()[1:] {
					if start.replicas[r], err = k.Init(ctx, e.State(x[r+1])); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]float64, n*n*n)
				var end *State
				var info Info
				err = everyPath(func(src source) error {
					end = start.clone()
					return kernel.(transition).transition(ctx, end, []source{src}, &info)
				}, func(p float64) {
					got[joint([3]int{e.Index(end.Positions), e.Index(end.replicas[0].Positions), e.Index(end.replicas[1].Positions)})] += p
				})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(row, got, cmpopts.EquateApprox(0, 1e-10)); d != "" {
					t.Fatalf("from %v (-formula +kernel):\n%s", x, d)
				}
			}
			for i := range law {
				if !(math.Abs(after[i]-law[i]) <= 1e-8) {
					t.Errorf("joint state %v: probability %.12g becomes %.12g", split(i), law[i], after[i])
				}
			}
		})
	}
}

// Swapped energies and gradients are those of the new temperature.
func TestParallelTemperingCaches(t *testing.T) {
	ctx := context.Background()
	target := smallTable(t)
	kernel, err := New("dmala", target, Options{Ladder: []float64{1, 3}})
	if err != nil {
		t.Fatal(err)
	}
	streams := Streams(5, "", 4)
	state, err := kernel.Init(ctx, RandomPositions(target, streams))
	if err != nil {
		t.Fatal(err)
	}
	err = Run(ctx, kernel, state, streams, 60, func(_ int, s *State, info *Info) error {
		if info.Cost.Gradients != 8 {
			t.Errorf("cost %+v, want 8 gradients for 4 chains on 2 rungs", info.Cost)
		}
		for i, r := range []*State{s, s.replicas[0]} {
			energy, gradient := make([]float64, 4), make([]float64, len(r.Gradient))
			if err := tempered(t, target, []float64{1, 3}[i]).EnergyGradient(ctx, r.Positions, energy, gradient); err != nil {
				return err
			}
			for _, d := range []string{cmp.Diff(energy, r.Energy, cmpopts.EquateApprox(0, 1e-9)), cmp.Diff(gradient, r.Gradient, cmpopts.EquateApprox(0, 1e-9))} {
				if d != "" {
					t.Fatalf("rung %d (-fresh +cached):\n%s", i, d)
				}
			}
			if err := checkWeights(r); err != nil {
				t.Fatalf("rung %d: %v", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	swaps := kernel.(*ParallelTempering).Swaps()
	if s := swaps[0]; s.Tried != 240 || s.Taken == 0 || s.Taken == s.Tried {
		t.Errorf("swaps %+v, want 240 tried and some of them taken", s)
	}
}

func TestParallelTemperingErrors(t *testing.T) {
	target := smallTable(t)
	for name, c := range map[string]struct {
		kernel string
		o      Options
		want   string
	}{
		"one rung":           {"dmala", Options{Ladder: []float64{1}}, "at least two"},
		"descending":         {"dmala", Options{Ladder: []float64{2, 1}}, "ascend"},
		"zero":               {"dmala", Options{Ladder: []float64{0, 1}}, "temperature 0"},
		"two coldest":        {"dmala", Options{Ladder: []float64{1, 2}, Temperature: 3}, "no other"},
		"stochastic":         {"dmala", Options{Ladder: []float64{1, 2}, Terms: 1}, "cannot be swapped"},
		"a rung's own fault": {"dmala", Options{Ladder: []float64{1, 2}, StepSize: -1}, "step size"},
	} {
		if _, err := New(c.kernel, target, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	kernel, err := New("gibbs", target, Options{Ladder: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kernel.Init(context.Background(), []int{0, 0}); err == nil {
		t.Error("gibbs knows no energies to swap by, and no error says so")
	}
	if kernel, err = New("gwg", target, Options{Ladder: []float64{1, 2}}); err != nil {
		t.Fatal(err)
	}
	var info Info
	alone, err := kernel.(*ParallelTempering).Rungs()[0].Init(context.Background(), []int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if err := kernel.Step(context.Background(), alone, Streams(1, "", 1), &info); err == nil {
		t.Error("a state without replicas: no error")
	}
}

// Annealing ends at the best state there is, and its energy is the target's.
func TestAnneal(t *testing.T) {
	ctx := context.Background()
	target := roughTable()(t).(*targets.Table)
	w := newWorld(t, target)
	best := slices.Max(w.Energy)
	for name, o := range map[string]Options{"dmala": {StepSize: 2}, "gibbs": {}, "mlm-mh": {}, "lb-1": {}, "acs": {}} {
		streams := Streams(3, name, 6)
		observed := 0
		got, err := Anneal(ctx, name, target, o, RandomPositions(target, streams), streams, AnnealOptions{Steps: 300},
			func(int, *State, *Info) error { observed++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if observed != 300 {
			t.Errorf("%s: %d steps observed", name, observed)
		}
		for c, u := range got.Energy {
			if !(math.Abs(u-best) < 1e-9) {
				t.Errorf("%s: chain %d found energy %v, the best is %v", name, c, u, best)
			}
			if at := w.Energy[w.Index(got.Positions[3*c:3*c+3])]; !(math.Abs(at-u) < 1e-9) {
				t.Errorf("%s: chain %d says %v of a state of energy %v", name, c, u, at)
			}
		}
	}
}

func TestAnnealErrors(t *testing.T) {
	ctx := context.Background()
	target := smallTable(t)
	streams := Streams(3, "", 1)
	run := func(target Target, o Options, a AnnealOptions, positions []int) error {
		_, err := Anneal(ctx, "dmala", target, o, positions, streams, a, func(int, *State, *Info) error { return errFails })
		return err
	}
	start := []int{0, 0}
	for name, err := range map[string]error{
		"heating":     run(target, Options{}, AnnealOptions{Start: 1, End: 2}, start),
		"temperature": run(target, Options{Temperature: 2}, AnnealOptions{}, start),
		"option":      run(target, Options{StepSize: -1}, AnnealOptions{}, start),
		"start":       run(target, Options{}, AnnealOptions{}, []int{5, 5}),
		"no target":   run(nil, Options{}, AnnealOptions{}, start),
	} {
		if err == nil || errors.Is(err, errFails) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := run(target, Options{}, AnnealOptions{}, start); !errors.Is(err, errFails) {
		t.Errorf("the observer's error is lost: %v", err)
	}
}

// ordered is a target whose masked conditionals are simple enough to decode by
// hand: slot 0 is sure, slot 1 copies it and is less sure, slot 2 is least sure
// and copies slot 1 once that is filled.
type ordered struct{ shaped }

func (ordered) LogMaskedConditionals(_ context.Context, states []int, open []bool, logp []float64) error {
	certain := []float64{0.9, 0.8, 0.7}
	for i := range open {
		if !open[i] {
			continue
		}
		favourite := 1
		if j := i % 3; j > 0 && !open[i-1] {
			favourite = 1 - states[i-1]
		}
		logp[2*i+favourite] = math.Log(certain[i%3])
		logp[2*i+1-favourite] = math.Log(1 - certain[i%3])
	}
	return nil
}

func TestMaskPredict(t *testing.T) {
	target := ordered{shaped{2, 2, 2}}
	for _, c := range []struct {
		rounds int
		want   []int
	}{
		{1, []int{1, 1, 1}}, // all at once
		{3, []int{1, 0, 1}}, // one by one: each is the opposite of the last
		{0, []int{1, 0, 1}},
	} {
		p, err := MaskPredict(context.Background(), target, Streams(1, "", 2), MaskPredictOptions{Rounds: c.rounds})
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Concat(c.want, c.want)
		if d := cmp.Diff(want, p.Positions); d != "" {
			t.Errorf("%d rounds (-want +got):\n%s", c.rounds, d)
		}
		confidence := []float64{math.Log(0.9), math.Log(0.8), math.Log(0.7)}
		if d := cmp.Diff(slices.Concat(confidence, confidence), p.Confidence, cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%d rounds, confidence (-want +got):\n%s", c.rounds, d)
		}
	}
	for name, o := range map[string]MaskPredictOptions{"rounds": {Rounds: -1}, "temperature": {Temperature: -1}, "infinite": {Temperature: math.Inf(1)}} {
		if _, err := MaskPredict(context.Background(), target, nil, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := MaskPredict(context.Background(), only{target}, nil, MaskPredictOptions{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no conditionals: error %v", err)
	}
	if _, err := MaskPredict(context.Background(), nil, nil, MaskPredictOptions{}); err == nil {
		t.Error("no target: no error")
	}
	nowhere := maskedNowhere{shaped{2}}
	if _, err := MaskPredict(context.Background(), nowhere, Streams(1, "", 1), MaskPredictOptions{}); err == nil {
		t.Error("a conditional without mass: no error")
	}
}

type maskedNowhere struct{ shaped }

func (maskedNowhere) LogMaskedConditionals(_ context.Context, _ []int, _ []bool, logp []float64) error {
	for i := range logp {
		logp[i] = math.Inf(-1)
	}
	return nil
}

// One round at temperature 1 draws from the conditionals with all slots open.
func TestMaskPredictDraws(t *testing.T) {
	const chains = 20000
	target := ordered{shaped{2, 2, 2}}
	got, err := MaskPredict(context.Background(), target, Streams(6, "", chains), MaskPredictOptions{Rounds: 1, Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	counts := [3]float64{}
	for i, v := range got.Positions {
		counts[i%3] += float64(v) / chains
	}
	for j, p := range []float64{0.9, 0.8, 0.7} {
		if !(math.Abs(counts[j]-p) < 5*math.Sqrt(p*(1-p)/chains)) {
			t.Errorf("slot %d: frequency %v, want %v", j, counts[j], p)
		}
	}
}
