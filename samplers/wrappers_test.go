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

	"infill/internal/targets"
)

func smallTable(t *testing.T) *targets.Table {
	t.Helper()
	table, err := targets.NewTable([]int{2, 3}, rand.New(rand.NewPCG(4, 1)),
		targets.TableOptions{Scale: 1.5, GradientError: 0.4})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func atTemperature(t *testing.T, target Target, temperature float64) *tempered {
	t.Helper()
	w, err := temper(target, temperature)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The joint chain of all replicas moves as the rungs' own kernels and then the
// swaps say, and leaves the product of the tempered laws invariant. Kernels of
// every make are swapped: with gradients, with energies only, with numbers.
func TestParallelTempering(t *testing.T) {
	if testing.Short() {
		t.Skip("what a matrix holds, which the plain run checks")
	}
	ctx := context.Background()
	temperatures := []float64{1, 1.8, 4}
	target := smallTable(t)
	for _, name := range []string{"dmala", "gwg", "lb-1", "hamming-ball", "mlm-mh", "dmala-ordinal"} {
		t.Run(name, func(t *testing.T) {
			kernel := laddered(t, name, target, temperatures)
			var worlds []*world
			var steps [][][]float64
			for _, temperature := range temperatures {
				w := newWorld(t, atTemperature(t, target, temperature))
				worlds = append(worlds, w)
				steps = append(steps, transitionMatrix(t, makeKernel(t, name, w.target), w.Enumeration))
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
				for r, k := range kernel.mover.(*ladder).rungs[1:] {
					if start.own.(replicas)[r+1], err = k.Init(ctx, e.State(x[r+1])); err != nil {
						t.Fatal(err)
					}
				}
				got := make([]float64, n*n*n)
				var end *State
				var info Info
				err = everyPath(func(src source) error {
					end = start.clone()
					return kernel.transition(ctx, end, []source{src}, &info)
				}, func(p float64) {
					rungs := end.own.(replicas)
					got[joint([3]int{e.Index(end.Positions), e.Index(rungs[1].Positions),
						e.Index(rungs[2].Positions)})] += p
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
	kernel := laddered(t, "dmala", target, []float64{1, 3})
	streams := Streams(5, "", 4)
	state, err := kernel.Init(ctx, RandomPositions(target, streams))
	if err != nil {
		t.Fatal(err)
	}
	err = advance(ctx, kernel, state, streams, 60, func(_ int, s *State, info *Info) error {
		if info.Cost.Gradients != 8 {
			t.Errorf("cost %+v, want 8 gradients for 4 chains on 2 rungs", info.Cost)
		}
		for i, r := range s.own.(replicas) {
			known := r.own.(*surroundings)
			energy, gradient := make([]float64, 4), make([]float64, len(known.gradient))
			if err := atTemperature(t, target, []float64{1, 3}[i]).EnergyGradient(ctx, r.Positions, energy,
				gradient); err != nil {
				return err
			}
			for _, d := range []string{cmp.Diff(energy, r.Energy, cmpopts.EquateApprox(0, 1e-9)),
				cmp.Diff(gradient, known.gradient, cmpopts.EquateApprox(0, 1e-9))} {
				if d != "" {
					t.Fatalf("rung %d (-fresh +cached):\n%s", i, d)
				}
			}
			if err := checkWeights(kernel.mover.(*ladder).rungs[i].mover.(*dlp).informed, r); err != nil {
				t.Fatalf("rung %d: %v", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := kernel.mover.(*ladder).swaps[0]; s.tried != 240 || s.taken == 0 || s.taken == s.tried {
		t.Errorf("swaps %+v, want 240 tried and some of them taken", s)
	}
}

// laddered is parallel tempering as Sample makes it.
func laddered(t *testing.T, name string, target Target, temperatures []float64) *kernel {
	t.Helper()
	k := makeKernel(t, name, target)
	l, err := newLadder(k, temperatures)
	if err != nil {
		t.Fatal(err)
	}
	return &kernel{mover: l, spec: k.spec, target: target}
}

func TestLadderErrors(t *testing.T) {
	target := smallTable(t)
	for name, c := range map[string]struct {
		sampler string
		target  Target
		ladder  []float64
		want    string
	}{
		"no rung":    {"dmala", target, []float64{}, "a temperature"},
		"descending": {"dmala", target, []float64{2, 1}, "ascend"},
		"zero":       {"dmala", target, []float64{0, 1}, "temperature 0"},
		"stochastic": {"dmala:terms=1", target, []float64{1, 2}, "cannot be swapped"},
		"no energy":  {"gibbs", target, []float64{1, 2}, "gibbs knows none"},
		"together":   {"d-svgd", machine(t), []float64{1, 2}, "move together"},
		"no latents": {"rbm-gibbs", machine(t), []float64{2}, "latent units"},
	} {
		spec, err := Parse(c.sampler)
		if err != nil {
			t.Fatal(err)
		}
		kernel, err := spec.New(c.target, rand.New(rand.NewPCG(1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		plan := Plan{Streams: Streams(1, "", 1), Steps: 1, Ladder: c.ladder}
		if _, err := Sample(t.Context(), kernel, make([]int, len(c.target.Categories())), plan, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

// Annealing ends at the best state there is, and its energy is the target's.
func TestAnneal(t *testing.T) {
	ctx := context.Background()
	target := roughTable()(t).(*targets.Table)
	w := newWorld(t, target)
	best := slices.Max(w.Energy)
	for _, name := range []string{"dmala:step-size=2", "gibbs", "mlm-mh", "lb-1", "acs"} {
		streams := Streams(3, name, 6)
		observed := 0
		got, err := Anneal(ctx, makeKernel(t, name, target), RandomPositions(target, streams), streams,
			AnnealOptions{Steps: 300},
			func(Step) error { observed++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if observed != 301 { // the start, and every step
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
	target := smallTable(t)
	kernel := makeKernel(t, "dmala", target)
	terms, err := Spec{Name: "dmala"}.With("terms", 1).New(target, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	run := func(k Kernel, a AnnealOptions, positions []int) error {
		_, err := Anneal(t.Context(), k, positions, Streams(3, "", 1), a, func(Step) error { return errFails })
		return err
	}
	start := []int{0, 0}
	for name, err := range map[string]error{
		"heating":    run(kernel, AnnealOptions{Start: 1, End: 2}, start),
		"stochastic": run(terms, AnnealOptions{}, start),
		"start":      run(kernel, AnnealOptions{}, []int{5, 5}),
		"no kernel":  run(nil, AnnealOptions{}, start),
	} {
		if err == nil || errors.Is(err, errFails) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := run(kernel, AnnealOptions{}, start); !errors.Is(err, errFails) {
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
	for name, o := range map[string]MaskPredictOptions{"rounds": {Rounds: -1}, "temperature": {Temperature: -1},
		"infinite": {Temperature: math.Inf(1)}} {
		if _, err := MaskPredict(context.Background(), target, nil, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := MaskPredict(context.Background(), only{target}, nil, MaskPredictOptions{}); !errors.Is(err,
		ErrUnsupported) {
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
	got, err := MaskPredict(context.Background(), target, Streams(6, "", chains),
		MaskPredictOptions{Rounds: 1, Temperature: 1})
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
