package samplers

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"infill/internal/targets"
)

func machine(t *testing.T) *targets.RBM {
	t.Helper()
	target, err := targets.NewRandomRBM(3, 2, 1, rand.New(rand.NewPCG(8, 8)))
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// dictated gives the normal numbers a test wants, accepts, and records the
// probability with which it would have.
type dictated struct {
	source
	normals []float64
	chances []float64
}

func (d *dictated) normal() float64 {
	x := d.normals[0]
	d.normals = d.normals[1:]
	return x
}

func (d *dictated) chance(p float64) bool {
	d.chances = append(d.chances, p)
	return true
}

// logTarget is log p(z) up to a constant, from the RBM's own formula.
func logTarget(t *testing.T, target Target, z []float64) float64 {
	t.Helper()
	x := make([]int, len(z))
	log := 0.0
	for j, v := range z {
		if v > 0 {
			x[j] = 1
		}
		log -= v * v / 2
	}
	u := make([]float64, 1)
	if err := target.Energy(context.Background(), x, u); err != nil {
		t.Fatal(err)
	}
	return log + u[0]
}

// surrogateScore is ∇ log s(z) by central differences.
func surrogateScore(t *testing.T, target RelaxedTarget, z []float64, smoothing float64) []float64 {
	t.Helper()
	logS := func(z []float64) float64 {
		x := make([]float64, len(z))
		log := 0.0
		for j, v := range z {
			x[j] = 1 / (1 + math.Exp(-v/smoothing))
			log -= v * v / 2
		}
		u, g := make([]float64, 1), make([]float64, len(z))
		if err := target.RelaxedEnergyGradient(context.Background(), x, u, g); err != nil {
			t.Fatal(err)
		}
		return log + u[0]
	}
	const h = 1e-5
	score := make([]float64, len(z))
	for j := range z {
		up, down := slices.Clone(z), slices.Clone(z)
		up[j] += h
		down[j] -= h
		score[j] = (logS(up) - logS(down)) / (2 * h)
	}
	return score
}

// at puts a relaxed state at z.
func at(t *testing.T, k *kernel, r *relaxation, z []float64) *State {
	t.Helper()
	x := make([]int, len(z))
	signs(z, x)
	s := started(t, k, x)
	known := s.own.(*relaxed)
	copy(known.z, z)
	if err := r.surrogate(context.Background(), known.z, known.score); err != nil {
		t.Fatal(err)
	}
	return s
}

func normalVector(r *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// For pairs (z, z') the flow p(z) q(z'|z) A(z → z') is the same both ways.
func TestRelaxedMALADetailedBalance(t *testing.T) {
	target := machine(t)
	const epsilon, smoothing = 0.2, 0.6
	k := makeKernel(t, fmt.Sprintf("r-mala:step-size=%v,smoothing=%v", epsilon, smoothing), target)
	r := rand.New(rand.NewPCG(2, 7))
	flow := func(from, to []float64) float64 {
		score := surrogateScore(t, target, from, smoothing)
		d := &dictated{}
		logq := 0.0
		for j := range from {
			xi := (to[j] - from[j] - epsilon*score[j]) / math.Sqrt(2*epsilon)
			d.normals = append(d.normals, xi)
			logq -= xi * xi / 2
		}
		var info Info
		s := at(t, k, k.mover.(relaxedMALA).relaxation, from)
		if err := k.mover.transition(context.Background(), s, []source{d}, &info); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(to, s.own.(*relaxed).z, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
			t.Fatalf("the kernel did not go where it was sent (-want +got):\n%s", diff)
		}
		return logTarget(t, target, from) + logq + math.Log(d.chances[0])
	}
	rejected := 0
	for range 200 {
		from, to := normalVector(r, 3), normalVector(r, 3)
		there, back := flow(from, to), flow(to, from)
		if !(math.Abs(there-back) < 1e-5) {
			t.Fatalf("log flow %v ↔ %v: %v there, %v back", from, to, there, back)
		}
		if there < logTarget(t, target, from) {
			rejected++
		}
	}
	if rejected == 0 {
		t.Error("no pair had anything to reject")
	}
}

// A leapfrog path run backwards ends where it began, and the flow of the pair
// is the same both ways.
func TestRelaxedHMCDetailedBalance(t *testing.T) {
	target := machine(t)
	k := makeKernel(t, "r-hmc:step-size=0.3,smoothing=0.6,leapfrog=4", target)
	hmc := k.mover.(*relaxedHMC)
	r := rand.New(rand.NewPCG(2, 7))
	run := func(z, p []float64) (end, momentum []float64, flow float64) {
		d := &dictated{normals: slices.Clone(p)}
		var info Info
		s := at(t, k, hmc.relaxation, z)
		if err := k.mover.transition(context.Background(), s, []source{d}, &info); err != nil {
			t.Fatal(err)
		}
		kinetic := 0.0
		for _, v := range p {
			kinetic += v * v / 2
		}
		return slices.Clone(s.own.(*relaxed).z), slices.Clone(hmc.momentum),
			logTarget(t, target, z) - kinetic + math.Log(d.chances[0])
	}
	uncertain := 0
	for range 200 {
		z, p := normalVector(r, 3), normalVector(r, 3)
		end, momentum, there := run(z, p)
		for j := range momentum {
			momentum[j] = -momentum[j]
		}
		start, _, back := run(end, momentum)
		if diff := cmp.Diff(z, start, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("the way back does not end at the start:\n%s", diff)
		}
		if !(math.Abs(there-back) < 1e-9) {
			t.Fatalf("log flow %v there, %v back", there, back)
		}
		if !slices.Equal(z, end) {
			uncertain++
		}
	}
	if uncertain != 200 {
		t.Errorf("only %d of 200 paths moved", uncertain)
	}
	// One leapfrog step written out, with the score by finite differences.
	z, p := []float64{0.4, -0.9, 1.3}, []float64{0.5, 0.1, -0.7}
	hmc.leapfrog = 1
	end, momentum, _ := run(z, p)
	score := surrogateScore(t, target, z, 0.6)
	want, half := make([]float64, 3), make([]float64, 3)
	for j := range z {
		half[j] = p[j] + 0.15*score[j]
		want[j] = z[j] + 0.3*half[j]
	}
	score = surrogateScore(t, target, want, 0.6)
	for j := range half {
		half[j] += 0.15 * score[j]
	}
	for _, d := range []string{cmp.Diff(want, end, cmpopts.EquateApprox(0, 1e-6)),
		cmp.Diff(half, momentum, cmpopts.EquateApprox(0, 1e-6))} {
		if d != "" {
			t.Errorf("leapfrog step (-want +got):\n%s", d)
		}
	}
}

// The relaxed samplers visit each state as often as π says, within 5 standard
// errors by effective sample size.
func TestRelaxedSamplersVisitTheTarget(t *testing.T) {
	ctx := context.Background()
	target := machine(t)
	w := newWorld(t, target)
	for _, sampler := range []string{"r-mala:step-size=0.4,smoothing=0.7", "r-hmc:step-size=0.6,smoothing=0.7"} {
		t.Run(sampler, func(t *testing.T) {
			const chains, steps = 8, 4000
			streams := Streams(9, sampler, chains)
			visits := make([][][]float64, w.Len())
			for i := range visits {
				visits[i] = make([][]float64, chains)
			}
			var a Acceptance
			plan := Plan{Streams: streams, WarmUp: 50, Steps: steps}
			_, err := Sample(ctx, makeKernel(t, sampler, target), RandomPositions(target, streams), plan,
				func(s Step) error {
					if s.WarmUp {
						return nil
					}
					a.Observe(s.Info.Accepted, s.Info.Changed)
					for c := range chains {
						here := w.Index(s.State.Position(c))
						for i := range visits {
							visit := 0.0
							if i == here {
								visit = 1
							}
							visits[i][c] = append(visits[i][c], visit)
						}
					}
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if rate, _ := MeanAndError(a.Rates()); !(rate > 0.05 && rate < 0.999) {
				t.Errorf("acceptance %v: nothing was put to the test", rate)
			}
			for i, p := range w.Probability {
				mean := 0.0
				for _, chain := range visits[i] {
					for _, v := range chain {
						mean += v / chains / steps
					}
				}
				if margin := 5 * math.Sqrt(p*(1-p)/EffectiveSampleSize(visits[i])); !(math.Abs(mean-p) <= margin) {
					t.Errorf("state %v: frequency %.4f, probability %.4f ± %.4f", w.State(i), mean, p, margin)
				}
			}
		})
	}
}

// The direction of three particles against the formula, term by term.
func TestSteinDirection(t *testing.T) {
	target := machine(t)
	const smoothing = 1.5
	k := makeKernel(t, fmt.Sprintf("d-svgd:smoothing=%v,step-size=0.01", smoothing), target)
	r := rand.New(rand.NewPCG(1, 9))
	z := normalVector(r, 9)
	stein := k.mover.(*steinDescent)
	s := at(t, k, stein.relaxation, z)
	moved := s.own.(*relaxed).z
	before := slices.Clone(moved)
	if err := k.mover.transition(context.Background(), s, make([]source, 3), &Info{}); err != nil {
		t.Fatal(err)
	}
	var scores [][]float64
	var weights []float64
	sum := 0.0
	for a := range 3 {
		point := z[3*a : 3*a+3]
		scores = append(scores, surrogateScore(t, target, point, smoothing))
		x, u, g := make([]float64, 3), make([]float64, 1), make([]float64, 3)
		base := 0.0
		for j, v := range point {
			x[j] = 1 / (1 + math.Exp(-v/smoothing))
			base -= v * v / 2
		}
		if err := target.RelaxedEnergyGradient(context.Background(), x, u, g); err != nil {
			t.Fatal(err)
		}
		weights = append(weights, math.Exp(u[0]+base-logTarget(t, target, point)))
		sum += weights[a]
	}
	square := func(a, b int) float64 {
		d := 0.0
		for j := range 3 {
			d += math.Pow(z[3*a+j]-z[3*b+j], 2)
		}
		return d
	}
	all := []float64{0, 0, 0, square(0, 1), square(0, 1), square(0, 2), square(0, 2), square(1, 2), square(1, 2)}
	slices.Sort(all)
	h := all[4] / (2 * math.Log(4))
	want := make([]float64, 9)
	for b := range 3 {
		for a := range 3 {
			kernel := math.Exp(-square(a, b) / (2 * h))
			for j := range 3 {
				slope := -(z[3*a+j] - z[3*b+j]) / h * kernel
				want[3*b+j] += weights[a] / sum * (kernel*scores[a][j] + slope)
			}
		}
	}
	if d := cmp.Diff(want, stein.direction, cmpopts.EquateApprox(0, 1e-5)); d != "" {
		t.Errorf("direction (-formula +kernel):\n%s", d)
	}
	// Adam's first step has the length of its rate in every direction.
	for i, d := range want {
		if by := moved[i] - before[i]; !(math.Abs(by-math.Copysign(0.01, d)) < 1e-6) {
			t.Errorf("number %d moved by %v", i, by)
		}
	}
}

// Particles come closer to the target's mean than where they began.
func TestSteinDescent(t *testing.T) {
	ctx := context.Background()
	target := machine(t)
	w := newWorld(t, target)
	kernel := makeKernel(t, "d-svgd:step-size=0.05", target)
	const particles = 100
	streams := Streams(1, "", particles)
	state := started(t, kernel, RandomPositions(target, streams))
	gap := func() float64 {
		sum := 0.0
		for j := range 3 {
			mean := 0.0
			for c := range particles {
				mean += float64(state.Position(c)[j]) / particles
			}
			sum += math.Abs(mean - w.Mean(func(x []int) float64 { return float64(x[j]) }))
		}
		return sum
	}
	before := gap()
	if err := advance(ctx, kernel, state, streams, 300, nil); err != nil {
		t.Fatal(err)
	}
	if after := gap(); !(after < before/2) {
		t.Errorf("the means were off by %v and are by %v", before, after)
	}
}

// spoiltMachine has a state without energy and a region without gradient.
type spoiltMachine struct {
	*targets.RBM
	energy, gradient float64
}

func (s spoiltMachine) Energy(ctx context.Context, states []int, energy []float64) error {
	err := s.RBM.Energy(ctx, states, energy)
	for c := range energy {
		if states[3*c] == 1 && s.energy != 0 {
			energy[c] = s.energy
		}
	}
	return err
}

func (s spoiltMachine) RelaxedEnergyGradient(ctx context.Context, x, energy, gradient []float64) error {
	err := s.RBM.RelaxedEnergyGradient(ctx, x, energy, gradient)
	for c := range energy {
		if x[3*c] > 0.5 && s.gradient != 0 {
			gradient[3*c] = s.gradient
		}
	}
	return err
}

func TestRelaxedSamplersRejectTheUnusable(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"r-mala", "r-hmc", "d-svgd"} {
		for _, spoilt := range []spoiltMachine{
			{machine(t), math.NaN(), 0}, {machine(t), math.Inf(1), 0}, {machine(t), math.Inf(-1), 0},
			{machine(t), 0, math.NaN()}, {machine(t), 0, math.Inf(1)},
		} {
			if name == "d-svgd" && spoilt.gradient != 0 {
				continue // asks no gradient where it goes
			}
			t.Run(fmt.Sprintf("%s energy %v gradient %v", name, spoilt.energy, spoilt.gradient), func(t *testing.T) {
				kernel := makeKernel(t, name+":step-size=0.5,smoothing=0.5", spoilt)
				streams := Streams(1, "", 8)
				positions := make([]int, 24)
				for c := range 8 {
					positions[3*c+1] = c % 2
				}
				state := started(t, kernel, positions)
				refused := 0
				err := advance(ctx, kernel, state, streams, 40, func(_ int, s *State, info *Info) error {
					for c := range 8 {
						if s.Position(c)[0] == 1 {
							t.Fatalf("chain %d is at a spoilt state", c)
						}
						if math.IsInf(info.LogAcceptance[c], -1) {
							refused++
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if refused == 0 && name != "d-svgd" {
					t.Error("no spoilt state was ever proposed")
				}
				positions[0] = 1
				if _, err := kernel.Init(ctx, positions); err == nil {
					t.Error("a start at a spoilt state: no error")
				}
			})
		}
	}
}

func TestRelaxationErrors(t *testing.T) {
	for name, c := range map[string]struct {
		target  Target
		setting string
		want    string
	}{
		"three categories": {ternary{machine(t)}, "smoothing=1", "slot 1 has 3 categories"},
		"no relaxation":    {roughTable()(t), "smoothing=1", "between 0 and 1"},
		"infinite step":    {machine(t), "step-size=inf", "step-size"},
		"smoothing":        {machine(t), "smoothing=inf", "smoothing"},
		"balance":          {machine(t), "balance=min", "no balance"},
	} {
		for _, kernel := range []string{"r-mala", "r-hmc", "d-svgd"} {
			if _, err := newFrom(kernel+":"+c.setting, c.target); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %s: error %v, want one that says %q", kernel, name, err, c.want)
			}
		}
	}
	for _, name := range []string{"r-mala", "r-hmc", "d-svgd"} {
		kernel := makeKernel(t, name+":step-size=0.4", machine(t)).mover.(stepSizer)
		for _, wrong := range []float64{math.NaN(), math.Inf(1), 0, -1} {
			err := kernel.SetStepSize(wrong)
			if err == nil || kernel.StepSize() != 0.4 {
				t.Errorf("%s: a step size of %v: %v, error %v", name, wrong, kernel.StepSize(), err)
			}
		}
	}
	if _, err := newFrom("rbm-gibbs", atTemperature(t, machine(t), 2)); err == nil {
		t.Error("a temperature for block Gibbs on latent units: no error")
	}
}

type ternary struct{ *targets.RBM }

func (ternary) Categories() []int { return []int{2, 3, 2} }
